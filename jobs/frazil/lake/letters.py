"""Find the dead letters of single batches: by the run that staged them and the moment of staging.

A batch is a JSON object. One with `staged_us` has it as its dead letters' `rejected_at`, to the microsecond, and `run` as their
`run`: no other batch has both. Version 0.1.0 did not record it: such a batch has its `topic`, its `ranges` (partition ->
[start, end]) and `until_ms`, when it was committed; `run` or `since_ms` then tell it from batches of another life of the topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import CatalogUnavailable
from frazil.lake.jvm import message, thrown
from frazil.lake.ledger import Entry
from frazil.lake.places import quoted

TRIES = 5  # a delete fails if another writer added matching files meanwhile


def batch_of(entry: Entry, *, run: str | None, staged_us: int | None, since_ms: int = 0) -> dict[str, Any]:
    """Return the batch of a commit, as far as it is known."""
    if run is not None and staged_us is not None:
        return {"run": run, "staged_us": staged_us}
    assert entry.start is not None
    assert entry.end is not None
    start, ends = entry.start.at, entry.end.at
    ranges = {str(p): [start.get(p, 0), end] for p, end in ends.items() if end > start.get(p, 0)}
    return {"run": run, "topic": entry.end.topic, "ranges": ranges, "since_ms": since_ms, "until_ms": entry.at_ms}


def condition(batches: Sequence[Mapping[str, Any]]) -> str:
    """Return the SQL condition that the dead letters of these batches meet; it holds numbers and encoded texts only."""
    known: dict[str, list[int]] = {}
    parts = []
    for batch in batches:
        if "staged_us" in batch:
            known.setdefault(batch["run"], []).append(int(batch["staged_us"]))
        elif batch["ranges"]:
            parts.append(_older(batch))
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
        except Py4JJavaError as error:
            failure = f"{thrown(error)}: {message(error)}"
        except PySparkException as error:
            failure = str(error).splitlines()[0]
    if not spark.table(table).where(rows).isEmpty():
        raise CatalogUnavailable(
            f"dead letters could not be removed: {failure}", where=f"table {table}", do="Try again"
        )


def counted(letters: DataFrame, batches: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Return how many dead letters of these batches there are, by partition."""
    rows = letters.where(condition(batches)).groupBy(F.col("partition").alias("p")).count().collect()
    return {row["p"]: row["count"] for row in rows}


def _older(batch: Mapping[str, Any]) -> str:
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
