"""How many rows of some data files are not deleted, exactly: what a rewrite of these files must have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from frazil.lake.deletes import position_files
from frazil.lake.java_classes import Java, items

BYTES_AT_MOST = 64 << 20
"""So much of the delete files is read to count; they are read by the driver."""


def live_rows(table: Java, tasks: Iterable[Java]) -> int | None:
    """Return the number of rows of the data files of scan tasks that no delete file names; None if it was not counted.

    A deletion vector says how many rows it deletes. A delete file of version 2 names rows of several data files, and is read. It is
    not counted if these files are too large, or of another kind than Frazil writes.
    """
    rows, vectors = 0, 0
    shared: dict[str, Java] = {}
    named: dict[str, list[str]] = {}
    for task in tasks:
        file = task.file()
        rows += int(file.recordCount())
        path = str(file.location())
        for delete in items(task.deletes()):
            kind = str(delete.format())
            if kind == "PUFFIN":
                vectors += int(delete.recordCount())
            elif kind == "PARQUET" and str(delete.content()) == "POSITION_DELETES":
                shared[str(delete.location())] = delete
                named.setdefault(path, []).append(str(delete.location()))
            else:
                return None
    if sum(int(delete.fileSizeInBytes()) for delete in shared.values()) > BYTES_AT_MOST:
        return None
    read = dict[str, dict[str, Any]]()
    for location in shared:
        positions = position_files.read(table, location, set(named))
        if positions is None:
            return None
        read[location] = positions
    return rows - vectors - sum(_distinct([read[one].get(path) for one in ones]) for path, ones in named.items())


def _distinct(positions: list[Any]) -> int:
    import numpy as np

    there = [one for one in positions if one is not None]
    return len(np.unique(np.concatenate(there))) if there else 0
