"""The project's own wheel, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.release import build
from tests.support import small_release


@pytest.fixture(scope="session")
def own_wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.own_wheel(small_release.checkout(root), tmp_path_factory.mktemp("wheel"))
