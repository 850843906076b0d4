"""Simple pipelines: Structured Streaming into Iceberg.

`N0`: ten thousand records a trigger, the stream written to the table by Iceberg's own sink. `N1`: one trigger takes what
has come, as a 60-second trigger does, and a function for each batch counts its rows, counts the bad ones and appends the
rest. Both are drained by `availableNow`, so neither waits for a trigger; for N1 that is to its advantage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.contenders.plain import columns, create, decoded, session
from bench.topics import Job, Topic, Way

CAP = 10_000


@contextmanager
def n0(job: Job) -> Iterator[Mapping[str, Way]]:
    """Land capped batches with Iceberg's streaming sink."""
    with session(job) as spark:

        def ready(topic: Topic, table: str) -> Callable[[], None]:
            rows = columns(decoded(_stream(spark, job, topic, {"maxOffsetsPerTrigger": str(CAP)}), topic.records))
            create(spark, rows, table)
            written = rows.writeStream.format("iceberg").outputMode("append").trigger(availableNow=True)
            written = written.option("checkpointLocation", _checkpoint(job, table))
            return lambda: written.toTable(f"lake.{table}").awaitTermination()

        yield {"n0": ready}


@contextmanager
def n1(job: Job) -> Iterator[Mapping[str, Way]]:
    """Land one batch, counted twice and then appended."""
    with session(job) as spark:

        def ready(topic: Topic, table: str) -> Callable[[], int]:
            rows = decoded(_stream(spark, job, topic, {}), topic.records)
            create(spark, columns(rows), table)
            counted: list[int] = []

            def append(batch: DataFrame, number: int) -> None:
                total, bad = batch.count(), batch.where("row is null").count()
                columns(batch.where("row is not null")).writeTo(f"lake.{table}").append()
                counted.append(total - bad)

            query = rows.writeStream.foreachBatch(append).trigger(availableNow=True)
            query = query.option("checkpointLocation", _checkpoint(job, table))

            def land() -> int:
                query.start().awaitTermination()
                return sum(counted)

            return land

        yield {"n1": ready}


def _stream(spark: SparkSession, job: Job, topic: Topic, options: Mapping[str, str]) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", job.environment.kafka.bootstrap)
    return reader.option("subscribe", topic.name).option("startingOffsets", "earliest").options(**options).load()


def _checkpoint(job: Job, table: str) -> str:
    return str(Path(job.folder) / "checkpoints" / table)
