"""Deletion vectors are read as they were written, and damage is found."""

from __future__ import annotations

import zlib
from types import SimpleNamespace
from typing import Any

import pytest
from pyroaring import BitMap64

from frazil.lake.deletes import vector_files

MAGIC = bytes.fromhex("d1d33964")
FAR = 2**33 + 7
ONE, OTHER = [0, 5, 6, FAR], [3]


def blob(positions: list[int]) -> bytes:
    """Return a vector as Puffin's specification has it."""
    return framed(MAGIC + BitMap64(positions).serialize())


def framed(vector: bytes) -> bytes:
    """Add length and checksum."""
    return len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")


class Stored:
    """A table whose store has one Puffin file, and what reads it."""

    def __init__(self, content: bytes) -> None:
        self.content, self.reads = content, 0

    def io(self) -> Stored:
        return self

    def newInputFile(self, location: str) -> Stored:  # noqa: N802  # Iceberg's name
        assert location == "a.puffin"
        return self

    def newStream(self) -> Stored:  # noqa: N802  # Iceberg's name
        self.reads += 1
        return self

    def readAllBytes(self) -> bytes:  # noqa: N802  # Java's name
        return self.content

    def close(self) -> None: ...


def entry(path: str, at: int, size: int, records: int) -> Any:
    """A delete file of a manifest."""
    values = {
        "location": "a.puffin",
        "contentOffset": at,
        "contentSizeInBytes": size,
        "recordCount": records,
        "referencedDataFile": path,
    }
    return SimpleNamespace(**{name: lambda value=value: value for name, value in values.items()})


def test_vectors_of_one_file_are_read_at_once() -> None:
    one, other = blob(ONE), blob(OTHER)
    stored = Stored(b"PFA1" + one + other + b"footer")
    files = [entry("x", 4, len(one), 4), entry("y", 4 + len(one), len(other), 1)]
    assert vector_files.read(stored, files) == {"x": BitMap64(ONE), "y": BitMap64(OTHER)}
    assert stored.reads == 1


@pytest.mark.parametrize("at", [0, 4, 20, -1], ids=["length", "magic", "positions", "checksum"])
def test_a_changed_byte_is_found(at: int) -> None:
    content = bytearray(blob(ONE))
    content[at] ^= 1
    with pytest.raises(vector_files.UnreadableVector, match="at byte 0 of a.puffin is damaged"):
        vector_files.read(Stored(bytes(content)), [entry("x", 0, len(content), 4)])


def test_another_number_of_positions_is_found() -> None:
    content = blob(ONE)
    with pytest.raises(vector_files.UnreadableVector):
        vector_files.read(Stored(content), [entry("x", 0, len(content), 5)])


def test_a_file_that_was_cut_is_found() -> None:
    content = blob(ONE)
    with pytest.raises(vector_files.UnreadableVector):
        vector_files.read(Stored(content[:-9]), [entry("x", 0, len(content), 4)])


def test_bytes_that_are_no_bitmap_are_found() -> None:
    """Their length and checksum are right."""
    content = framed(MAGIC + b"no bitmap")
    with pytest.raises(vector_files.UnreadableVector):
        vector_files.read(Stored(content), [entry("x", 0, len(content), 4)])
