"""Read an offset range as a lazy frame of records, exactly those between start and end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.clients.kafka import Kafka
from frazil.clients.kafka_records import Record
from frazil.declaration.pipeline import Pipeline
from frazil.ingest.plan.fingerprint import TIMESTAMPS
from frazil.ingest.plan.ranges import OffsetRange, without

HEADERS = "array<struct<key:string,value:binary>>"
# Measured for 100-byte records: larger fetches than Kafka's defaults; a task reads one partition as a stream.
FETCH = {
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.max.poll.records": "20000",
    # A range ends where records end, so a fetch need never wait for more. Spark fetches ahead, and what it asks the broker next
    # queues behind a fetch that waits at the log's end: 0.5 s twice a batch with Kafka's default (a small batch: 1.5 s, now 0.4).
    "kafka.fetch.max.wait.ms": "1",
}
# A consumer that is kept between batches keeps one fetch: this much of a partition, and this much of all together.
FETCH_BYTES, FETCHED_BYTES, LEAST_FETCH_BYTES = 8 << 20, 512 << 20, 256 << 10
SPLIT_ROWS = 50_000  # a range shorter than this is not worth a task of its own
SEPARATE_RANGES = 16  # so many ranges have a task, and a file, each, however short they are
LEAST_TASKS = 8  # of more ranges than that
_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp_ms bigint, timestampType int, "
    f"headers {HEADERS}"
)
# A timestamp of Spark's Kafka source as the record has it. The source takes days before 1582-10-15 for days of the Julian calendar:
# it keeps their numbers of year, month and day, and moves the instant. The difference in days follows from the century, which
# begins on the first of March. It is one text, as each function is a call into the JVM, and there are 25 of them.
_YEAR = "(year(timestamp) - if(month(timestamp) < 3, 1, 0))"
_DAYS = f"(cast(floor({_YEAR} / 100) - floor({_YEAR} / 400) - 2 as bigint))"
_UNSHIFTED = f"""
    if(timestamp < timestamp_seconds(-12219292800L),
       timestamp_micros(unix_micros(timestamp) + {_DAYS} * 86400000000L), timestamp)
"""


def read(
    spark: SparkSession,
    topic: str,
    ranges: Sequence[OffsetRange],
    *,
    options: Mapping[str, str],
    isolation: str,
    group: str,
    headers: bool,
    by_driver: Sequence[Record] = (),
) -> DataFrame:
    """Read `ranges`: key, value, topic, partition, offset, timestamp, timestampType and headers (null unless wanted).

    `options` are those of `consumer_options`, and `group` is one that `ConsumerGroups` has for them: executors keep consumers from
    one batch to the next. Records that no longer exist make the read fail; the result never comes out short.

    `by_driver` are records that the driver has read, in each partition a stretch from its first to its last: Spark reads what
    lies before and behind. A timestamp that Spark cannot hold is null in them.

    More than `SEPARATE_RANGES` ranges share tasks, so that their number and that of files follow the records.
    """
    rows = sum(len(r) for r in ranges)
    parts: list[DataFrame] = []
    for some in without(ranges, [(r.partition, r.offset) for r in by_driver]):
        reader = (
            spark.read.format("kafka")
            .options(**options)
            .option("assign", json.dumps({topic: [r.partition for r in some]}))
            .option("startingOffsets", json.dumps({topic: {str(r.partition): r.start for r in some}}))
            .option("endingOffsets", json.dumps({topic: {str(r.partition): r.end for r in some}}))
            .option("kafka.group.id", group)
            .option("kafka.isolation.level", isolation)
            .option("failOnDataLoss", "true")
            .option("includeHeaders", str(headers).lower())
        )
        tasks = min(spark.sparkContext.defaultParallelism, rows // SPLIT_ROWS)
        if tasks > len(some):
            reader = reader.option("minPartitions", str(tasks))
        parts.append(as_records(reader.load()))
    if by_driver:
        parts.append(_frame(spark, topic, by_driver, headers=headers))
    records = reduce(DataFrame.unionByName, parts)
    shared = max(LEAST_TASKS, rows // SPLIT_ROWS)
    return records.coalesce(shared) if len(ranges) > max(SEPARATE_RANGES, shared) else records


def as_records(found: DataFrame) -> DataFrame:
    """Return what Spark's Kafka source returns as the records of `read`."""
    without_headers = {} if "headers" in found.columns else {"headers": F.lit(None).cast(HEADERS)}
    return found.withColumns({"timestamp": F.expr(_UNSHIFTED), **without_headers})


def is_in(ranges: Sequence[OffsetRange]) -> Column:
    """Return whether a record is in `ranges`."""

    def limit(limits: Mapping[int, int]) -> Column:
        every = ",".join(str(limits.get(p, 0)) for p in range(max(limits, default=0) + 1))
        return F.get(F.split(F.lit(every), ",").cast("array<bigint>"), F.col("partition"))

    offset = F.col("offset")
    start, end = limit({r.partition: r.start for r in ranges}), limit({r.partition: r.end for r in ranges})
    return F.coalesce((offset >= start) & (offset < end), F.lit(False))


def beyond_spark(pipeline: Pipeline, kafka: Kafka, ranges: Sequence[OffsetRange]) -> list[Record]:
    """Read, in the driver, the records whose timestamp Spark's source cannot hold, and in each partition those between.

    Raises `MemoryError` if they are too many for the driver.
    """
    ends = {r.partition: (r.start, r.end) for r in ranges}
    return kafka.stretches(
        pipeline.topic.name, ends, pipeline.isolation, lambda record: record.timestamp_ms not in TIMESTAMPS
    )


def consumer_options(pipeline: Pipeline, kafka: Kafka) -> dict[str, str]:
    """Return bootstrap servers, security and fetches as Spark's `kafka.` options, secrets included."""
    return {
        **FETCH,
        "kafka.max.partition.fetch.bytes": str(fetch_bytes(kafka.partition_count())),
        **kafka.java_options(),
        **{f"kafka.{key}": value for key, value in pipeline.kafka.options.items()},
    }


def fetch_bytes(partitions: int) -> int:
    """Return how much of a partition is fetched at once by a driver that reads so many, of all topics.

    It is a power of two, so that it changes a few times only: consumers with other options are new ones.
    """
    share = FETCHED_BYTES // max(partitions, 1)
    return max(min(FETCH_BYTES, 1 << share.bit_length() - 1), LEAST_FETCH_BYTES)


def _frame(spark: SparkSession, topic: str, records: Sequence[Record], *, headers: bool) -> DataFrame:
    rows = [
        (
            None if r.key is None else bytearray(r.key),
            None if r.value is None else bytearray(r.value),
            topic,
            r.partition,
            r.offset,
            r.timestamp_ms if r.timestamp_ms in TIMESTAMPS else None,
            r.timestamp_type,
            [(name, None if value is None else bytearray(value)) for name, value in r.headers] if headers else None,
        )
        for r in records
    ]
    frame = spark.createDataFrame(rows, _SCHEMA)
    return frame.withColumn("timestamp", F.timestamp_millis("timestamp_ms")).drop("timestamp_ms")
