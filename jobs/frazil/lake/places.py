"""Places: the partitions and offsets of the rows that a table has, read from the rows themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.lake.jvm import Iceberg
from frazil.lake.stage import CATALOG


@dataclass(frozen=True, slots=True)
class Found:
    """What rows of one partition there are: from offset `first` up to, not including, `after`."""

    first: int
    after: int


def found(spark: SparkSession, table: str, topic: str, prefix: str) -> dict[int, Found]:
    """The first and last row of each partition of the topic. The columns of a row's place begin with `prefix`."""
    rows = spark.table(table).where(F.col(f"{prefix}topic") == topic)
    offset = F.col(f"{prefix}offset")
    ends = rows.groupBy(F.col(f"{prefix}partition").alias("p")).agg(F.min(offset).alias("a"), F.max(offset).alias("z"))
    return {row["p"]: Found(row["a"], row["z"] + 1) for row in ends.collect()}


def rows_of(spark: SparkSession, table: str, topics: Collection[str], prefix: str) -> dict[int, int]:
    """Return how many rows of these topics there are, by partition."""
    rows = spark.table(table).where(F.col(f"{prefix}topic").isin(sorted(topics)))
    return _counted(rows, prefix)


def rows_of_files(
    iceberg: Iceberg, table: str, documents: Sequence[Mapping[str, Any]], prefix: str, *, ticket: str
) -> dict[int, int]:
    """Return how many rows data files of a table have, by partition, though they are in no snapshot.

    The table's own means read them: Spark's do not know each store that a catalog knows. `documents` are the files as JSON;
    `ticket` is an id that nothing else of this driver has.
    """
    loaded = iceberg.load(table)
    sets, cache = iceberg.task_sets(), iceberg.table_cache()
    cache.add(ticket, loaded)
    sets.stageTasks(loaded, ticket, [iceberg.scan_task(loaded, document) for document in documents])
    try:
        return _counted(iceberg.spark.read.table(f"{CATALOG}.`{ticket}`"), prefix)
    finally:
        sets.removeTasks(loaded, ticket)
        cache.remove(ticket)


def _counted(rows: DataFrame, prefix: str) -> dict[int, int]:
    return {row["p"]: row["count"] for row in rows.groupBy(F.col(f"{prefix}partition").alias("p")).count().collect()}


def quoted(identifier: str) -> str:
    """A name of several parts, each in backticks."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in identifier.split("."))
