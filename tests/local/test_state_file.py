"""A state file or a state folder that is damaged is no defect."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.errors import InvalidInput
from frazil.local.state_file import STATE_FILE, locked, running_addresses


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": 1}', '{"version": 1, "parts": {"kafka": {}}}'])
def test_a_damaged_state_file_has_no_running_part(tmp_path: Path, content: str) -> None:
    (tmp_path / STATE_FILE).write_text(content)
    assert running_addresses(tmp_path) == {}


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / ".frazil").touch()
    with pytest.raises(InvalidInput, match=r"\.frazil: it cannot be written"), locked(tmp_path / ".frazil"):
        pass
