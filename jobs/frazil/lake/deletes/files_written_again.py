"""Take rows away by writing the data files that have them again, without them: no reader has deletes to merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import RowsWouldChange
from frazil.lake.deletes import java_writers
from frazil.lake.deletes.file_partitions import partitions_of
from frazil.lake.deletes.live_rows import live_rows
from frazil.lake.deletes.positions import NUMBER, Found, are_few, broadcast, key_names
from frazil.lake.deletes.staged_deletes import StagedDeletes
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.rewrite import write_again

if TYPE_CHECKING:
    import pyarrow as pa

_READ_BY = "_frazil_read_by"
FILE_BYTES = 512 << 20
"""Iceberg's default of the table property `write.target-file-size-bytes`."""


@dataclass(frozen=True, slots=True)
class CopyOnWrite:
    """How the files of a table are written again: `new_id` and `sort` are as in `stage`."""

    new_id: Callable[[], str]
    sort: Sequence[Column] = ()

    def write(
        self, iceberg: Iceberg, table: Java, snapshot_id: int, found: Found, keys: pa.Table, schema: Any
    ) -> StagedDeletes:
        """Write the data files again that have rows of the keys which were found on a snapshot of the loaded `table`.

        `keys` and `schema` are as in `positions.find`. Raises `RowsWouldChange` if other rows than these would go.
        """
        if not found.at:
            return StagedDeletes(snapshot_id=snapshot_id, found=found)
        tasks = java_writers.tasks(iceberg, table, snapshot_id, found.at.keys())
        ordered = _ordered(iceberg, table, tasks)
        gone = broadcast(iceberg.spark, _without(keys, found), schema)
        names = key_names(schema)

        file_bytes = int(table.properties().get("write.target-file-size-bytes") or FILE_BYTES)

        def kept(rows: DataFrame) -> DataFrame:
            if are_few(keys):
                return rows.join(gone.select(*names), names, "left_anti").select(*rows.columns)
            # A shuffle leaves each task rows of all files, of which it would write one for each partition.
            read = rows.withColumn(_READ_BY, F.spark_partition_id())
            left = read.join(gone.select(*names), names, "left_anti")
            total = sum(int(task.file().fileSizeInBytes()) for task in ordered)
            return left.repartition(-(-total // file_bytes), _READ_BY).select(*rows.columns)

        written = write_again(
            iceberg.spark,
            iceberg,
            table,
            iceberg.classes.list_of(ordered),
            unique_id=self.new_id(),
            order=self.sort,
            task_bytes=file_bytes,
            file_bytes=file_bytes,
            spec_id=int(table.spec().specId()),
            kept=kept,
        )
        live = live_rows(iceberg, table, ordered, new_id=self.new_id)
        _check(table, len(ordered), live, found, sum(int(file.recordCount()) for file in written))
        vectors = (
            delete
            for task in ordered
            for delete in items(task.deletes())
            if java_writers.is_of_one_file(iceberg, delete)
        )
        return StagedDeletes(
            snapshot_id=snapshot_id,
            found=found,
            removed=tuple(vectors),
            referenced=tuple(sorted(found.at)),
            replaced=tuple(task.file() for task in ordered),
            written=tuple(written),
        )


def _ordered(iceberg: Iceberg, table: Java, tasks: Mapping[str, Java]) -> list[Java]:
    """Return scan tasks by partition: Spark reads neighbours in one task, which writes a file for each partition that it meets."""
    classes, paths = iceberg.classes, sorted(tasks)
    files = classes.each(classes.list_of(tasks[path] for path in paths), classes.function("ContentScanTask", "file"))
    by_partition = sorted(zip(partitions_of(iceberg, table, files), paths, strict=True))
    return [tasks[path] for _, path in by_partition]


def _without(keys: pa.Table, found: Found) -> pa.Table:
    """Return the keys whose rows go: those of late records, and of changes without effect, stay."""
    import numpy as np

    if not (stay := found.late | found.void):
        return keys
    return keys.filter(~np.isin(keys[NUMBER].to_numpy(), sorted(stay)))


def _check(table: Java, files: int, live: int, found: Found, written: int) -> None:
    if written != live - found.rows:
        raise RowsWouldChange(
            f"{files} data files have {live} rows, of which {found.rows} are replaced or deleted; written again they have "
            f"{written}; nothing of it was committed",
            where=f"table {table.name()}",
            do="`frazil verify PIPELINE --deep` reports whether a file was altered",
        )
