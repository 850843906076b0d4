"""Frazil with its own driver, in its default layout, and with the columns that the spike writes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from bench.contenders.plain import COORDINATES
from bench.topics import Job, Topic, Way
from frazil.cli.local_spark import jars_here, settings_here
from frazil.clients.registry.client import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration import (
    Append,
    Changelog,
    Debezium,
    Hmac,
    Limits,
    Pipeline,
    Secret,
    Shape,
    Spark,
    Table,
    Upsert,
    WriteMode,
)
from frazil.declaration import Topic as DeclaredTopic
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.envelopes.chosen_envelope import envelope
from frazil.ingest import loop, runner
from frazil.ingest.batch.staging import Staging
from frazil.ingest.loop import Ingestion
from frazil.ingest.reporting.events import Reporter
from frazil.ingest.schema import evolution
from frazil.job.context import JobContext
from frazil.job.session import open_job
from frazil.lake import layout, tables
from frazil.local.toolchain import class_path
from frazil.schemas.evolution.merge import merge
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Struct

WRITE_MODES: Mapping[str, WriteMode] = {"ours": Append(), "state": Upsert(), "changelog": Changelog()}
EVERY_ROW = Shape(where="id >= 0 and at > timestamp '2000-01-01 00:00:00'")
"""A condition that all rows match, so that the same rows land."""
_TEN_COLUMNS = (
    "id, at, items, session, `user`.id as user_id, `user`.country as country, upper(status) as status, shipping.*, "
    "total * 1.25 as gross, coalesce(coupon, '') as coupon"
)
SHAPED = {
    "filtered": EVERY_ROW,
    "selected": Shape(where=EVERY_ROW.where, select=_TEN_COLUMNS),
    "masked": Shape(mask={"session": Hmac(Secret(env="BENCH_MASK_KEY"))}),
}
PATIENT = 3600  # a target of seconds that no batch reaches: the batch size is the bench's, not learnt


@contextmanager
def ours(job: Job) -> Iterator[Mapping[str, Way]]:
    """Run the batches of `frazil run` once its tables exist: plan, stage, count, commit. Each write mode is a way."""
    with driver(job) as (shared, registry):

        def ready(write: WriteMode, topic: Topic, table: str, **more: Any) -> Callable[[], int]:
            pipeline = declared(job, topic, table, write=write, **more)
            return landing(ingestion(shared, registry, pipeline))

        modes = {way: partial(ready, write) for way, write in WRITE_MODES.items()}
        yield {**modes, **{way: partial(ready, Append(), shape=shape) for way, shape in SHAPED.items()}}


@contextmanager
def ours_as_spike(job: Job) -> Iterator[Mapping[str, Way]]:
    """Run all of Frazil, but with the spike's four metadata columns.

    No declaration does this: the table is created beforehand, the projection of the run is replaced, and so is the check that
    the table has a column for keys.
    """
    evolution.check_bytes = lambda table, layout: None
    with driver(job) as (shared, registry):

        def ready(topic: Topic, table: str) -> Callable[[], int]:
            pipeline = declared(job, topic, table, headers=False)
            _create_with_four(shared, pipeline, writer_schemas(pipeline.topic, registry))
            return landing(ingestion(shared, registry, pipeline, of=_WithFour))

        yield {"ours_as_spike": ready}


def landing(ingestion: Ingestion) -> Callable[[], int]:
    """Return the landing of what the topic has, for a run whose tables and ledger exist. It returns all rows so far."""
    assert ingestion._ready(), "the topic has no schema"

    def land() -> int:
        while ingestion.poll():
            pass
        total = ingestion.total
        return total.read if ingestion.pipeline.envelope is not None else total.written

    return land


def timed_commits(behind: Callable[[list[float]], None] = lambda seconds: None) -> list[float]:
    """Return a list that gets the seconds of each commit of this process; `behind` is called with it after each."""
    decide, seconds = loop.decide_and_finish, list[float]()

    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.monotonic()
        try:
            return decide(*arguments, **named)
        finally:
            seconds.append(time.monotonic() - began)
            behind(seconds)

    loop.decide_and_finish = timed
    return seconds


class _FourColumns(Staging):
    def _moment(self) -> None:
        return None

    def _metadata(self) -> list[Column]:
        return [F.col(name).alias(f"_kafka_{name}") for name in COORDINATES]


class _WithFour(Ingestion):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        staging = self._evolution.staging

        def with_four() -> Staging:
            usual = staging()
            return _FourColumns(usual.pipeline, usual.job, usual.mode, usual.decoding, usual.layout)

        self._evolution.staging = with_four  # type: ignore[method-assign]


def _create_with_four(shared: JobContext, pipeline: Pipeline, writers: WriterSchemas) -> None:
    writers.refresh()
    row, names = merge(writers.versions).type, {f"_kafka_{name}" for name in COORDINATES}
    four = [field for field in metadata_fields(struct=False) if field.name in names]
    properties = layout.properties(
        format_version=2,
        target_file_size_bytes=pipeline.table.target_file_size_bytes,
        keep_snapshots=pipeline.table.snapshots.newest,
        offset_columns=("_kafka_topic", "_kafka_partition", "_kafka_offset"),
        declared=pipeline.table.properties,
    )
    tables.create(shared.iceberg, pipeline.table.identifier, Struct((*row.fields, *four)), properties=properties)


def declared(job: Job, topic: Topic, table: str, **more: Any) -> Pipeline:
    """Return the pipeline that lands a topic in batches of the bench's size."""
    keys: dict[str, Any] = {"key": "text"} if isinstance(more.get("write"), Upsert) else {}
    if topic.records.changes:
        keys, more = {"key": "avro"}, {**more, "envelope": Debezium()}
    return Pipeline(
        topic=DeclaredTopic(topic.name, value=topic.records.value_format, **keys),
        table=Table(table, format_version=job.format_version),
        engine=Spark(limits=Limits(max_rows=job.batch_rows, first_rows=job.batch_rows, target_seconds=PATIENT)),
        **more,
    )


@contextmanager
def driver(job: Job, **more: Any) -> Iterator[tuple[JobContext, Registry]]:
    """Start Frazil's driver like `frazil run`, with the bench's heap and registry."""
    environment, secrets = job.environment, Secrets({**os.environ, "BENCH_MASK_KEY": "of the bench alone"})
    settings = {**settings_here(job.heap), "spark.driver.memory": job.heap}
    assert environment.registry is not None
    with class_path.of_new_jvms(jars_here(environment)):
        begun = open_job(environment, secrets, master=f"local[{job.cores}]", settings=settings, **more)
        with begun as shared:
            yield shared, Registry.of(environment.registry, secrets)


def heard(event: Mapping[str, Any]) -> None:
    """Hear a run's event. Raises if a batch was done again, whose figures would count twice."""
    if event["event"] == "batch_retried":
        raise RuntimeError(f"a batch was done again: {event}")


def ingestion(
    shared: JobContext,
    registry: Registry,
    pipeline: Pipeline,
    *,
    hear: Callable[[Mapping[str, Any]], None] = heard,
    of: type[Ingestion] = Ingestion,
) -> Ingestion:
    """Return the ingestion of a pipeline. By default it raises if a batch was done again."""
    report = Reporter(hear, pipeline.name, pipeline.topic.name, shared.run, shared.clock)
    writers = writer_schemas(pipeline.topic, registry, envelope=envelope(pipeline.envelope))
    return of(pipeline, shared, writers, report)


def drained(pipelines: Sequence[Pipeline], shared: JobContext, registry: Registry) -> int:
    """Land what the topics have, as `frazil run`. Return the written rows. Raises the error of a pipeline."""
    outcomes = runner.drain(pipelines, shared, registry, heard, probe=False).values()
    for outcome in outcomes:
        if outcome.error:
            raise outcome.error
    return sum(outcome.total.written for outcome in outcomes)
