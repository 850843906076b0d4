"""Places: the partitions and offsets of the rows that a table has, read from the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.lake.ledger import Offsets


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


def counted(spark: SparkSession, table: str, start: Offsets, end: Offsets, prefix: str) -> Mapping[int, int]:
    """How many rows each partition has from `start` (0 if it does not name the partition) up to, not including, `end`."""
    offset = F.col(f"{prefix}offset")
    within = [
        (F.col(f"{prefix}partition") == p) & (offset >= start.at.get(p, 0)) & (offset < to) for p, to in end.at.items()
    ]
    if not within:
        return {}
    rows = spark.table(table).where((F.col(f"{prefix}topic") == end.topic) & reduce(or_, within))
    return {row["p"]: row["count"] for row in rows.groupBy(F.col(f"{prefix}partition").alias("p")).count().collect()}


def remove_after(spark: SparkSession, table: str, offsets: Offsets) -> None:
    """Remove the dead letters whose record stands at `offsets` or after them; in a partition that they do not name, all."""
    named = ", ".join(str(int(p)) for p in offsets.at)
    after = " OR ".join(f"(partition = {int(p)} AND offset >= {int(o)})" for p, o in offsets.at.items())
    # No DataFrame deletes, and Iceberg's parser drops the arguments of a statement: it holds numbers and a quoted name only.
    spark.sql(f"DELETE FROM {quoted(table)} WHERE partition NOT IN ({named}) OR {after}")  # noqa: S608


def quoted(identifier: str) -> str:
    """A name of several parts, each in backticks."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in identifier.split("."))
