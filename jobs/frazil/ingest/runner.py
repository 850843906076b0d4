"""Drive: one driver, many pipelines. Each has a thread and a fair share of the cores; one's error is not another's."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from frazil.clients.kafka import Kafka
from frazil.clients.registry.client import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.declaration.environment import Environment
from frazil.errors import ServiceUnavailable
from frazil.ingest.driver import Driver
from frazil.ingest.events import Sink
from frazil.ingest.guard import Outcome, as_known, guarded, jvm_ended, outage_pause, persist, reporter, tell
from frazil.ingest.ingestion import Ingestion
from frazil.ingest.spark_errors import explained
from frazil.ingest.standby import Standby
from frazil.job.failpoints import Failpoints
from frazil.lake.commit.catalog_check import prove_fence
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.session import end, jvm_answers, session
from frazil.version import VERSION

PARALLEL = 16  # pipelines that are drained at once; more threads than this only wait for cores
EVERY_SECONDS = 2.0  # between two looks at a topic that is followed: with a small batch's second, visible within 5
REPORT_SECONDS = 60.0  # how often the error of a pipeline that ended is reported again, while others go on
CANCEL_SECONDS = 0.5  # how often jobs are cancelled while the run ends: one may just have been submitted


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
            stop=stop.set,
            redact=secrets.redactor.redact,
        )
    finally:
        ended.set()
        end(spark)


def _cancel_jobs(spark: SparkSession, stopping: threading.Event, ended: threading.Event) -> None:
    """End Spark's jobs once the run is to stop. They only stage files; a commit is no job, and is let finish."""
    while not stopping.wait(CANCEL_SECONDS):
        if ended.is_set():
            return
    while not ended.wait(CANCEL_SECONDS):
        try:
            spark.sparkContext.cancelAllJobs()
        except (Py4JError, OSError):  # the JVM ended, and its jobs with it
            return


def drain(
    pipelines: Sequence[Pipeline], shared: Driver, registry: Registry | None, sink: Sink, *, probe: bool = True
) -> dict[str, Outcome]:
    """Land all pipelines up to the stable offsets seen at start; returns each one's outcome by name."""
    refuse_foreign(pipelines)
    if probe:
        prove(pipelines, shared)
    with ThreadPoolExecutor(max(min(len(pipelines), PARALLEL), 1), thread_name_prefix="pipeline") as threads:
        runs = {
            p.name: threads.submit(guarded, p, shared, registry, sink, lambda ingestion: ingestion.drain())
            for p in pipelines
        }
        return {p.name: _outcome(runs[p.name], p, shared) for p in pipelines}


def follow(
    pipelines: Sequence[Pipeline],
    shared: Driver,
    registry: Registry | None,
    sink: Sink,
    *,
    every_seconds: float = EVERY_SECONDS,
    report_seconds: float = REPORT_SECONDS,
    probe: bool = True,
) -> dict[str, Outcome]:
    """Land all pipelines until the driver is stopping, or until all have ended; returns each one's outcome by name.

    A pipeline looks at its topic every so many seconds. `guard.persist` says what it does after an error, and `Standby` after
    another driver's commit. The error of a
    pipeline that has ended is reported again every `report_seconds` while others go on. If Spark's JVM ends, all pipelines
    end with `JvmEnded`.
    """
    refuse_foreign(pipelines)
    if probe and not _proven(pipelines, shared, sink):
        return {}

    standby = Standby([p.name for p in pipelines], shared)

    def land_until_stopped(ingestion: Ingestion) -> None:
        persist(ingestion, every_seconds, standby)
        ingestion.total.stopped = True

    def one(pipeline: Pipeline) -> Outcome:
        try:
            return guarded(pipeline, shared, registry, sink, land_until_stopped)
        finally:
            standby.ended(pipeline.name)

    with ThreadPoolExecutor(max(len(pipelines), 1), thread_name_prefix="pipeline") as threads:
        runs = {p.name: threads.submit(one, p) for p in pipelines}
        is_lost = _watch(pipelines, runs, shared, sink, report_seconds)
        outcomes = {p.name: _outcome(runs[p.name], p, shared) for p in pipelines}
    if not is_lost:
        return outcomes
    return {p.name: replace(o, error=o.error or jvm_ended(p)) for p in pipelines for o in [outcomes[p.name]]}


def _watch(
    pipelines: Sequence[Pipeline], runs: Mapping[str, Future[Outcome]], shared: Driver, sink: Sink, every: float
) -> bool:
    """Wait until all pipelines have ended, and report those that ended with an error; whether Spark's JVM was lost."""
    is_lost, pending, due = False, set(runs.values()), time.monotonic() + every
    while pending:
        ended, pending = wait_for(pending, max(due - time.monotonic(), 0.0), FIRST_COMPLETED)
        is_due = time.monotonic() >= due
        if not is_lost and not shared.stopping() and (ended or is_due) and not jvm_answers(shared.spark):
            is_lost = True
            shared.stop()
        if is_due:
            due = time.monotonic() + every
            for pipeline in pipelines:
                error = _outcome(runs[pipeline.name], pipeline, shared).error if runs[pipeline.name].done() else None
                if error is not None and pending:
                    tell(reporter(pipeline, shared, sink), error)
    return is_lost


def _outcome(run: Future[Outcome], pipeline: Pipeline, shared: Driver) -> Outcome:
    """The outcome of a pipeline's thread. An exception there, say of a log that cannot be written, is one pipeline's."""
    error = run.exception()
    return run.result() if error is None else Outcome(error=as_known(error, pipeline, shared))


def _proven(pipelines: Sequence[Pipeline], shared: Driver, sink: Sink) -> bool:
    """Prove the catalog's fence, waiting while it is unavailable; False if the run is to end before that."""
    pause = 0.0
    while not shared.stopping():
        try:
            prove(pipelines, shared)
            return True
        except ServiceUnavailable as error:
            pause = outage_pause(pause)
            for pipeline in pipelines:
                tell(reporter(pipeline, shared, sink), error, retry_in_seconds=pause)
        shared.wait(pause)
    return False


def prove(pipelines: Sequence[Pipeline], shared: Driver) -> None:
    """Prove the catalog's fence in the first pipeline's namespace. Raises `FenceUnproven`."""
    if pipelines:
        with explained("catalog", stopping=shared.stopping, redact=shared.redact):
            prove_fence(shared.iceberg, pipelines[0].table.namespace, ticket=shared.ticket())
