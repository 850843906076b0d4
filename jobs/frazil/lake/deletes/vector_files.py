"""Deletion vectors of version 3: bitmaps of positions in Puffin files, read by the driver."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from frazil.lake.java_classes import Java

if TYPE_CHECKING:
    from pyroaring import BitMap64

_MAGIC = bytes.fromhex("d1d33964")


class UnreadableVector(Exception):
    """A deletion vector is not as its manifest or the specification says; the text has the file."""


def read(table: Java, files: Iterable[Java]) -> dict[str, BitMap64]:
    """Return the positions that deletion vectors name, by path of the data file. Each Puffin file is read once, to its end.

    `files` are Iceberg's delete files. Raises `UnreadableVector`, and what Iceberg raises if a file is gone.
    """
    puffin: dict[str, bytes] = {}
    found: dict[str, BitMap64] = {}
    for file in files:
        location, at = str(file.location()), int(file.contentOffset())
        if location not in puffin:
            puffin[location] = _content(table, location)
        blob = puffin[location][at : at + int(file.contentSizeInBytes())]
        positions = _positions(blob)
        if positions is None or len(positions) != int(file.recordCount()):
            raise UnreadableVector(f"the deletion vector at byte {at} of {location} is damaged")
        found[str(file.referencedDataFile())] = positions
    return found


def _content(table: Java, location: str) -> bytes:
    stream = table.io().newInputFile(location).newStream()
    try:
        return bytes(stream.readAllBytes())
    finally:
        stream.close()


def _positions(blob: bytes) -> BitMap64 | None:
    """Return the positions of a blob of type `deletion-vector-v1`; None if it is none.

    It is framed by its length and a checksum (https://iceberg.apache.org/puffin-spec/#deletion-vector-v1-blob-type).
    """
    from pyroaring import BitMap64

    vector, checksum = blob[4:-4], int.from_bytes(blob[-4:], "big")
    if len(vector) != int.from_bytes(blob[:4], "big") or zlib.crc32(vector) != checksum or vector[:4] != _MAGIC:
        return None
    try:
        return BitMap64.deserialize(vector[4:])
    except ValueError:
        return None
