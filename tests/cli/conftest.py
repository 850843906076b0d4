"""A shell without variables of Frazil, and an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

VARIABLES = ("AWS_ENDPOINT_URL", "FRAZIL_DEBUG", "FRAZIL_ENV", "FRAZIL_PIPELINES", "FRAZIL_RELEASE")


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
