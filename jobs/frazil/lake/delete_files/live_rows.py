"""The exact number of rows of data files that are not deleted: a rewrite of these files must have as many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from frazil.lake.delete_files import position_deletes as position_files
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.row_offsets import tasks_read

BYTES_AT_MOST = 64 << 20
"""So much of the delete files is read by the driver; Spark applies larger ones, which takes a job over the data files."""


def live_rows(iceberg: Iceberg, table: Java, tasks: Sequence[Java], *, new_id: Callable[[], str]) -> int:
    """Return the number of rows of the data files of scan tasks that no delete file names.

    A deletion vector says how many rows it deletes. A delete file of version 2 names rows of several data files, and is read. If
    these files are too large, or of another kind than Frazil writes, Spark reads the data files. `new_id` is as in `stage`.
    """
    counted = _counted(table, tasks)
    if counted is not None:
        return counted
    with tasks_read(iceberg, table, tasks, unique_id=new_id()) as rows:
        return rows.count()


def _counted(table: Java, tasks: Sequence[Java]) -> int | None:
    """Return the number by the delete files; None if that takes reading the data files."""
    import numpy as np

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
    deleted = (np.concatenate([read[one].get(path, ()) for one in ones]) for path, ones in named.items())
    return rows - vectors - sum(len(np.unique(positions)) for positions in deleted)
