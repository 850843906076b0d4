"""Folders of stacks for tests that ask Terraform itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def stack(tmp_path: Path) -> Callable[..., dict[str, Path]]:
    """Folders of stacks that have these contents; their state stays."""

    def made(**contents: Any) -> dict[str, Path]:
        folders = {}
        for name, content in contents.items():
            folder = tmp_path / "out" / "stacks" / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cdk.tf.json").write_text(json.dumps(content))
            folders[name] = folder
        return folders

    return made
