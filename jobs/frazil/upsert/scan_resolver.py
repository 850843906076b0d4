"""Positions of rows: where the live rows of some keys are, and how many of them a batch replaces and deletes.

The search is an inner join of the table's key columns with the batch's keys, which are broadcast: nothing of the table is
shuffled, and rows that a delete file names do not come. `key_literals` says which partitions and data files are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.lake.delete_files.staged_deletes import Found
from frazil.schemas.metadata import DELETED_AT, ORDER
from frazil.upsert.key_literals import Truncation, conditions
from frazil.upsert.pruned_scan import pruned

if TYPE_CHECKING:
    import pyarrow as pa

FILE, POSITION = "_file", "_pos"
IS_DELETE, HASH, PARTITION = "_frazil_is_delete", "_frazil_hash", "_frazil_partition"
"""Columns beside the key's own: whether the batch deletes the key, its hash (`key_hash`), the Kafka partition of its record."""
SECOND_HASH = "_frazil_second_hash"
"""Column with another hash of the key: both are 128 bits, by which an index knows the key."""
NUMBER, LACKS = "_frazil_number", "_frazil_lacks"
"""Where rows depend on those in the table: a key's number, and whether the batch lacks values of its row, which the table has."""
LEFT_OUT = "_frazil_left_out"
"""Names of the columns that a change leaves out though its row has a value, null if there are none: no part of a key's marks."""
PLACE, OF_VALUES = "_frazil_place", "_frazil_of_values"
"""Of an ordered batch: order, partition and offset of a key's last record, and, of a delete, those of its values' record."""
MARKS = (IS_DELETE, HASH, SECOND_HASH, PARTITION, NUMBER, LACKS, PLACE, OF_VALUES)
_KAFKA_PARTITION, _KAFKA_OFFSET, _INGESTED_AT = "_kafka_partition", "_kafka_offset", "_ingested_at"
_WAS, _THEN = "_frazil_was", "_frazil_then"
MOVED = "_frazil_moved"
"""Column that says of a row that was found whether it is of another Kafka partition than the batch's record of its key."""
_LATE, _KEPT, _TIES, _WAS_DELETED = "_frazil_late", "_frazil_kept", "_frazil_ties", "_frazil_was_deleted"
_VOID = "_frazil_void"
BROADCAST_AT_MOST = 2_000_000
"""So many keys are broadcast; a larger batch is joined as Spark decides. 2 M keys of 20 bytes take 0.2 GB of heap."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the deletes that a table remembers say of a batch's keys, by number: `late` before the delete, `tied` with its order."""

    late: frozenset[int] = frozenset()
    tied: frozenset[int] = frozenset()


def find(
    spark: SparkSession,
    table: str,
    snapshot_id: int,
    keys: pa.Table,
    schema: Any,
    *,
    named: Mapping[str, str] = MappingProxyType({}),
    until: int = 0,
    partitioned_by: Mapping[str, Truncation] = MappingProxyType({}),
    remembered: Remembered = Remembered(),  # frozen
    check: Callable[[DataFrame], None] = lambda _: None,
) -> Found:
    """Return where the live rows of `keys` are in a snapshot of `table`, which is named with its catalog.

    `keys` has the key's columns, then `MARKS`; each key is there once. `schema` is its Spark schema. `named` gives the names that
    columns have in the snapshot's schema, where they are other ones. Rows that were staged up to `until`, microseconds since 1970,
    do not count as moved. `partitioned_by` are columns that the table is partitioned by. The rows of keys that are late by what is
    `remembered` stay. `check` gets the rows that are read, if the keys say which.
    """
    names, wanted = key_names(schema), broadcast(spark, keys, schema)
    rows = spark.read.option("versionAsOf", str(snapshot_id)).table(table)
    partition = F.col(_KAFKA_PARTITION) if _KAFKA_PARTITION in rows.columns else F.lit(None).cast("int")
    if until:
        is_later = F.unix_micros(_INGESTED_AT) > until if _INGESTED_AT in rows.columns else F.lit(False)
        partition = F.when(is_later, partition)
    key = [F.col(named.get(name, name)).alias(name) for name in names]
    then = [_place_of_row(schema[PLACE].dataType).alias(_THEN)] if PLACE in schema.names else []
    was_deleted = F.col(DELETED_AT.name).isNotNull() if DELETED_AT.name in rows.columns else F.lit(False)
    filters = list[Column]()
    if not any(named.get(name, name) != name for name in names):
        # Iceberg binds the filters of a snapshot to the table's own schema, which has not the names of before.
        filters = conditions(keys, schema, names, partitioned_by=partitioned_by)
    place = (F.col(FILE), F.col(POSITION), partition.alias(_WAS), was_deleted.alias(_WAS_DELETED))
    rows = pruned(rows, filters, [*key, *place, *then])
    if filters:
        check(rows)
    moved = F.coalesce(F.col(_WAS) != F.col(PARTITION), F.lit(False)).alias(MOVED)
    compared = _compared(schema) if NUMBER in schema.names else ()
    found = rows.join(wanted, names).select(FILE, POSITION, IS_DELETE, HASH, moved, *compared).toArrow()
    return grouped(found, remembered)


def key_names(schema: Any) -> list[str]:
    """Return the columns of the key among those of `keys`."""
    return [field.name for field in schema.fields if field.name not in MARKS]


def broadcast(spark: SparkSession, keys: pa.Table, schema: Any) -> DataFrame:
    """Return the keys as a side of a join, broadcast if they are few enough."""
    wanted = spark.createDataFrame(keys, schema=schema)
    return F.broadcast(wanted) if keys.num_rows <= BROADCAST_AT_MOST else wanted


def _place_of_row(of: Any) -> Column:
    """Return order, partition and offset of a row; columns may have been narrower in the snapshot."""
    return F.struct(F.col(ORDER), F.col(_KAFKA_PARTITION), F.col(_KAFKA_OFFSET)).cast(of)


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
        is_late.alias(_LATE),
        ((F.col(LACKS) | is_older) & ~is_void).alias(_KEPT),
        is_void.alias(_VOID),
        F.coalesce(tied, none).alias(_TIES),
    ]


def is_tie(now: Column, then: Column) -> Column:
    """Return whether two places have the same order in two partitions."""
    return (then[ORDER] == now[ORDER]) & (then[_KAFKA_PARTITION] != now[_KAFKA_PARTITION])


def grouped(found: pa.Table, remembered: Remembered = Remembered()) -> Found:  # frozen
    """Return a search's result by data file; a row that came twice counts once.

    What is `remembered` of a key says more than its rows, except of ties: the row of a key is newer than its delete.
    """
    import numpy as np
    import pyarrow.compute as pc

    late, kept, ties = remembered.late, frozenset[int](), len(remembered.tied)
    if NUMBER in found.column_names:
        late = late | _numbers(found, _LATE)
        ties = len(_numbers(found, _TIES) | (remembered.tied - frozenset(found[NUMBER].to_pylist())))
        void = _numbers(found, _VOID) - frozenset(found.filter(pc.invert(found[_VOID]))[NUMBER].to_pylist())
        found = found.filter(pc.invert(pc.is_in(found[NUMBER], value_set=_array(late | void))))
        kept = _numbers(found, _KEPT)
    if not found.num_rows:
        return Found(late=late, ties=ties)
    paths = pc.dictionary_encode(found[FILE].cast("string")).combine_chunks()
    files = paths.indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((found[POSITION].to_numpy(), files))
    files, columns = files[order], [found[name].to_numpy()[order] for name in (POSITION, IS_DELETE, HASH, MOVED)]
    first = np.ones(len(files), bool)
    first[1:] = (files[1:] != files[:-1]) | (columns[0][1:] != columns[0][:-1])
    files, (positions, is_delete, hashes, moved) = files[first], (column[first] for column in columns)
    cuts, names = np.flatnonzero(np.diff(files)) + 1, paths.dictionary.to_pylist()
    parts = zip(np.split(files, cuts), np.split(positions, cuts), strict=True)
    is_delete = is_delete.astype(bool)
    return Found(
        at={names[part[0]]: at.astype(np.int64) for part, at in parts},
        updated=len(np.unique(hashes[~is_delete])),
        deleted=len(np.unique(hashes[is_delete])),
        hash=total(hashes),
        moved=int(moved.sum()),
        late=late,
        kept=kept,
        ties=ties,
    )


def _numbers(found: pa.Table, mark: str) -> frozenset[int]:
    return frozenset(found.filter(found[mark])[NUMBER].to_pylist())


def _array(numbers: frozenset[int]) -> pa.Array:
    import pyarrow as pa

    return pa.array(sorted(numbers), pa.int32())


def total(hashes: Any) -> int:
    """Return the sum of signed 64-bit hashes, modulo 2^64."""
    return int(hashes.astype("u8").sum(dtype="u8"))
