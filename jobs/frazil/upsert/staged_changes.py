"""Stage the changes of a table of current state: of each key in the batch the last record, as a row or as a delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from frazil.errors import KeysMoved
from frazil.lake.commit.check import StageAgain
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.stage import Staged, stage
from frazil.upsert.fold import IS_LAST, NEWEST, RECORDS, REPEATED, Rules, fold, value_columns
from frazil.upsert.key_changes import KeyChanges, KeyIndex
from frazil.upsert.resolved_changes import ResolvedChanges
from frazil.upsert.resolved_rows import rows_to_write, unresolved_of
from frazil.upsert.scan_resolver import IS_DELETE, LEFT_OUT, MARKS

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_A_TASK = 50_000
"""Spark's own number of tasks after a shuffle, 200, would be as many files of a batch and seconds of starting tasks."""


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """The rows of a batch in files, the keys that it writes and deletes, and of how many `records` these are the last ones.

    `ties` keys have records of the same order in two partitions. `repeated` records are deletes directly behind a delete of their
    key, without those of late keys. `left_out` changes leave values out, and the `unresolved` ones, by partition and offset, some
    that neither a change before them nor the table has: they are none of the `records`.
    """

    files: Staged
    changes: KeyChanges
    records: int
    ties: int = 0
    repeated: int = 0
    left_out: int = 0
    unresolved: frozenset[tuple[int, int]] = frozenset()


def stage_changes(
    iceberg: Iceberg,
    table: str,
    changed: DataFrame,
    *,
    key: Sequence[str],
    pipeline: str,
    new_id: Callable[[], str],
    at: float,
    sort: Sequence[Column] = (),
    records: int = ROWS_A_TASK,
    rules: Rules = Rules(),  # noqa: B008 # frozen
    clears: bool = False,
    index: KeyIndex | None = None,
) -> StagedChanges:
    """Fold the changes to the last one of each key, and stage their rows; `new_id`, `at` and `sort` are as in `stage`.

    `changed` has the table's columns, those of the `key` among them, `IS_DELETE` for a change that deletes its row, and
    `LEFT_OUT` if changes can leave values out; without rules that fill them, the rows are right only if none does. Without an
    order, records of one key in two partitions raise `KeysMoved`, which names the `pipeline`. `records` is about how many there
    are: it decides how many tasks fold them, and so how many files they become. Rules that need the rows in the table search these
    on its head: the batches before must be committed. Before a batch that `clears` the table, it has none. An `index` may answer
    the search of rules that need no rows. Raises `StageAgain` if the table changes meanwhile, or if rows and keys are of two
    readings of the topic.
    """
    tasks = max(min(changed.sparkSession.sparkContext.defaultParallelism, -(-records // ROWS_A_TASK)), 1)
    changed = changed.repartition(tasks, *key)
    observed = Observation()
    values = value_columns(changed.columns, key, rules)
    folded = fold(changed, key, values, rules, observed)
    folded.persist(StorageLevel.MEMORY_AND_DISK)  # rows and keys are of one reading of the topic
    last = folded.where(IS_LAST).drop(IS_LAST)
    changes: KeyChanges
    unresolved = frozenset[tuple[int, int]]()

    def keys(*marks: str) -> tuple[pa.Table, StructType, pa.StructArray]:
        """Return the keys with these marks, as far as there are, their Spark schema, and newest records."""
        kept = (mark for mark in (*MARKS, *marks) if mark in last.columns)
        found = last.select(*key, *kept, NEWEST)
        read = found.toArrow()
        newest = read[NEWEST].combine_chunks()
        read = read.drop_columns([NEWEST])
        return read, StructType([found.schema[name] for name in read.column_names]), newest

    def staged(rows: DataFrame) -> Staged:
        return stage(iceberg, table, rows, unique_id=new_id(), at=at, sort=sort)

    try:
        if rules.need_rows:
            read, schema, newest = keys(RECORDS, REPEATED)
            found = ResolvedChanges(
                iceberg,
                table,
                read,
                schema,
                pipeline=pipeline,
                rules=rules,
                staged_us=round(at * 1_000_000),
                new_id=new_id,
                clears=clears,
                newest=newest,
            )
            found.resolve()
            unresolved = unresolved_of(folded, found) if rules.fills else unresolved
            stored = iceberg.spark.table(f"{iceberg.name}.{table}")
            files = staged(rows_to_write(last, changed.columns, values, stored, found, rules, tasks))
            found.check_written(files.rows)
            changes = found
        else:
            files = staged(last.where(~F.col(IS_DELETE)).drop(*MARKS, NEWEST, LEFT_OUT))
            read, schema, newest = keys()
            changes = KeyChanges(
                iceberg,
                table,
                read,
                schema,
                pipeline=pipeline,
                moves=rules.moved,
                clears=clears,
                index=index,
                newest=newest,
                staged_us=round(at * 1_000_000),
            )
    finally:
        folded.unpersist()
    seen = observed.get
    # A lost executor takes what it kept with it. Its part is read again then, and a compacted topic may hold fewer records.
    if read.num_rows != seen["keys"] or (not rules.need_rows and files.rows != changes.writes):
        raise StageAgain("the batch's rows and keys are not those of one reading of the topic", where=f"table {table}")
    if seen["moved"]:
        raise KeysMoved.of(pipeline, table, int(seen["moved"]))
    records, ties, left_out, repeated = (int(seen[name] or 0) for name in ("records", "ties", "left_out", "repeated"))
    repeated = changes.repeated if isinstance(changes, ResolvedChanges) else repeated
    return StagedChanges(files, changes, records - len(unresolved), ties, repeated, left_out, unresolved)
