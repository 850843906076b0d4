"""Stage the changes of a table of current state: of each key in the batch the last record, as a row or as a delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from frazil.errors import KeysMoved
from frazil.lake.deletes.key_changes import KeyChanges
from frazil.lake.deletes.positions import HASH, IS_DELETE, MARKS, PARTITION, key_hash
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.stage import Staged, stage

_PARTITION, _OFFSET = "_kafka_partition", "_kafka_offset"
ROWS_A_TASK = 50_000
"""Spark's own number of tasks after a shuffle, 200, would be as many files of a batch and seconds of starting tasks."""
_RANK, _NEXT = "_frazil_rank", "_frazil_next"


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """The rows of a batch in files, the keys that it writes and deletes, and of how many `records` these are the last ones."""

    files: Staged
    changes: KeyChanges
    records: int


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
) -> StagedChanges:
    """Fold the changes to the last one of each key, and stage their rows; `new_id`, `at` and `sort` are as in `stage`.

    `changed` has the table's columns, those of the `key` among them, and `IS_DELETE` for a record without a value. Within a
    partition the higher offset is the later one. Records of one key in two partitions have no order: that raises `KeysMoved`,
    which names the `pipeline`. `records` is about how many there are: it decides how many tasks fold them, and so how many files
    they become.
    """
    tasks = min(changed.sparkSession.sparkContext.defaultParallelism, -(-records // ROWS_A_TASK))
    changed = changed.repartition(max(tasks, 1), *key)
    newest_first = Window.partitionBy(*key).orderBy(F.col(_PARTITION).desc(), F.col(_OFFSET).desc())
    observed = Observation()
    ranked = changed.withColumns(
        {_RANK: F.row_number().over(newest_first), _NEXT: F.lead(_PARTITION).over(newest_first)}
    )
    ranked = ranked.observe(
        observed,
        F.count(F.lit(1)).alias("records"),
        F.count_if(F.col(_NEXT) != F.col(_PARTITION)).alias("moved"),
    )
    last = ranked.where(F.col(_RANK) == 1).drop(_RANK, _NEXT)
    last = last.withColumns({HASH: key_hash(changed, key), PARTITION: F.col(_PARTITION)})
    last.persist(StorageLevel.MEMORY_AND_DISK)  # rows and keys are of one reading of the topic
    try:
        files = stage(
            iceberg,
            table,
            last.where(~F.col(IS_DELETE)).drop(*MARKS),
            unique_id=new_id(),
            at=at,
            sort=sort,
        )
        keys = last.select(*key, *MARKS)
        changes = KeyChanges(iceberg, table, keys.toArrow(), keys.schema, pipeline=pipeline)
    finally:
        last.unpersist()
    seen = observed.get
    if seen["moved"]:
        raise KeysMoved.of(pipeline, table, int(seen["moved"]))
    return StagedChanges(files, changes, int(seen["records"] or 0))
