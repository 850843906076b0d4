"""Drive: one driver, many pipelines. Each has a thread and a fair share of the cores; one's error is not another's."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frazil.clients.kafka import Kafka
from frazil.clients.registry import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration import Pipeline
from frazil.declaration.environment import Environment
from frazil.errors import Fenced, FrazilError
from frazil.ingest.failpoints import Failpoints
from frazil.ingest.report import Event, Reporter, Sink, Total
from frazil.ingest.run import Driver, Ingestion
from frazil.ingest.writers import Writers
from frazil.lake.jvm import Iceberg
from frazil.lake.probe import prove_fence
from frazil.lake.session import session
from frazil.version import VERSION

PARALLEL = 16  # pipelines at once; more threads than this only wait for cores


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one pipeline's run ended: what it landed, and the error that ended it, if one did."""

    total: Total
    error: FrazilError | None = None


@contextmanager
def driver(
    environment: Environment,
    secrets: Secrets,
    *,
    jars: Sequence[Path] = (),
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    failpoints: str = "",
    stopping: threading.Event | None = None,
) -> Iterator[Driver]:
    """A driver: the Spark session and clients that its pipelines share. The session ends with it."""
    spark = session(environment, secrets.read, name="frazil", jars=jars, master=master, settings=settings)
    stop = stopping or threading.Event()
    jvm: Any = spark._jvm

    def wait(seconds: float) -> None:
        stop.wait(seconds)

    try:
        yield Driver(
            spark=spark,
            iceberg=Iceberg(spark, environment.catalog.name),
            kafka=Kafka(environment.kafka, secrets),
            run=uuid.uuid4().hex,
            version=VERSION,
            clock=time.time,
            wait=wait,
            ticket=lambda: uuid.uuid4().hex,
            reach=Failpoints(failpoints, lambda: int(jvm.java.lang.ProcessHandle.current().pid())),
            stopping=stop.is_set,
        )
    finally:
        spark.stop()


def drain(
    pipelines: Sequence[Pipeline], shared: Driver, registry: Registry | None, sink: Sink, *, probe: bool = True
) -> dict[str, Outcome]:
    """Land all pipelines up to the stable offsets seen at start; returns each one's outcome by name."""
    if probe:
        prove(pipelines, shared)
    with ThreadPoolExecutor(min(len(pipelines), PARALLEL), thread_name_prefix="pipeline") as threads:
        runs = {p.name: threads.submit(_drain_one, p, shared, registry, sink) for p in pipelines}
        return {name: run.result() for name, run in runs.items()}


def prove(pipelines: Sequence[Pipeline], shared: Driver) -> None:
    """Prove the catalog's fence in the first pipeline's namespace. Raises `FenceUnproven`."""
    if pipelines:
        prove_fence(shared.iceberg, pipelines[0].table.namespace, ticket=shared.ticket())


def _drain_one(pipeline: Pipeline, shared: Driver, registry: Registry | None, sink: Sink) -> Outcome:
    return _guarded(pipeline, shared, registry, sink, lambda ingestion: ingestion.drain())


def _guarded(
    pipeline: Pipeline,
    shared: Driver,
    registry: Registry | None,
    sink: Sink,
    work: Callable[[Ingestion], object],
) -> Outcome:
    report = Reporter(sink, pipeline.name, pipeline.topic.name, shared.run, shared.clock)
    try:
        ingestion = Ingestion(pipeline, shared, Writers(pipeline.topic, registry), report)
    except FrazilError as error:
        report(Event.REFUSED, error=type(error).__name__, why=str(error))
        return Outcome(Total(), error)
    shared.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pipeline.name)
    try:
        work(ingestion)
    except Fenced as fenced:
        ingestion.total.fenced = True
        report(Event.FENCED, why=fenced.what)
    except FrazilError as error:
        report(Event.REFUSED, error=type(error).__name__, why=str(error))
        return Outcome(ingestion.total, error)
    report(Event.ENDED, read=ingestion.total.read, written=ingestion.total.written)
    return Outcome(ingestion.total)
