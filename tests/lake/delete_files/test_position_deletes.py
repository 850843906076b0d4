"""Position delete files of version 2, as the driver reads them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from frazil.audit.files.page_checksums import is_with_checksum
from frazil.lake.delete_files.position_deletes import payload, read


def table_of(body: bytes) -> Any:
    """Return what of a table is used to read a file."""
    stream = SimpleNamespace(readAllBytes=lambda: body, close=lambda: None)
    file = SimpleNamespace(newStream=lambda: stream)
    return SimpleNamespace(io=lambda: SimpleNamespace(newInputFile=lambda location: file))


BODY = payload({"a": np.arange(0, 90_000, 7), "b": np.array([5])}, ["a", "b"])


def test_positions_are_read_by_path() -> None:
    found = read(table_of(BODY), "x")
    assert found is not None
    assert {path: list(at) for path, at in found.items()} == {"a": list(range(0, 90_000, 7)), "b": [5]}
    assert is_with_checksum(BODY[4:36]), "a deep proof sees a changed byte in them"


@pytest.mark.parametrize(
    "part", [slice(4, 40), slice(40, -2000), slice(-200, None)], ids=["path", "positions", "footer"]
)
def test_a_damaged_file_is_none(part: slice) -> None:
    damaged = bytearray(BODY)
    damaged[part] = b"\xff" * len(damaged[part])
    assert read(table_of(bytes(damaged)), "x") is None
