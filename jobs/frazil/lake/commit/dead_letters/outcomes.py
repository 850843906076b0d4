"""Give dead letters their outcome: their files are replaced in the commit that finishes the decision about them.

A part of a decision's document may say `outcomes`: batches (see `of_batches`), each with ranges of offsets by partition (`at`), the
`outcome` that these dead letters get, and for a discard the `why`. Each counts one more attempt, but for a discard. It may say
`reopen`: dead letters that got an outcome by a decision after this number are open again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import CatalogUnavailable
from frazil.lake.commit.request import Committer, Rewritten
from frazil.lake.java_classes import Java
from frazil.lake.row_offsets import quoted, snapshot_rows, tasks_read
from frazil.lake.stage import write_files
from frazil.schemas.dead_letter_outcomes import LANDED, DeadLetterOutcome

OUTCOME, WHY, ATTEMPTS, DECISION = "outcome", "outcome_reason", "attempts", "decision"
_PLACE = ("run", "rejected_at", "partition", "offset")
_MARKS = (
    "run string, staged_us long, partition int, first long, next long, mark_outcome string, mark_why string, tries int"
)
_MARKED, _PATH = "mark_tries", "mark_path"


def landed(letters: DataFrame, number: int) -> dict[int, int]:
    """Return how many dead letters count as landed by decisions up to `number`, by partition."""
    if DECISION not in letters.columns:
        return {}
    wanted = letters.where(F.col(OUTCOME).isin(list(LANDED)) & (F.col(DECISION) <= number))
    return {row["p"]: row["count"] for row in wanted.groupBy(F.col("partition").alias("p")).count().collect()}


def rewriting(job: Committer, part: Mapping[str, Any], number: int) -> Callable[[Java], Rewritten | None]:
    """Return what replaces the files of dead letters that get another outcome by decision `number`, for a loaded table."""
    made: dict[int, Rewritten | None] = {}

    def rewritten(table: Java) -> Rewritten | None:
        if not (part.get("outcomes") or "reopen" in part) or (head := table.currentSnapshot()) is None:
            return None
        snapshot_id = int(head.snapshotId())
        if snapshot_id not in made:
            made[snapshot_id] = _rewritten(job, table, snapshot_id, part, number)
        return made[snapshot_id]

    return rewritten


def _rewritten(job: Committer, table: Java, snapshot_id: int, part: Mapping[str, Any], number: int) -> Rewritten | None:
    iceberg = job.iceberg
    name = quoted(f"{iceberg.name}.{part['table']}")
    rows, _ = snapshot_rows(iceberg, name, table, snapshot_id)
    if DECISION not in rows.columns:
        return None  # no dead letter has an outcome, and columns are added before one gets some
    marks = _marks(iceberg.spark, part.get("outcomes") or ())
    placed = _near(rows, part).select(*_PLACE, DECISION, F.col("_file").alias(_PATH))
    paths = [row[0] for row in _marked(placed, marks, part).where(_is_changed(part)).select(_PATH).distinct().collect()]
    if not paths:
        return None
    tasks = _tasks(table, snapshot_id, set(paths))
    with tasks_read(iceberg, table, tasks, unique_id=job.new_id()) as held:
        files = write_files(iceberg, table, _changed(_marked(held, marks, part), part, number), unique_id=job.new_id())
    _check(tasks, files, part["table"])
    return Rewritten(tuple(task.file() for task in tasks), files)


def _marks(spark: SparkSession, outcomes: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return the place of each dead letter that gets an outcome, or was tried, once."""
    frame = spark.createDataFrame(list(_ranges(outcomes)), _MARKS)
    every = frame.withColumn("offset", F.explode(F.sequence("first", F.col("next") - 1)))
    places = every.select(
        "run",
        F.timestamp_micros("staged_us").alias("rejected_at"),
        "partition",
        "offset",
        "mark_outcome",
        "mark_why",
        F.col("tries").alias(_MARKED),
    )
    return places.dropDuplicates([*_PLACE])


def _ranges(outcomes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    for one in outcomes:
        outcome = one.get("outcome")
        tries = 0 if outcome == DeadLetterOutcome.DISCARDED else 1
        for partition, ranges in one["at"].items():
            for first, after in ranges:
                yield one["run"], one["staged_us"], int(partition), first, after, outcome, one.get("why"), tries


def _near(rows: DataFrame, part: Mapping[str, Any]) -> DataFrame:
    """Return the rows of the days of the batches that are named: the table is partitioned by them."""
    moments = [one["staged_us"] for one in part.get("outcomes") or ()]
    if not moments or "reopen" in part:
        return rows
    first, last = (F.timestamp_micros(F.lit(moment)) for moment in (min(moments), max(moments)))
    return rows.where(F.col("rejected_at").between(first, last))


def _marked(rows: DataFrame, marks: DataFrame, part: Mapping[str, Any]) -> DataFrame:
    if not part.get("outcomes"):
        nothing = F.lit(None)
        return rows.withColumns(
            {"mark_outcome": nothing.cast("string"), "mark_why": nothing.cast("string"), _MARKED: nothing.cast("int")}
        )
    return rows.join(F.broadcast(marks), [*_PLACE], "left")


def _is_changed(part: Mapping[str, Any]) -> Column:
    is_marked = F.col(_MARKED).isNotNull()
    if "reopen" not in part:
        return is_marked
    return is_marked | F.coalesce(F.col(DECISION) > int(part["reopen"]), F.lit(False))


def _changed(rows: DataFrame, part: Mapping[str, Any], number: int) -> DataFrame:
    """Return all rows of the files, those with a mark changed."""
    is_marked, is_reopened = F.col(_MARKED).isNotNull(), F.lit(False)
    if "reopen" in part:
        is_reopened = F.coalesce(F.col(DECISION) > int(part["reopen"]), F.lit(False))
    nothing = F.lit(None)
    changed = {
        OUTCOME: F.when(is_marked, F.col("mark_outcome")).when(is_reopened, nothing).otherwise(F.col(OUTCOME)),
        WHY: F.when(is_marked, F.col("mark_why")).when(is_reopened, nothing).otherwise(F.col(WHY)),
        DECISION: F.when(is_marked, F.lit(number)).when(is_reopened, nothing).otherwise(F.col(DECISION)),
        ATTEMPTS: F.when(is_marked, F.coalesce(F.col(ATTEMPTS), F.lit(0)) + F.col(_MARKED)).otherwise(F.col(ATTEMPTS)),
    }
    return rows.withColumns(changed).drop("mark_outcome", "mark_why", _MARKED)


def _tasks(table: Java, snapshot_id: int, paths: set[str]) -> list[Java]:
    """Return the scan tasks of these files, with the deletes of their rows."""
    found = []
    with closing(table.newScan().useSnapshot(snapshot_id).planFiles()) as planned:
        tasks = planned.iterator()
        while tasks.hasNext():
            task = tasks.next()
            if str(task.file().location()) in paths:
                found.append(task)
    return found


def _check(tasks: Sequence[Java], files: Sequence[Java], table: str) -> None:
    """Raise `CatalogUnavailable` if other rows were written than read, as far as no delete file says that some are gone."""
    if any(not task.deletes().isEmpty() for task in tasks):
        return
    read, written = (sum(int(one.recordCount()) for one in of) for of in ([task.file() for task in tasks], files))
    if read != written:
        what = f"{written} dead letters were written in place of {read}: nothing was changed"
        raise CatalogUnavailable(what, where=f"table {table}", do="Run again")
