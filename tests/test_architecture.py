"""docs/architecture.md: its drawing is that of the code, and it names each folder."""

from __future__ import annotations

from pathlib import Path

from tests.support import architecture


def test_the_drawing_is_that_of_the_code() -> None:
    assert architecture.PAGE.read_text() == architecture.main(), "run python -m tests.support.architecture"


def test_each_folder_of_the_wheel_is_in_the_contract_and_on_the_page(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text()
    folders = {path.parent.name for path in (root / "jobs" / "frazil").glob("*/__init__.py")}
    assert {folder for row in architecture.storeys() for folder in row} == folders
    assert [folder for folder in sorted(folders) if f"`{folder}`" not in page] == []
