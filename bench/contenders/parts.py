"""Frazil's steps alone, each contender with one step more, so that differences are the cost of a step.

`read`: Kafka to nowhere. `decode`: Kafka, decoded, routed to the default layout, to nowhere. `files`: the same, to staged
files that are not published. Nothing is planned, counted or committed, and the table's creation is not part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from pyspark.sql import DataFrame

from bench.contenders.product import declared, driver
from bench.topics import Job, Topic, Way
from frazil.clients.registry.client import Registry
from frazil.decode.decoded_columns import SCHEMA_ID
from frazil.decode.record_decoder import RecordDecoder, columns_of
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.ingest.batch.read import consumer_options, read
from frazil.ingest.batch.staging import metadata
from frazil.ingest.plan.ranges import OffsetRange
from frazil.ingest.setup import table_setup
from frazil.job.context import JobContext
from frazil.lake import tables
from frazil.lake.stage import Moment, stage
from frazil.schemas.evolution.merge import merge
from frazil.schemas.evolution.table_mapping import landing

STEPS = ("read", "decode", "files")


@contextmanager
def parts(job: Job) -> Iterator[Mapping[str, Way]]:
    """Return the functions that run a batch up to each step."""
    with driver(job) as (shared, registry):
        yield {step: partial(_ready, job, shared, registry, step) for step in STEPS}


def _ready(
    job: Job, shared: JobContext, registry: Registry, upto: str, topic: Topic, table: str
) -> Callable[[], int | None]:
    project = _projection(job, shared, registry, topic, table)

    def land() -> int | None:
        written = 0
        for ranges in _batches(topic, job.batch_rows):
            records = read(
                shared.spark,
                topic.name,
                ranges,
                options=consumer_options(declared(job, topic, table), shared.kafka),
                isolation="read_committed",
                group=f"bench-{topic.name}",
                headers=True,
            )
            if upto == "files":
                staged = stage(shared.iceberg, table, project(records), unique_id=shared.new_id(), at=0.0)
                written += staged.rows
            else:
                frame = records if upto == "read" else project(records)
                frame.write.format("noop").mode("overwrite").save()
        return written if upto == "files" else None

    return land


def _projection(
    job: Job, shared: JobContext, registry: Registry, topic: Topic, table: str
) -> Callable[[DataFrame], DataFrame]:
    pipeline = declared(job, topic, table)
    writers = writer_schemas(pipeline.topic, registry)
    writers.refresh()
    table_setup.make_tables(shared, pipeline, merge(writers.versions).type)
    landed = landing(tables.columns(shared.iceberg, table), writers.versions)
    decoder = RecordDecoder(values=writers.decoder(landed.target, {}), tombstones=pipeline.write.on_tombstone)
    names = [field.name for field in landed.target.fields]

    def project(records: DataFrame) -> DataFrame:
        rows = decoder.rows(records).select(*columns_of(names), *metadata(schema_id=SCHEMA_ID, struct=False))
        return Moment("_ingested_at", "_kafka_partition").added_to(rows, time.time())

    return project


def _batches(topic: Topic, size: int) -> Iterator[list[OffsetRange]]:
    share = max(size // topic.partitions, 1)
    ends = {p: len(range(p, topic.rows, topic.partitions)) for p in range(topic.partitions)}
    for start in range(0, max(ends.values()), share):
        yield [OffsetRange(p, start, min(start + share, end)) for p, end in ends.items() if start < end]
