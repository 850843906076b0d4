"""Stage the changes of an upsert table: of each key in the batch the last record, as a row or as a delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from frazil.errors import KeysMoved
from frazil.lake.commit.fence import StageAgain
from frazil.lake.prepared_plan import Observed, Run, is_small
from frazil.lake.stage import Staged, TableWriter
from frazil.upsert.compared_changes import ComparedChanges
from frazil.upsert.compared_rows import rows_to_write, unresolved_of
from frazil.upsert.fold import IS_LAST, NEWEST, RECORDS, REPEATED, fold, value_columns
from frazil.upsert.key_changes import ROWS_A_TASK, KeyChanges, UpsertBatch
from frazil.upsert.resolver_protocol import IS_DELETE, MARKS, OMITTED, BatchKeys, KeyPositionResolver


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """The rows of a batch in files, the keys that it writes and deletes, and of how many `records` these are the last ones.

    `ties` keys have records of the same order in two partitions. `repeated` records are deletes right after a delete of their
    key, without those of late keys. `omitted` changes omit values, and the `unresolved` ones, by partition and offset, some
    that neither a change before them nor the table has: they are none of the `records`.
    """

    files: Staged
    changes: KeyChanges
    records: int
    ties: int = 0
    repeated: int = 0
    omitted: int = 0
    unresolved: frozenset[tuple[int, int]] = frozenset()

    def terms(self, landed: int) -> dict[str, int]:
        """Return the terms of `Counts` for so many records that landed, those before a truncate among them."""
        changes, late = self.changes, self.changes.late
        written = self.files.rows - changes.marked
        return {
            "written": written,
            "deletes": changes.deletes,
            "repeated_deletes": self.repeated,
            "superseded": landed - written - changes.deletes - self.repeated - late,
            "late": late,
            "marked": changes.marked,
            "order_ties": self.ties + changes.tied,
        }


_FOLD = "fold"
_MARK = "_frazil_"  # the beginning of names that no table has


def folded(changed: DataFrame, key: Sequence[str], batch: UpsertBatch, observed: Observed) -> DataFrame:
    """Fold the changes to the last one of each key, for `stage_changes`.

    `changed` has the table's columns, those of the `key` among them, `IS_DELETE` for a change that deletes its row, and
    `OMITTED` if changes can omit values; without rules that fill them, the rows are right only if none does. One task folds a
    small batch: then nothing is shuffled.
    """
    values = value_columns(changed.columns, key, batch.rules)
    dealt = changed.coalesce(1) if is_small(batch.records) else changed.repartition(_tasks(changed, batch), *key)
    return fold(dealt, key, values, batch.rules, observed(_FOLD))


def _tasks(changed: DataFrame, batch: UpsertBatch) -> int:
    return max(min(changed.sparkSession.sparkContext.defaultParallelism, -(-batch.records // ROWS_A_TASK)), 1)


def stage_changes(
    writer: TableWriter,
    run: Run,
    key: Sequence[str],
    batch: UpsertBatch,
    resolver: KeyPositionResolver | None = None,
) -> StagedChanges:
    """Stage the rows of the changes that `folded` returned.

    Without an order, records of one key in two partitions raise `KeysMoved`.

    Rules that need the rows in the table search these on its head: the batches before must be committed. Before a batch that clears
    the table, it has none. The `resolver` answers the search of rules that need no rows; the table is scanned by default. Raises
    `StageAgain` if the table changes meanwhile, or if rows and keys are of two readings of the topic.
    """
    rules, every = batch.rules, run.rows
    columns = [name for name in every.columns if not name.startswith(_MARK)]
    values = value_columns(columns, key, rules)
    every.persist(StorageLevel.MEMORY_AND_DISK)  # rows and keys are of one reading of the topic
    last = every.where(IS_LAST).drop(IS_LAST)
    changes: KeyChanges
    unresolved = frozenset[tuple[int, int]]()
    try:
        if rules.need_rows:
            keys = _keys(last, key, RECORDS, REPEATED)
            seen = run.observed(_FOLD)
            changes = found = ComparedChanges(writer, keys, batch)
            found.compare()
            unresolved = unresolved_of(every, found) if rules.fills else unresolved
            stored = writer.iceberg.spark.table(f"{writer.iceberg.name}.{writer.table}")
            files = writer.stage(rows_to_write(last, columns, values, stored, found, _tasks(every, batch)), batch.at)
            found.check_written(files.rows)
        else:
            files = writer.stage(last.where(~F.col(IS_DELETE)).drop(*MARKS, NEWEST, OMITTED), batch.at)
            seen = run.observed(_FOLD)
            changes = KeyChanges(writer, _keys(last, key), batch, resolver)
    finally:
        every.unpersist()
    # A lost executor takes what it kept with it. Its part is read again then, and a compacted topic may hold fewer records.
    if changes.count != seen["keys"] or (not rules.need_rows and files.rows != changes.writes):
        raise StageAgain(
            "the batch's rows and keys are not those of one reading of the topic", where=f"table {writer.table}"
        )
    if seen["moved"]:
        raise KeysMoved.of(writer.pipeline, writer.table, int(seen["moved"]))
    records, ties, omitted, repeated = (int(seen[name] or 0) for name in ("records", "ties", "omitted", "repeated"))
    repeated = changes.repeated if isinstance(changes, ComparedChanges) else repeated
    return StagedChanges(files, changes, records - len(unresolved), ties, repeated, omitted, unresolved)


def _keys(last: DataFrame, key: Sequence[str], *marks: str) -> BatchKeys:
    """Return the keys of the last changes, with these marks as far as there are."""
    kept = (mark for mark in (*MARKS, *marks) if mark in last.columns)
    found = last.select(*key, *kept, NEWEST)
    read = found.toArrow()
    newest = read[NEWEST].combine_chunks()
    read = read.drop_columns([NEWEST])
    return BatchKeys(read, StructType([found.schema[name] for name in read.column_names]), newest)
