"""What one commit of a table of current state changed: its rows after the commit, beside those before it.

The files that the commit added have the rows after it, and so have the positions whose deletes another writer took back. The rows
before it are those of its parent at the positions that its deletes name, and those of the data files that it removed. Both are read
with the schema that the table has now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.lake.deletes import position_files, vector_files
from frazil.lake.deletes.positions import BROADCAST_AT_MOST, FILE, POSITION
from frazil.lake.history.changed_keys import changed_keys, quoted
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.positioned_table import positioned_table
from frazil.lake.row_offsets import tasks_read

if TYPE_CHECKING:
    from pyroaring import BitMap64

    _Named = Mapping[str, BitMap64]

_FILE_NUMBER = "_frazil_file"
_EXPIRED = "its snapshot {} was expired before its history had the changes behind it"
ROWS_A_TASK, MOST_ROWS_A_TASK = 50_000, 500_000


class CannotFollow(Exception):
    """The change cannot be made from what the table still has; the text says why."""


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files of a commit: paths of data files that it `added` and `removed`.

    Of others, sorted positions that it `deleted`, and those that it `restored`, as it took their deletes back.
    """

    added: frozenset[str]
    removed: frozenset[str]
    deleted: Mapping[str, Any]
    restored: Mapping[str, Any]

    @classmethod
    def of(cls, table: Java, snapshot: Java) -> ChangedFiles:
        """Read them. Raises `CannotFollow` for deletes by value, which name no rows."""
        io, here = table.io(), snapshot.snapshotId()
        if table.snapshot(here) is None:  # only older metadata files name it, and its manifests may be gone
            raise CannotFollow("it was expired before its history had its changes")
        added = frozenset(str(file.location()) for file in items(snapshot.addedDataFiles(io)))
        removed = frozenset(str(file.location()) for file in items(snapshot.removedDataFiles(io)))
        deleted, restored = _positions_changed(table, snapshot, added | removed)
        live = _live_files(table, here, restored) if restored else {}  # a delete may name a file that went before
        return cls(added, removed, deleted, {path: restored[path] for path in live})

    @property
    def is_empty(self) -> bool:
        """Whether no row came or went."""
        return not (self.added or self.removed or self.deleted or self.restored)


@contextmanager
def changed_rows(
    iceberg: Iceberg,
    table: Java,
    snapshot: Java,
    files: ChangedFiles,
    key: Sequence[str],
    new_id: Any,
    *,
    is_own: bool = False,
) -> Iterator[DataFrame]:
    """Yield the changed keys of a commit, as `changed_keys` returns them. `is_own` says that the commit is the pipeline's."""
    touched = files.removed | files.deleted.keys()
    columns = [column["name"] for column in iceberg.schema_json(table)["fields"]]
    here, parent = snapshot.snapshotId(), snapshot.parentId()
    places = (FILE, POSITION) if files.deleted else ()
    named = sum(map(len, (*files.deleted.values(), *files.restored.values())))
    changed = sum(_count(snapshot, name) for name in ("added-records", "deleted-records")) + named
    with ExitStack() as stack:

        def read(snapshot_id: int, paths: Collection[str], names: Sequence[str]) -> DataFrame:
            return stack.enter_context(_read(iceberg, table, snapshot_id, paths, names, new_id()))

        after = read(here, files.added, columns) if files.added else None
        if files.restored:
            there = read(here, files.restored.keys(), [*columns, FILE, POSITION])
            again = _at_positions(iceberg, there, files.restored).select(*map(quoted, columns))
            after = again if after is None else after.unionByName(again)
        before = read(parent, touched, [*columns, *places]) if touched else None
        if before is not None and files.deleted:
            at_positions = _at_positions(iceberg, before, files.deleted)
            removed = before.where(F.col(FILE).isin(sorted(files.removed)))
            before = at_positions.unionByName(removed) if files.removed else at_positions
        there = next(side for side in (after, before) if side is not None)
        came, went = (
            (there.where(F.lit(False)) if side is None else side).select(*map(quoted, columns))
            for side in (after, before)
        )
        is_rewritten = bool(files.added and files.removed)
        yield changed_keys(came, went, key, _tasks_of(iceberg, changed), is_rewritten=is_rewritten, is_own=is_own)


def _count(snapshot: Java, name: str) -> int:
    return int(snapshot.summary().get(name) or 0)


def _tasks_of(iceberg: Iceberg, rows: int) -> int:
    """Return how many tasks join about so many rows. Spark's own number, 200, would be as many files of a commit."""
    cores = iceberg.spark.sparkContext.defaultParallelism
    return max(1, min(-(-rows // ROWS_A_TASK), max(cores, -(-rows // MOST_ROWS_A_TASK))))


def _at_positions(iceberg: Iceberg, rows: DataFrame, positions: Mapping[str, Any]) -> DataFrame:
    """Return the rows at these positions, by path of the data file."""
    import numpy as np
    import pyarrow as pa

    paths = sorted(positions)  # a path is long, and there may be millions of positions: they have its number
    numbers = np.repeat(np.arange(len(paths), dtype=np.int32), [len(positions[path]) for path in paths])
    deleted = pa.table({_FILE_NUMBER: numbers, POSITION: np.concatenate([positions[path] for path in paths])})
    found = iceberg.spark.createDataFrame(deleted)
    named = iceberg.spark.createDataFrame(pa.table({FILE: paths, _FILE_NUMBER: np.arange(len(paths), dtype=np.int32)}))
    numbered = rows.join(F.broadcast(named), FILE)
    found = F.broadcast(found) if len(numbers) <= BROADCAST_AT_MOST else found
    return numbered.join(found, [_FILE_NUMBER, POSITION], "left_semi").select(*rows.columns)


@contextmanager
def _read(
    iceberg: Iceberg,
    table: Java,
    snapshot_id: int | None,
    paths: Collection[str],
    columns: Sequence[str],
    unique_id: str,
) -> Iterator[DataFrame]:
    """Read columns of the live rows of some data files of a snapshot."""
    tasks = _tasks(table, snapshot_id, paths)
    here = positioned_table(iceberg, table, iceberg.schema_json(table)["fields"])
    with tasks_read(iceberg, here, tasks, unique_id=unique_id) as rows:
        yield rows.select(*map(quoted, columns))


def _tasks(table: Java, snapshot_id: int | None, paths: Collection[str]) -> list[Java]:
    """Return the scan tasks of data files of a snapshot, with the deletes that it has of them."""
    if snapshot_id is None or table.snapshot(snapshot_id) is None:
        raise CannotFollow(_EXPIRED.format(snapshot_id))
    found = _live_files(table, snapshot_id, paths)
    if len(found) < len(paths):
        raise CannotFollow(f"its snapshot {snapshot_id} lacks {len(paths) - len(found)} of the files of a change")
    return list(found.values())


def _live_files(table: Java, snapshot_id: int, paths: Collection[str]) -> dict[str, Java]:
    """Return the scan tasks of those of the data files that a snapshot has."""
    found: dict[str, Java] = {}
    planned = table.newScan().useSnapshot(snapshot_id).planFiles()
    try:
        iterator = planned.iterator()
        while len(found) < len(paths) and iterator.hasNext():
            task = iterator.next()
            path = str(task.file().location())
            if path in paths:
                found[path] = task
    finally:
        planned.close()
    return found


def _positions_changed(table: Java, snapshot: Java, apart: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the positions that only the new deletes of a commit name, and those that only the removed ones do, by data file.

    A vector has the positions of the one that it replaces. Positions in files that the commit added or removed, which are `apart`,
    are left out: its rows are all new or all gone.
    """
    io, parent = table.io(), snapshot.parentId()
    added, removed = items(snapshot.addedDeleteFiles(io)), items(snapshot.removedDeleteFiles(io))
    if (added or removed) and parent is not None and table.snapshot(parent) is None:
        raise CannotFollow(_EXPIRED.format(parent))
    new, old = (
        _named(table, [file for file in files if str(file.referencedDataFile()) not in apart])
        for files in (added, removed)
    )
    return _without(new, old, apart), _without(old, new, apart)


def _without(named: _Named, others: _Named, apart: Collection[str]) -> dict[str, Any]:
    """Return the positions that are not among the others, sorted."""
    import numpy as np
    from pyroaring import BitMap64

    parts = {path: at - others.get(path, BitMap64()) for path, at in named.items() if path not in apart}
    return {path: np.array(at.to_array(), np.int64) for path, at in parts.items() if at}


def _named(table: Java, files: Collection[Java]) -> _Named:
    """Return the positions that delete files name, by path of the data file."""
    from pyroaring import BitMap64

    try:
        named = vector_files.read(table, filter(_is_vector, files))
    except vector_files.UnreadableVector as why:
        raise CannotFollow(str(why)) from None
    for file in files:
        if not _is_vector(file):
            for path, positions in _positions(table, file).items():
                named[path] = named.get(path, BitMap64()) | BitMap64(positions)
    return named


def _is_vector(file: Java) -> bool:
    return str(file.format()) == "PUFFIN"


def _positions(table: Java, file: Java) -> dict[str, Any]:
    """Return the positions that a delete file of version 2 names, by path of the data file."""
    if str(file.format()) == "PARQUET" and str(file.content()) == "POSITION_DELETES":
        positions = position_files.read(table, str(file.location()))
        if positions is None:
            raise CannotFollow("a delete file has no positions")
        return positions
    raise CannotFollow(f"the delete file {file.location()} is of a kind that names no rows, and no writer of Frazil's")
