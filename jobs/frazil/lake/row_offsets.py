"""The partitions and offsets of the rows that a table has, read from the rows themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.stage import CATALOG


@dataclass(frozen=True, slots=True)
class Found:
    """What rows of one partition there are: from offset `first` up to, not including, `after`."""

    first: int
    after: int


def found(spark: SparkSession, table: str, topic: str, prefix: str) -> dict[int, Found]:
    """Return the first and last row of each partition of the topic. The columns of a row's place begin with `prefix`."""
    rows = spark.table(table).where(F.col(f"{prefix}topic") == topic)
    offset = F.col(f"{prefix}offset")
    ends = rows.groupBy(F.col(f"{prefix}partition").alias("p")).agg(F.min(offset).alias("a"), F.max(offset).alias("z"))
    return {row["p"]: Found(row["a"], row["z"] + 1) for row in ends.collect()}


def rows_of(spark: SparkSession, table: str, topics: Collection[str], prefix: str) -> dict[int, int]:
    """Return how many rows of these topics there are, by partition."""
    rows = spark.table(table).where(F.col(f"{prefix}topic").isin(sorted(topics)))
    return _counted(rows, prefix)


def rows_of_files(
    iceberg: Iceberg, table: str, documents: Sequence[Mapping[str, Any]], prefix: str, *, unique_id: str
) -> dict[int, int]:
    """Return how many rows data files of a table have, by partition, though they are in no snapshot; see `files_read`."""
    with files_read(iceberg, iceberg.load(table), documents, unique_id=unique_id) as rows:
        return _counted(rows, prefix)


@contextmanager
def files_read(
    iceberg: Iceberg, table: Java, documents: Sequence[Mapping[str, Any]], *, unique_id: str
) -> Iterator[DataFrame]:
    """Read all rows of data files of a table, whichever snapshots have them; rows that were deleted since are read too.

    The table's own means read them: Spark's do not know each store that a catalog knows. `documents` are the files as JSON;
    `unique_id` is an id that nothing else of this driver has.
    """
    tasks = [iceberg.scan_task(table, document) for document in documents]
    with tasks_read(iceberg, table, tasks, unique_id=unique_id) as rows:
        yield rows


@contextmanager
def tasks_read(iceberg: Iceberg, table: Java, tasks: Sequence[Java], *, unique_id: str) -> Iterator[DataFrame]:
    """Read the rows that scan tasks of a table read; see `files_read`."""
    sets, cache = iceberg.task_sets(), iceberg.table_cache()
    cache.add(unique_id, table)
    sets.stageTasks(table, unique_id, tasks)
    try:
        yield iceberg.spark.read.table(f"{CATALOG}.`{unique_id}`")
    finally:
        sets.removeTasks(table, unique_id)
        cache.remove(unique_id)


def _counted(rows: DataFrame, prefix: str) -> dict[int, int]:
    return {row["p"]: row["count"] for row in rows.groupBy(F.col(f"{prefix}partition").alias("p")).count().collect()}


def quoted(identifier: str) -> str:
    """Return a name of several parts, each in backticks."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in identifier.split("."))
