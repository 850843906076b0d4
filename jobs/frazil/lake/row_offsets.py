"""The partitions and offsets of the rows that a table has, read from the rows themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.lake.commit.fence import StageAgain
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.stage import CATALOG


@dataclass(frozen=True, slots=True)
class Last:
    """The record of a partition's last row: its timestamp in milliseconds since 1970, and the key's bytes.

    `ms` is None if the timestamp is beyond Spark's calendar. The key is known if `has_key`.
    """

    offset: int
    ms: int | None
    key: bytes | None
    has_key: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one partition: from offset `first` to the `last`, `count` of different offsets."""

    first: int
    last: tuple[Last, ...]
    count: int

    @property
    def after(self) -> int:
        """The offset after that of the last row."""
        return self.last[0].offset + 1


def places(rows: DataFrame, topic: str, prefix: str, *, has_key: bool) -> DataFrame:
    """Return partition, offset, timestamp (`ms`) and, if `has_key`, key of a topic's rows; `prefix` begins their columns."""
    return rows.where(F.col(f"{prefix}topic") == topic).select(
        F.col(f"{prefix}partition").alias("partition"),
        F.col(f"{prefix}offset").alias("offset"),
        F.unix_millis(f"{prefix}timestamp").alias("ms"),
        F.col(f"{prefix}key").alias("key") if has_key else F.lit(None).cast("binary").alias("key"),
        F.lit(has_key).alias("has_key"),
    )


def found(rows: DataFrame) -> dict[int, Found]:
    """Return, by partition, what rows there are of those that `places` returned. Rows of one last place may differ."""
    of_place = rows.groupBy("partition", "offset").agg(F.collect_set(F.struct("ms", "key", "has_key")).alias("of"))
    last = F.max_by("of", "offset").alias("last")
    ends = of_place.groupBy("partition").agg(
        F.min("offset").alias("first"), F.max("offset").alias("end"), F.count(F.lit(1)).alias("count"), last
    )
    return {
        row["partition"]: Found(
            row["first"],
            tuple(
                Last(row["end"], of["ms"], None if of["key"] is None else bytes(of["key"]), of["has_key"])
                for of in row["last"]
            ),
            row["count"],
        )
        for row in ends.collect()
    }


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


def snapshot_rows(iceberg: Iceberg, name: str, table: Java, snapshot_id: int) -> tuple[DataFrame, Java]:
    """Return the rows of a snapshot of the loaded `table`, which Spark knows by `name`, and the schema whose names they have.

    It is the snapshot's own, which may be older than a rename. If a column that partitions the table was widened since, Spark would
    take the values of partitions, which are wide, for narrow ones, and fail. Then the table's newest rows are read by its own
    schema. Raises `StageAgain` if they are of another snapshot.
    """
    schema_id, now = table.snapshot(snapshot_id).schemaId(), table.schema()
    is_present = schema_id is None or int(schema_id) == int(now.schemaId())  # nearly always: then nothing else is asked
    then: Java = now if is_present else table.schemas().get(schema_id)
    if is_present or not _is_partition_wider(table, then):
        return iceberg.spark.read.option("versionAsOf", str(snapshot_id)).table(name), then
    rows = iceberg.spark.read.table(name)
    newest = rows._jdf.queryExecution().analyzed().collectLeaves().apply(0).table().table().currentSnapshot()
    if newest is None or int(newest.snapshotId()) != snapshot_id:
        what = f"snapshot {snapshot_id} cannot be read: a column that partitions the table was widened since, and others committed"
        raise StageAgain(what, where=f"table {table.name()}")
    return rows, now


def _is_partition_wider(table: Java, then: Java) -> bool:
    """Return whether values that partition the table have another type than in an earlier schema."""
    fields = [one for spec in table.specs().values() for one in items(spec.fields())]
    sources = {int(one.sourceId()) for one in fields if str(one.transform()) == "identity"}
    types = ((then.findType(number), table.schema().findType(number)) for number in sources)
    return any(None not in pair and str(pair[0]) != str(pair[1]) for pair in types)


def _counted(rows: DataFrame, prefix: str) -> dict[int, int]:
    return {row["p"]: row["count"] for row in rows.groupBy(F.col(f"{prefix}partition").alias("p")).count().collect()}


def quoted(identifier: str) -> str:
    """Return a name of several parts, each in backticks."""
    return ".".join(map(quoted_part, identifier.split(".")))


def quoted_part(name: str) -> str:
    """Return one name in backticks."""
    return f"`{name.replace('`', '``')}`"
