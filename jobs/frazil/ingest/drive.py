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

from pyspark.sql import SparkSession

from frazil.clients.kafka import Kafka
from frazil.clients.registry import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.declaration.environment import Environment
from frazil.errors import DecisionRequired, Fenced, FrazilError, ServiceUnavailable
from frazil.ingest.driver import Driver
from frazil.ingest.failures import Cancelled, explained
from frazil.ingest.report import Event, Reporter, Sink, Total
from frazil.ingest.run import Ingestion
from frazil.ingest.writers import Writers
from frazil.lake.failpoints import Failpoints
from frazil.lake.jvm import Iceberg
from frazil.lake.probe import prove_fence
from frazil.lake.session import session
from frazil.version import VERSION

PARALLEL = 16  # pipelines that are drained at once; more threads than this only wait for cores
EVERY_SECONDS = 2.0  # between two looks at a topic that is followed: with a small batch's second, visible within 5
OUTAGE_SECONDS = (1.0, 60.0)  # the first pause of a pipeline whose service is away, doubled up to the last
DECISION_SECONDS = (60.0, 600.0)  # ... of one that waits for a person
CANCEL_SECONDS = 0.5  # how often jobs are cancelled while the run ends: one may just have been submitted


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
    run_prefix: str = "",
) -> Iterator[Driver]:
    """A driver: the Spark session and clients that its pipelines share. The session ends with it.

    The ledger tells its run by a name of its own, which begins with `run_prefix`.

    Once `stopping` is set, pipelines end between two steps; what is being staged then is dropped, in no snapshot.
    """
    spark = session(environment, secrets.read, name="frazil", jars=jars, master=master, settings=settings)
    stop = stopping or threading.Event()
    jvm: Any = spark._jvm

    def wait(seconds: float) -> None:
        stop.wait(seconds)

    ended = threading.Event()
    threading.Thread(target=_cancel_jobs, args=(spark, stop, ended), daemon=True, name="stopping").start()
    try:
        yield Driver(
            spark=spark,
            iceberg=Iceberg(spark, environment.catalog.name),
            kafka=Kafka(environment.kafka, secrets),
            run=f"{run_prefix}{uuid.uuid4().hex}",
            version=VERSION,
            clock=time.time,
            wait=wait,
            ticket=lambda: uuid.uuid4().hex,
            reach=Failpoints(failpoints, lambda: int(jvm.java.lang.ProcessHandle.current().pid())),
            stopping=stop.is_set,
        )
    finally:
        ended.set()
        spark.stop()


def _cancel_jobs(spark: SparkSession, stopping: threading.Event, ended: threading.Event) -> None:
    """End Spark's jobs once the run is to stop. They only stage files; a commit is no job, and is let finish."""
    while not stopping.wait(CANCEL_SECONDS):
        if ended.is_set():
            return
    while not ended.wait(CANCEL_SECONDS):
        spark.sparkContext.cancelAllJobs()


def drain(
    pipelines: Sequence[Pipeline], shared: Driver, registry: Registry | None, sink: Sink, *, probe: bool = True
) -> dict[str, Outcome]:
    """Land all pipelines up to the stable offsets seen at start; returns each one's outcome by name."""
    refuse_foreign(pipelines)
    if probe:
        prove(pipelines, shared)
    with ThreadPoolExecutor(min(len(pipelines), PARALLEL), thread_name_prefix="pipeline") as threads:
        runs = {p.name: threads.submit(_drain_one, p, shared, registry, sink) for p in pipelines}
        return {name: run.result() for name, run in runs.items()}


def follow(
    pipelines: Sequence[Pipeline],
    shared: Driver,
    registry: Registry | None,
    sink: Sink,
    *,
    every_seconds: float = EVERY_SECONDS,
    probe: bool = True,
) -> dict[str, Outcome]:
    """Land all pipelines until the driver is stopping; returns each one's outcome by name.

    A pipeline looks at its topic every so many seconds. While a service is away it waits and tries again; one that waits for a
    person looks again each minute, at last each ten minutes, whether it was decided. Any other error ends that pipeline alone.
    """
    refuse_foreign(pipelines)
    if probe:
        prove(pipelines, shared)

    def one(pipeline: Pipeline) -> Outcome:
        return _guarded(pipeline, shared, registry, sink, lambda ingestion: _follow(ingestion, every_seconds))

    with ThreadPoolExecutor(max(len(pipelines), 1), thread_name_prefix="pipeline") as threads:
        runs = {p.name: threads.submit(one, p) for p in pipelines}
        return {name: run.result() for name, run in runs.items()}


def _follow(ingestion: Ingestion, every_seconds: float) -> None:
    driver, pause = ingestion.driver, 0.0
    while not driver.stopping():
        began = driver.clock()
        try:
            with explained(f"pipeline {ingestion.pipeline.name}", stopping=driver.stopping):
                ingestion.poll()
            pause = 0.0
        except Cancelled:
            break
        except (ServiceUnavailable, DecisionRequired) as error:
            is_outage = isinstance(error, ServiceUnavailable)
            least, most = OUTAGE_SECONDS if is_outage else DECISION_SECONDS
            pause = min(max(pause * 2, least), most)
            ingestion.report(event_of(error), error=type(error).__name__, message=str(error), retry_in_seconds=pause)
            ingestion.forget()
        driver.wait(max(pause or every_seconds - (driver.clock() - began), 0.0))


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
        report(event_of(error), error=type(error).__name__, message=str(error))
        return Outcome(Total(), error)
    shared.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pipeline.name)
    try:
        with explained(f"pipeline {pipeline.name}", stopping=shared.stopping):
            work(ingestion)
    except Cancelled:
        pass
    except Fenced as fenced:
        ingestion.total.fenced = True
        report(Event.FENCED, message=fenced.what)
    except FrazilError as error:
        report(event_of(error), error=type(error).__name__, message=str(error))
        return Outcome(ingestion.total, error)
    report(Event.PIPELINE_FINISHED, read=ingestion.total.read, written=ingestion.total.written)
    return Outcome(ingestion.total)


def event_of(error: FrazilError) -> Event:
    """The event that reports an error: an outage, a decision that an operator must make, or a failure."""
    if isinstance(error, ServiceUnavailable):
        return Event.SERVICE_UNAVAILABLE
    return Event.DECISION_REQUIRED if isinstance(error, DecisionRequired) else Event.PIPELINE_FAILED
