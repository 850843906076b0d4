"""Read: an offset range -> a lazy frame of records, exactly those between start and end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.ingest.ranges import OffsetRange

# Measured for 100-byte records: larger fetches than Kafka's defaults; a task reads one partition as a stream.
HEADERS = "array<struct<key:string,value:binary>>"
FETCH = {
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.max.poll.records": "20000",
    # A range ends where records end, so a fetch need never wait for more. Spark fetches ahead, and what it asks the broker next
    # queues behind a fetch that waits at the log's end: 0.5 s twice a batch with Kafka's default (a small batch: 1.5 s, now 0.4).
    "kafka.fetch.max.wait.ms": "1",
}
SPLIT_ROWS = 50_000  # a range shorter than this is not worth a task of its own


def read(
    spark: SparkSession,
    topic: str,
    ranges: Sequence[OffsetRange],
    *,
    options: Mapping[str, str],
    isolation: str,
    group: str,
    headers: bool,
) -> DataFrame:
    """The records of `ranges`: key, value, topic, partition, offset, timestamp, timestampType and headers (null unless wanted).

    `options` hold bootstrap servers and security as Spark's `kafka.` options. `group` is fixed for a pipeline, so executors
    keep their consumers from one batch to the next. Records that are gone make the read fail, never come out short.
    """
    rows = sum(len(r) for r in ranges)
    reader = (
        spark.read.format("kafka")
        .options(**{**FETCH, **options})
        .option("assign", json.dumps({topic: [r.partition for r in ranges]}))
        .option("startingOffsets", json.dumps({topic: {str(r.partition): r.start for r in ranges}}))
        .option("endingOffsets", json.dumps({topic: {str(r.partition): r.end for r in ranges}}))
        .option("kafka.group.id", group)
        .option("kafka.isolation.level", isolation)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", str(headers).lower())
    )
    tasks = min(spark.sparkContext.defaultParallelism, rows // SPLIT_ROWS)
    if tasks > len(ranges):
        reader = reader.option("minPartitions", str(tasks))
    records = reader.load()
    return records if headers else records.withColumn("headers", F.lit(None).cast(HEADERS))
