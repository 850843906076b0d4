"""Find the dead letters of single batches: by the run that staged them and the moment of staging.

A batch is a JSON object. One with `staged_us` has it as its dead letters' `rejected_at`, to the microsecond, and `run` as their
`run`: no other batch has both. Version 0.1.0 did not record `staged_us`: the data files of the batch's commit to the dead-letter
table have it. If the table no longer has that commit, the batch has its `topic`, its `ranges` (partition -> [start, end]), its
`run` if it is known, and the times `since_ms` and `until_ms` (when it was committed) between which it was staged. These compare
the clocks of a driver and of a catalog, so they are not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import CatalogUnavailable
from frazil.lake.iceberg_java import Iceberg, said
from frazil.lake.java_classes import Java, items
from frazil.lake.ledger import EVENTS, STAGED_AT, STAGED_BY, UPKEEP, Entry
from frazil.lake.offsets import Offsets
from frazil.lake.row_offsets import files_read, quoted

TRIES = 5  # a delete fails if another writer added matching files meanwhile


def batches_of(
    iceberg: Iceberg,
    side: Java,
    commits: Iterable[Entry],
    deliveries: Sequence[Entry],
    *,
    since_ms: int,
    new_id: Callable[[], str],
) -> list[dict[str, Any]]:
    """Return the batches of a table's commits.

    `deliveries` are the commits to its dead-letter table `side`, as far as that has them. Both are newest first: offsets that
    were landed again have the same commit id. `since_ms` is for commits that have no delivery.
    """
    found = list[dict[str, Any]]()
    same = dict[tuple[str | None, str], Iterator[list[dict[str, Any]]]]()
    for entry in commits:
        run, at = entry.run, staged_us(entry)
        if run is not None and at is not None:
            found.append({"run": run, "staged_us": at})
            continue
        exact = list[dict[str, Any]]()
        if run is not None:
            of_run = _delivered(iceberg, side, entry.commit_id, run, deliveries, new_id)
            exact = next(same.setdefault((entry.commit_id, run), of_run), [])
        found += exact or [batch_by_time(entry, run=run, since_ms=since_ms)]
    return found


def batches_added(iceberg: Iceberg, side: Java, delivery: Entry, *, new_id: Callable[[], str]) -> list[dict[str, Any]]:
    """Return the batches whose dead letters a commit added to their table `side`, which has that commit."""
    run, at = delivery.summary.get(STAGED_BY), staged_us(delivery)
    if run is not None and at is not None:
        return [{"run": run, "staged_us": at}]
    files = [iceberg.file_json(side, f) for f in items(side.snapshot(delivery.snapshot_id).addedDataFiles(side.io()))]
    if not files:
        return []
    with files_read(iceberg, side, files, unique_id=new_id()) as letters:
        return _batches(letters)


def batch_by_time(entry: Entry, *, run: str | None, since_ms: int) -> dict[str, Any]:
    """Return the batch of a commit by its offsets and the times between which it was staged."""
    assert entry.start is not None
    assert entry.end is not None
    start, ends = entry.start.at, entry.end.at
    ranges = {str(p): [start.get(p, 0), end] for p, end in ends.items() if end > start.get(p, 0)}
    return {"run": run, "topic": entry.end.topic, "ranges": ranges, "since_ms": since_ms, "until_ms": entry.at_ms}


def batches_behind(letters: DataFrame, held: Offsets) -> list[dict[str, Any]]:
    """Return the batches with dead letters of a topic from the offsets `held` on; a partition that these lack has all of its.

    They are those that there are now: a batch that lands these offsets again is none of them.
    """
    is_behind = F.col("topic") == held.topic
    for partition, offset in held.at.items():
        is_behind &= (F.col("partition") != partition) | (F.col("offset") >= offset)
    return _batches(letters.where(is_behind))


def condition(batches: Sequence[Mapping[str, Any]]) -> str:
    """Return the SQL condition that the dead letters of these batches meet; it holds numbers and encoded texts only."""
    known: dict[str, list[int]] = {}
    parts = []
    for batch in batches:
        if "staged_us" in batch:
            known.setdefault(batch["run"], []).append(int(batch["staged_us"]))
        elif batch["ranges"]:
            parts.append(_by_time(batch))
    for run, moments in known.items():
        at = ", ".join(f"timestamp_micros({us})" for us in sorted(set(moments)))
        parts.append(f"(run = {_text(run)} AND rejected_at IN ({at}))")
    return " OR ".join(parts) or "false"


def remove(spark: SparkSession, table: str, batches: Sequence[Mapping[str, Any]]) -> None:
    """Delete the dead letters of these batches. Doing so again deletes nothing more, whatever was added since."""
    rows, failure = condition(batches), ""
    for _ in range(TRIES):
        if spark.table(table).where(rows).isEmpty():
            return
        try:
            # No DataFrame deletes, and Iceberg's parser drops the arguments of a statement.
            spark.sql(f"DELETE FROM {quoted(table)} WHERE {rows}")  # noqa: S608
        except (Py4JJavaError, PySparkException) as error:
            failure = said(error)
    if not spark.table(table).where(rows).isEmpty():
        raise CatalogUnavailable(
            f"dead letters could not be removed: {failure}", where=f"table {table}", do="Try again"
        )


def counted(letters: DataFrame, batches: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Return how many dead letters of these batches there are, by partition."""
    rows = letters.where(condition(batches)).groupBy(F.col("partition").alias("p")).count().collect()
    return {row["p"]: row["count"] for row in rows}


def staged_us(entry: Entry) -> int | None:
    """Return when a commit's batch was staged, microseconds since 1970; None where its summary does not say."""
    return int(entry.summary[STAGED_AT]) if STAGED_AT in entry.summary else None


def _delivered(
    iceberg: Iceberg,
    side: Java,
    commit_id: str | None,
    run: str,
    deliveries: Iterable[Entry],
    new_id: Callable[[], str],
) -> Iterator[list[dict[str, Any]]]:
    """Yield what each delivery of a commit id added of a run's batches, of those that do not name their batch."""
    for delivery in deliveries:
        is_batch = EVENTS not in delivery.summary and UPKEEP not in delivery.summary
        if is_batch and delivery.commit_id == commit_id and staged_us(delivery) is None:
            added = batches_added(iceberg, side, delivery, new_id=new_id)
            if own := [batch for batch in added if batch["run"] == run]:
                yield own


def _batches(letters: DataFrame) -> list[dict[str, Any]]:
    rows = letters.select("run", F.unix_micros("rejected_at").alias("at")).distinct().dropna()
    return [{"run": row["run"], "staged_us": row["at"]} for row in rows.orderBy("run", "at").collect()]


def _by_time(batch: Mapping[str, Any]) -> str:
    within = " OR ".join(
        f"(partition = {int(p)} AND offset >= {int(start)} AND offset < {int(end)})"
        for p, (start, end) in batch["ranges"].items()
    )
    run = f"run = {_text(batch['run'])} AND " if batch["run"] is not None else ""
    since, until = int(batch["since_ms"]), int(batch["until_ms"])
    moment = f"rejected_at > timestamp_millis({since}) AND rejected_at <= timestamp_millis({until})"
    return f"({run}topic = {_text(batch['topic'])} AND {moment} AND ({within}))"


def _text(value: str) -> str:
    """Return a text as SQL that nothing in it can end."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)"
