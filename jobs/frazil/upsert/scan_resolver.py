"""The search by a scan of the table: an inner join of its key columns with the batch's keys, which are broadcast.

Nothing of the table is shuffled, and rows that a delete file names do not come. `key_literals` says which partitions and data
files are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.lake.commit.fence import StageAgain
from frazil.lake.delete_files.staged_deletes import Found, StagedDeletes
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.row_offsets import snapshot_rows
from frazil.schemas.metadata import DELETED_AT
from frazil.upsert.key_literals import Truncation, conditions
from frazil.upsert.pruned_scan import check_omitted, pruned
from frazil.upsert.resolver_protocol import (
    FILE,
    HASH,
    IS_DELETE,
    KAFKA_PARTITION,
    KEPT,
    LACKS,
    LATE,
    MOVED,
    NUMBER,
    OF_VALUES,
    PARTITION,
    PLACE,
    POSITION,
    TIES,
    VOID,
    BatchKeys,
    Head,
    Remembered,
    broadcast,
    grouped,
    is_tie,
    place,
)

_INGESTED_AT = "_ingested_at"
_WAS, _THEN, _WAS_DELETED = "_frazil_was", "_frazil_then", "_frazil_was_deleted"


@dataclass(frozen=True, slots=True)
class ScanResolver:
    """The search in one table, by Spark. It costs a read of the key columns of the files that may have one of the keys."""

    iceberg: Iceberg
    table: str

    def find(self, head: Head, keys: BatchKeys, remembered: Remembered = Remembered()) -> Found:  # noqa: B008 # frozen
        """See `KeyPositionResolver`. Raises `Fault` if a data file was omitted that may have a key."""
        names, schema, spark = keys.names, keys.schema, self.iceberg.spark
        partitioned_by = partition_sources(head.table)
        rows, then = snapshot_rows(self.iceberg, f"{self.iceberg.name}.{self.table}", head.table, head.snapshot_id)
        named = _names_in(then, head.table, schema.fieldNames())
        partition = F.col(KAFKA_PARTITION) if KAFKA_PARTITION in rows.columns else F.lit(None).cast("int")
        if head.until:
            is_later = F.unix_micros(_INGESTED_AT) > head.until if _INGESTED_AT in rows.columns else F.lit(False)
            partition = F.when(is_later, partition)
        was_deleted = F.col(DELETED_AT.name).isNotNull() if DELETED_AT.name in rows.columns else F.lit(False)
        columns = [F.col(named.get(name, name)).alias(name) for name in names]
        columns += [F.col(FILE), F.col(POSITION), partition.alias(_WAS), was_deleted.alias(_WAS_DELETED)]
        if PLACE in schema.names:  # its columns may have been narrower in the snapshot
            columns.append(place().cast(schema[PLACE].dataType).alias(_THEN))
        filters = list[Column]()
        if all(named.get(name, name) == name for name in names):
            # Iceberg binds the filters of a snapshot to the table's own schema, which lacks earlier names.
            filters = conditions(keys.rows, schema, names, partitioned_by=partitioned_by)
        rows = pruned(rows, filters, columns)
        prunes = (by.prunes(len(keys.rows[name].unique())) for name, by in partitioned_by.items() if name in names)
        if filters and any(prunes):  # else Iceberg compares nothing but the bounds of files
            check_omitted(self.iceberg, head.table, head.snapshot_id, rows, keys.rows.select(names))
        moved = F.coalesce(F.col(_WAS) != F.col(PARTITION), F.lit(False)).alias(MOVED)
        compared = _compared(schema) if NUMBER in schema.names else ()
        joined = rows.join(broadcast(spark, keys.rows, schema), names)
        return grouped(joined.select(FILE, POSITION, IS_DELETE, HASH, moved, *compared).toArrow(), remembered)

    def wrote(self, deletes: StagedDeletes) -> None:
        """See `KeyPositionResolver`: each search reads the table."""


def _compared(schema: Any) -> list[Column]:
    """Return what the comparison of a key's row with the batch's record says: late, kept, without effect, tied."""
    none = F.lit(False)
    is_void = F.col(LACKS) & ~F.col(IS_DELETE) & F.col(_WAS_DELETED)
    is_late, is_older, tied = none, none, none
    if PLACE in schema.names:
        then, now = F.col(_THEN), F.col(PLACE)
        is_late, is_older = F.coalesce(now < then, none), F.coalesce(F.col(OF_VALUES) < then, none)
        tied = is_tie(now, then)
    return [
        F.col(NUMBER),
        is_late.alias(LATE),
        ((F.col(LACKS) | is_older) & ~is_void).alias(KEPT),
        is_void.alias(VOID),
        F.coalesce(tied, none).alias(TIES),
    ]


def check_names(table: Java, names: Sequence[str]) -> None:
    """Raise `StageAgain` if a column of the key is no longer found by the name that it had when the batch was staged."""
    if gone := [name for name in names if table.schema().findField(name) is None]:
        raise StageAgain(f"the column {gone[0]} was renamed since the batch was staged", where=f"table {table.name()}")


def _names_in(then: Java, table: Java, names: Sequence[str]) -> dict[str, str]:
    """Return the names of the table's columns in the schema that rows are read by, which may be older than a rename."""
    found = dict[str, str]()
    for name in names:
        column = table.schema().findField(name)
        was = then.findColumnName(column.fieldId()) if column is not None else None
        if was is not None:
            found[name] = str(was)
    return found


def partition_sources(table: Java) -> dict[str, Truncation]:
    """Return the columns that the table's data files are or were partitioned by, and how they are truncated."""
    fields = [one for spec in table.specs().values() for one in items(spec.fields())]
    found: dict[str, Truncation] = {}
    for source in {int(one.sourceId()) for one in fields}:
        column = table.schema().findField(source)
        if column is None:
            continue
        transforms = {str(one.transform()) for one in fields if int(one.sourceId()) == source}
        are_buckets = all(one.startswith("bucket[") for one in transforms)
        widths = tuple(sorted(int(one[9:-1]) for one in transforms if one.startswith("truncate[")))
        types = {str(schema.findType(source)) for schema in table.schemas().values()} if widths else set()
        was_int = "int" in types and str(column.type()) == "long"
        found[str(table.schema().findColumnName(source))] = Truncation(widths, was_int, are_buckets)
    return found
