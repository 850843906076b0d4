"""What one commit of a table of current state changed: its rows after the commit, beside those before it.

The files that the commit added have the rows after it. The rows before it are those of its parent at the positions that its delete
files name, and those of the data files that it removed. Of data files that got a deletion vector, they are the rows whose keys
these have no longer: a batch deletes all rows of a key that its partitions have. Files of another partition spec may have one of
another partition, which stays, so there the record is compared, too. Both are read with the schema that the table has now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.lake.deletes import position_files
from frazil.lake.deletes.positions import BROADCAST_AT_MOST, FILE, POSITION
from frazil.lake.history.changed_keys import changed_keys, quoted
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.stage import CATALOG
from frazil.schemas.metadata import INGESTED_AT

_FILE_NUMBER, _RECORD = "_frazil_file", "_frazil_record"
_OF_A_RECORD = ("_kafka_partition", "_kafka_offset", INGESTED_AT.name)
ROWS_A_TASK, MOST_ROWS_A_TASK = 50_000, 500_000


class CannotFollow(Exception):
    """The change cannot be made from what the table still has; the text says why."""


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The files of a commit: paths of data files that it `added` and `removed`, and positions that it deleted in others.

    `by_key`: which rows were deleted is found by key, as deletion vectors are no list of positions, and Spark gives no positions
    of rows to staged reads of version 3.
    """

    added: frozenset[str]
    removed: frozenset[str]
    deleted: Mapping[str, Any]
    by_key: bool = False

    @classmethod
    def of(cls, table: Java, snapshot: Java) -> ChangedFiles:
        """Read them. Raises `CannotFollow` for deletes by value, which name no rows."""
        if (
            table.snapshot(snapshot.snapshotId()) is None
        ):  # only older metadata files name it, and its manifests may be gone
            raise CannotFollow("it was expired before its history had its changes")
        io = table.io()
        added = frozenset(str(file.location()) for file in items(snapshot.addedDataFiles(io)))
        removed = frozenset(str(file.location()) for file in items(snapshot.removedDataFiles(io)))
        deleted: dict[str, list[Any]] = {}
        for file in items(snapshot.addedDeleteFiles(io)):
            for path, positions in _positions(table, file).items():
                deleted.setdefault(path, []).append(positions)
        import numpy as np

        is_version_3 = int(table.operations().current().formatVersion()) >= 3  # the commit may be of version 2
        return cls(added, removed, {path: np.concatenate(parts) for path, parts in deleted.items()}, is_version_3)

    @property
    def is_empty(self) -> bool:
        """Whether no row came or went."""
        return not (self.added or self.removed or self.deleted)


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
    places = (FILE, POSITION) if files.deleted and not files.by_key else ()
    changed = sum(_count(snapshot, name) for name in ("added-records", "deleted-records", "added-position-deletes"))
    changed -= _count(snapshot, "removed-position-deletes")  # vectors that the new ones replace
    with ExitStack() as stack:

        def read(snapshot_id: int, paths: Collection[str], names: Sequence[str]) -> DataFrame:
            return stack.enter_context(_read(iceberg, table, snapshot_id, paths, names, new_id()))

        after = read(here, files.added, columns) if files.added else None
        before = read(parent, touched, [*columns, *places]) if touched else None
        if before is not None and files.by_key and files.deleted:
            record = [name for name in _OF_A_RECORD if name in columns] if int(table.specs().size()) > 1 else []
            place, names = [*key, _RECORD] if record else list(key), [*map(quoted, key)]
            stay = read(here, files.deleted.keys(), [*key, *record])
            if record:
                before, stay = (rows.withColumn(_RECORD, F.xxhash64(*record)) for rows in (before, stay))
            tasks = _tasks_of(iceberg, _count(snapshot, "total-records"))
            had, stay = (rows.select(*map(quoted, place)).repartition(tasks, *names) for rows in (before, stay))
            gone = had.join(stay, place, "left_anti")
            gone = F.broadcast(gone) if changed <= BROADCAST_AT_MOST else gone
            before = before.join(gone, place, "left_semi")
        elif before is not None and files.deleted:
            named = _at_positions(iceberg, before, files.deleted)
            removed = before.where(F.col(FILE).isin(sorted(files.removed)))
            before = named.unionByName(removed) if files.removed else named
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
    sets, cache = iceberg.task_sets(), iceberg.table_cache()
    cache.add(unique_id, table)
    sets.stageTasks(table, unique_id, _tasks(table, snapshot_id, paths))
    try:
        rows = iceberg.spark.read.table(f"{CATALOG}.`{unique_id}`").select(*map(quoted, columns))
        yield rows
    finally:
        sets.removeTasks(table, unique_id)
        cache.remove(unique_id)


def _tasks(table: Java, snapshot_id: int | None, paths: Collection[str]) -> list[Java]:
    """Return the scan tasks of data files of a snapshot, with the deletes that it has of them."""
    if snapshot_id is None or table.snapshot(snapshot_id) is None:
        raise CannotFollow(f"its snapshot {snapshot_id} was expired before its history had the changes behind it")
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
    if len(found) < len(paths):
        raise CannotFollow(f"its snapshot {snapshot_id} lacks {len(paths) - len(found)} of the files of a change")
    return list(found.values())


def _positions(table: Java, file: Java) -> dict[str, Any]:
    """Return the positions that a delete file names, by path of the data file; none for a vector, which is of one data file."""
    kind = str(file.format())
    if kind == "PUFFIN":
        return {str(file.referencedDataFile()): ()}
    if kind == "PARQUET" and str(file.content()) == "POSITION_DELETES":
        positions = position_files.read(table, str(file.location()))
        if positions is None:
            raise CannotFollow("a delete file has no positions")
        return positions
    raise CannotFollow(f"the delete file {file.location()} is of a kind that names no rows, and no writer of Frazil's")
