"""Spark with an upsert table, written by hand: the batch is staged as a table, and a copy-on-write `MERGE` takes it from there.

Staging saves the `MERGE` from reading and decoding the topic twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from bench.contenders.merges import MERGE_SETTINGS, merge_statement
from bench.contenders.plain import COORDINATES, read, session
from bench.peers import lake
from bench.peers.flink_state import state_row
from bench.peers.state_topics import IS_DELETE, KEY, loaded, produced, staging_of
from bench.shapes import Shape
from bench.topics import Job, Topic, Way

PROPERTIES = {f"write.{what}.mode": "copy-on-write" for what in ("delete", "update", "merge")}


@contextmanager
def merge_state(job: Job) -> Iterator[Mapping[str, Way]]:
    """Merge the load into an empty table, and the batch into that."""
    catalog = lake.catalog_of(job)
    with session(job) as spark:
        for name, value in MERGE_SETTINGS.items():
            spark.conf.set(name, value)

        def load(topic: Topic, table: str) -> Callable[[], int]:
            lake.create(catalog, table, state_row(job.shape), key=[KEY], more=PROPERTIES)
            return lambda: _merge(spark, job, topic, table, 0, loaded(topic))

        def batch(topic: Topic, table: str) -> Callable[[], int]:
            return lambda: _merge(spark, job, topic, table, loaded(topic), produced(topic))

        def end(topic: Topic, table: str) -> Callable[[], None]:
            return lambda: None

        yield {"load": load, "batch": batch, "end": end}


def last_of_each_key(records: DataFrame, shape: Shape) -> DataFrame:
    """Return the last record of each key as a row of the table, and whether it deletes the row."""
    key, is_delete = F.col("key").cast("string").alias(KEY), F.col("value").isNull().alias(IS_DELETE)
    row = from_avro(F.expr("substring(value, 6)"), shape.schema)
    rows = records.select(
        row.alias("row"), *(F.col(name).alias(f"_kafka_{name}") for name in COORDINATES), key, is_delete
    )
    behind = Window.partitionBy(KEY).orderBy(F.desc("_kafka_offset"))
    last = rows.withColumn("_place", F.row_number().over(behind)).where("_place = 1").drop("_place")
    return last.select("row.*", *(name for name in last.columns if name != "row"))


def _merge(spark: SparkSession, job: Job, topic: Topic, table: str, begin: int, end: int) -> int:
    columns = [field.name for field in state_row(job.shape).fields]
    staging = f"lake.{staging_of(table)}"
    start, stop = (dict.fromkeys(range(topic.partitions), number // topic.partitions) for number in (begin, end))
    last_of_each_key(read(spark, job, topic, start, stop), job.shape).writeTo(staging).using(
        "iceberg"
    ).createOrReplace()
    spark.sql(merge_statement(f"lake.{table}", staging, columns, key=KEY, is_delete=IS_DELETE))
    return end - begin
