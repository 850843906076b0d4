"""Find the dead letters of single batches: by the run that staged them and the moment of staging.

A batch is a JSON object. Its dead letters have its `staged_us` as `rejected_at`, to the microsecond, and its `run` as `run`: no
other batch has both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import CatalogUnavailable
from frazil.lake.iceberg_java import Iceberg, said
from frazil.lake.java_classes import Java, items
from frazil.lake.ledger.entry import STAGED_AT, STAGED_BY, Entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.row_offsets import files_read, quoted

TRIES = 5  # a delete fails if another writer added matching files meanwhile


def batch_of(entry: Entry) -> dict[str, Any]:
    """Return the batch of a commit to the table."""
    return {"run": entry.run, "staged_us": staged_us(entry)}


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
        known.setdefault(batch["run"], []).append(int(batch["staged_us"]))
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


def _batches(letters: DataFrame) -> list[dict[str, Any]]:
    rows = letters.select("run", F.unix_micros("rejected_at").alias("at")).distinct().dropna()
    return [{"run": row["run"], "staged_us": row["at"]} for row in rows.orderBy("run", "at").collect()]


def _text(value: str) -> str:
    """Return a text as SQL that nothing in it can end."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)"
