"""Ours: the product through its own driver, in its default layout, and with the columns that the spike writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.clients.registry import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration import Limits, Pipeline, Table
from frazil.declaration import Topic as DeclaredTopic
from frazil.ingest import drive
from frazil.ingest.report import Reporter
from frazil.ingest.run import Driver, Ingestion
from frazil.ingest.writers import Writers
from frazil.lake import tables
from frazil.local.jars import spark_jars
from frazil.schemas.merge import merge
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Struct
from tests.bench.contenders.plain import COORDINATES
from tests.bench.topics import Job, Topic

PATIENT = 3600  # a target of seconds that no batch reaches: the batch size is the bench's, not learnt


@contextmanager
def ours(job: Job) -> Iterator[Callable[[Topic, str], int | None]]:
    """What `frazil run --once` does, the table and its dead letters made in it too."""
    with driver(job) as (shared, registry):
        drive.prove([declared(job, job.warm, job.warm_table)], shared)

        def land(topic: Topic, table: str) -> int:
            pipeline = declared(job, topic, table)
            outcome = drive.drain([pipeline], shared, registry, _silent, probe=False)[pipeline.name]
            if outcome.error:
                raise outcome.error
            return outcome.total.written

        yield land


@contextmanager
def ours_as_spike(job: Job) -> Iterator[Callable[[Topic, str], int | None]]:
    """The whole of ours, account and decision included, but for the metadata columns: the spike's four.

    No declaration says so; the table is made beforehand, and the run's projection is replaced.
    """
    with driver(job) as (shared, registry):
        drive.prove([declared(job, job.warm, job.warm_table)], shared)

        def land(topic: Topic, table: str) -> int:
            pipeline = declared(job, topic, table, headers=False)
            writers = Writers(pipeline.topic, registry)
            _create_with_four(shared, pipeline, writers)
            report = Reporter(_silent, pipeline.name, topic.name, shared.run, shared.clock)
            return _WithFour(pipeline, shared, writers, report).drain().written

        yield land


class _WithFour(Ingestion):
    def _metadata(self, at: datetime) -> list[Column]:
        return [F.col(name).alias(f"_kafka_{name}") for name in COORDINATES]


def _create_with_four(shared: Driver, pipeline: Pipeline, writers: Writers) -> None:
    writers.refresh()
    row, names = merge(writers.versions).type, {f"_kafka_{name}" for name in COORDINATES}
    four = [field for field in metadata_fields(struct=False) if field.name in names]
    properties = tables.properties(
        format_version=2,
        target_file_size_bytes=pipeline.table.target_file_size_bytes,
        keep_snapshots=pipeline.table.keep_snapshots,
        offset_columns=("_kafka_partition", "_kafka_offset"),
        declared=pipeline.table.properties,
    )
    tables.create(shared.iceberg, pipeline.table.identifier, Struct((*row.fields, *four)), properties=properties)


def declared(job: Job, topic: Topic, table: str, **more: Any) -> Pipeline:
    """The pipeline that lands a topic in batches of the bench's size."""
    return Pipeline(
        topic=DeclaredTopic(topic.name, value_format=job.shape.value_format, **more),
        table=Table(table, properties=dict(job.properties)),
        limits=Limits(max_rows=job.batch_rows, first_rows=job.batch_rows, target_seconds=PATIENT),
    )


@contextmanager
def driver(job: Job) -> Iterator[tuple[Driver, Registry]]:
    """The product's driver, with the bench's heap, and the registry."""
    environment, secrets = job.environment, Secrets(os.environ)
    jars = [jar for jar in spark_jars() if "aws" not in jar.name]
    settings = job.spark_settings
    assert environment.registry is not None
    with drive.driver(environment, secrets, jars=jars, master=f"local[{job.cores}]", settings=settings) as shared:
        yield shared, Registry.of(environment.registry, secrets)


def _silent(event: Mapping[str, Any]) -> None:
    if event["event"] == "again":
        raise RuntimeError(f"a batch was done again: {event}")
