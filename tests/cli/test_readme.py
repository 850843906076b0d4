"""The README's quickstart: its five commands, run in an empty folder, print what the README says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.local.services import down
from tests.support import quickstart

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    down(tmp_path)


def test_the_five_commands_of_the_readme_print_what_it_says(root: Path, folder: Path) -> None:
    quickstart.check(quickstart.followed(root, folder, Path(sys.executable).parent))
