"""The search for the old rows of a batch: what is asked, and how it is answered.

A `KeyPositionResolver` finds where the live rows of a batch's keys are on one snapshot: `scan_resolver` reads the key columns of
the table, `index_resolver` keeps an index of them. Both make the same `Found`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.lake.delete_files.staged_deletes import Found, StagedDeletes
from frazil.lake.java_classes import Java
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.schemas.metadata import ORDER
from frazil.upsert.key_hash import SECOND_SEED

if TYPE_CHECKING:
    import pyarrow as pa

FILE, POSITION = "_file", "_pos"
KAFKA_PARTITION, KAFKA_OFFSET, KAFKA_TIMESTAMP = "_kafka_partition", "_kafka_offset", "_kafka_timestamp"
IS_DELETE, HASH, PARTITION = "_frazil_is_delete", "_frazil_hash", "_frazil_partition"
"""Columns next to the key's own: whether the batch deletes the key, its hash (`key_hash`), the Kafka partition of its record."""
SECOND_HASH = "_frazil_second_hash"
"""Column with another hash of the key: both are 128 bits, by which an index knows the key."""
NUMBER, LACKS = "_frazil_number", "_frazil_lacks"
"""If rows depend on those in the table: a key's number, and whether the batch lacks values of its row, which the table has."""
OMITTED = "_frazil_omitted"
"""Names of the columns that a change omits though its row has a value, null if there are none: no part of a key's marks."""
PLACE, OF_VALUES = "_frazil_place", "_frazil_of_values"
"""Of an ordered batch: order, partition and offset of a key's last record, and, of a delete, those of its values' record."""
MARKS = (IS_DELETE, HASH, SECOND_HASH, PARTITION, NUMBER, LACKS, PLACE, OF_VALUES)
MOVED = "_frazil_moved"
"""Column that says of a row that was found whether it is of another Kafka partition than the batch's record of its key."""
LATE, KEPT, TIES, VOID = "_frazil_late", "_frazil_kept", "_frazil_ties", "_frazil_void"
"""Columns with what the comparison of a row that was found with the batch's record says."""
BROADCAST_AT_MOST = 2_000_000
"""So many keys are broadcast; a larger batch is joined as Spark decides. 2 M keys of 20 bytes take 0.2 GB of heap."""


@dataclass(frozen=True, slots=True)
class BatchKeys:
    """The keys of a batch, each once: the key's columns, then `MARKS`; `schema` is their Spark schema.

    `newest` is partition and offset of each key's newest record; without it, no stale keys are counted.
    """

    rows: pa.Table
    schema: Any
    newest: pa.StructArray | None = None

    @property
    def names(self) -> list[str]:
        """The columns of the key."""
        return key_names(self.schema)


@dataclass(frozen=True, slots=True)
class Head:
    """A snapshot of a loaded table, which is its head, and the account of its keys, if it has one."""

    table: Java
    snapshot_id: int
    account: KeyAccount | None = None

    @property
    def until(self) -> int:
        """Rows that were staged up to then do not count as moved, microseconds since 1970."""
        return self.account.until if self.account is not None else 0


@dataclass(frozen=True, slots=True)
class Remembered:
    """Keys of a batch, by number, whose deletes a table remembers: those `late`, before the delete, and `tied` with its order."""

    late: frozenset[int] = frozenset()
    tied: frozenset[int] = frozenset()


class KeyPositionResolver(Protocol):
    """Finds the live rows of a batch's keys. Used by one thread at a time."""

    def find(self, head: Head, keys: BatchKeys, remembered: Remembered, /) -> Found:
        """Return where the rows are. The rows of keys that are late by what is `remembered` stay."""

    def wrote(self, deletes: StagedDeletes, /) -> None:
        """Take notice of the deletes that were written for what was found last; they may be committed."""


def key_names(schema: Any) -> list[str]:
    """Return the columns of the key among those of `keys`."""
    return [field.name for field in schema.fields if field.name not in MARKS]


def broadcast(spark: SparkSession, keys: pa.Table, schema: Any) -> DataFrame:
    """Return the keys as a side of a join, broadcast if they are few enough."""
    wanted = spark.createDataFrame(keys, schema=schema)
    return F.broadcast(wanted) if keys.num_rows <= BROADCAST_AT_MOST else wanted


def place() -> Column:
    """Return what orders two records: order, then partition and offset."""
    return F.struct(ORDER, KAFKA_PARTITION, KAFKA_OFFSET)


def is_tie(now: Column, then: Column) -> Column:
    """Return whether two places have the same order in two partitions."""
    return (then[ORDER] == now[ORDER]) & (then[KAFKA_PARTITION] != now[KAFKA_PARTITION])


def grouped(found: pa.Table, remembered: Remembered = Remembered()) -> Found:  # frozen
    """Return a search's result by data file; a row that came twice counts once.

    What is `remembered` of a key says more than its rows, except of ties: the row of a key is newer than its delete.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    late, kept, ties = remembered.late, frozenset[int](), len(remembered.tied)
    if NUMBER in found.column_names:
        late = late | _numbers(found, LATE)
        ties = len(_numbers(found, TIES) | (remembered.tied - frozenset(found[NUMBER].to_pylist())))
        void = _numbers(found, VOID) - frozenset(found.filter(pc.invert(found[VOID]))[NUMBER].to_pylist())
        stay = pa.array(sorted(late | void), pa.int32())
        found = found.filter(pc.invert(pc.is_in(found[NUMBER], value_set=stay)))
        kept = _numbers(found, KEPT)
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


def total(hashes: Any) -> int:
    """Return the sum of signed 64-bit hashes, modulo 2^64."""
    return int(hashes.astype("u8").sum(dtype="u8"))


def key_hash(rows: DataFrame, names: Sequence[str], *, is_second: bool = False) -> Column:
    """Return the hash of a row's key; it stays the same when a column is promoted from int to long, or to more decimal digits.

    The second hash of a key begins with another seed.
    """
    types = {field.name: field.dataType.typeName() for field in rows.schema.fields}
    stable = {"byte": "bigint", "short": "bigint", "integer": "bigint", "decimal": "string"}
    seed = [F.lit(SECOND_SEED)] if is_second else []
    return F.xxhash64(*seed, *(F.col(n).cast(stable[types[n]]) if types[n] in stable else F.col(n) for n in names))
