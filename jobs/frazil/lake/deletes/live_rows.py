"""How many rows of some data files are not deleted, exactly: what a rewrite of these files must have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from frazil.lake.deletes.java_writers import PATH_ID
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
    read = {location: _positions(table, location, set(named)) for location in shared}
    return rows - vectors - sum(_distinct([read[one].get(path) for one in ones]) for path, ones in named.items())


def _positions(table: Java, location: str, paths: set[str]) -> dict[str, Any]:
    """Return the positions that a delete file names, by path of the data file."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    stream = table.io().newInputFile(location).newStream()
    try:
        payload = bytes(stream.readAllBytes())
    finally:
        stream.close()
    found = pq.read_table(pa.BufferReader(payload))
    found = found.rename_columns([_name(field) for field in found.schema])
    found = found.filter(pc.is_in(found["path"], value_set=pa.array(sorted(paths), found["path"].type)))
    grouped = found.group_by("path").aggregate([("position", "list")])
    lists = zip(grouped["path"].to_pylist(), grouped["position_list"].combine_chunks(), strict=True)
    return {path: positions.values.to_numpy() for path, positions in lists}


def _name(field: Any) -> str:
    return "path" if field.metadata and field.metadata.get(b"PARQUET:field_id") == str(PATH_ID).encode() else "position"


def _distinct(positions: list[Any]) -> int:
    import numpy as np

    there = [one for one in positions if one is not None]
    return len(np.unique(np.concatenate(there))) if there else 0
