"""Run the pipelines of one job. Each has a thread and a fair share of the cores; one's error is not another's."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, replace

from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.errors import FrazilError, JvmEnded, ServiceUnavailable
from frazil.ingest.guard import (
    Outcome,
    Standby,
    as_known,
    guarded,
    outage_pause,
    persist,
    report_error,
    reporter,
)
from frazil.ingest.loop import Ingestion
from frazil.ingest.reporting.events import Sink
from frazil.ingest.setup.table_setup import read_ledger
from frazil.ingest.spark_errors import explained
from frazil.job.context import JobContext
from frazil.lake.commit.catalog_check import check_catalog
from frazil.lake.spark_session import jvm_answers

PARALLEL = 16  # pipelines that are drained at once; more threads than this only wait for cores
EVERY_SECONDS = 2.0  # between two looks at a topic that is followed: with a small batch's second, visible within 5
REPORT_SECONDS = 60.0  # how often the error of a pipeline that ended is reported again, while others go on


def drain(
    pipelines: Sequence[Pipeline], job: JobContext, registry: Registry | None, sink: Sink, *, probe: bool = True
) -> dict[str, Outcome]:
    """Land all pipelines up to the stable offsets seen at start; returns each one's outcome by name.

    If there are more than `PARALLEL`, those that have waited longest come first.
    """
    refuse_foreign(pipelines)
    if probe:
        prove(pipelines, job)
    if len(pipelines) > PARALLEL:
        pipelines = in_turn(pipelines, turns(pipelines, job))
    with ThreadPoolExecutor(max(min(len(pipelines), PARALLEL), 1), thread_name_prefix="pipeline") as threads:
        runs = {
            p.name: threads.submit(guarded, p, job, registry, sink, lambda ingestion: ingestion.drain())
            for p in pipelines
        }
        return {p.name: _outcome(runs[p.name], p, job) for p in pipelines}


def follow(
    pipelines: Sequence[Pipeline],
    job: JobContext,
    registry: Registry | None,
    sink: Sink,
    *,
    every_seconds: float = EVERY_SECONDS,
    report_seconds: float = REPORT_SECONDS,
    probe: bool = True,
) -> dict[str, Outcome]:
    """Land all pipelines until the job is to stop, or until all have ended; return each one's outcome by name.

    A pipeline looks at its topic every `every_seconds`. `guard.persist` says what it does after an error, and `Standby` after
    another driver's commit. The error of a pipeline that has ended is reported again every `report_seconds` while others go on.
    If Spark's JVM ends, all pipelines end with `JvmEnded`.
    """
    refuse_foreign(pipelines)
    if probe and not _proven(pipelines, job, sink):
        return {}

    standby = Standby([p.name for p in pipelines], job)

    def land_until_stopped(ingestion: Ingestion) -> None:
        persist(ingestion, every_seconds, standby)
        ingestion.total.stopped = True

    def one(pipeline: Pipeline) -> Outcome:
        try:
            return guarded(pipeline, job, registry, sink, land_until_stopped)
        finally:
            standby.ended(pipeline.name)

    with ThreadPoolExecutor(max(len(pipelines), 1), thread_name_prefix="pipeline") as threads:
        runs = {p.name: threads.submit(one, p) for p in pipelines}
        is_lost = _watch(pipelines, runs, job, sink, report_seconds)
        outcomes = {p.name: _outcome(runs[p.name], p, job) for p in pipelines}
    if not is_lost:
        return outcomes
    return {
        p.name: replace(o, error=o.error or JvmEnded.of(f"pipeline {p.name}"))
        for p in pipelines
        for o in [outcomes[p.name]]
    }


def _watch(
    pipelines: Sequence[Pipeline], runs: Mapping[str, Future[Outcome]], job: JobContext, sink: Sink, every: float
) -> bool:
    """Wait until all pipelines have ended, and report those that ended with an error; whether Spark's JVM was lost."""
    is_lost, pending, due = False, set(runs.values()), time.monotonic() + every
    while pending:
        ended, pending = wait_for(pending, max(due - time.monotonic(), 0.0), FIRST_COMPLETED)
        is_due = time.monotonic() >= due
        if not is_lost and not job.stopping() and (ended or is_due) and not jvm_answers(job.spark):
            is_lost = True
            job.stop()
        if is_due:
            due = time.monotonic() + every
            for pipeline in pipelines:
                error = _outcome(runs[pipeline.name], pipeline, job).error if runs[pipeline.name].done() else None
                if error is not None and pending:
                    report_error(reporter(pipeline, job, sink), error)
    return is_lost


def _outcome(run: Future[Outcome], pipeline: Pipeline, job: JobContext) -> Outcome:
    """Return the outcome of a pipeline's thread. An exception there, say of a log that cannot be written, is one pipeline's."""
    error = run.exception()
    return run.result() if error is None else Outcome(error=as_known(error, pipeline, job))


def _proven(pipelines: Sequence[Pipeline], job: JobContext, sink: Sink) -> bool:
    """Prove the catalog's fence, waiting while it is unavailable; False if the run is to end before that."""
    pause = 0.0
    while not job.stopping():
        try:
            prove(pipelines, job)
            return True
        except ServiceUnavailable as error:
            pause = outage_pause(pause)
            for pipeline in pipelines:
                report_error(reporter(pipeline, job, sink), error, retry_in_seconds=pause)
        job.wait(pause)
    return False


def prove(pipelines: Sequence[Pipeline], job: JobContext) -> None:
    """Prove the catalog's fence in the first pipeline's namespace. Raises `FenceUnproven`."""
    if pipelines:
        with explained("catalog", stopping=job.stopping, redact=job.redact):
            check_catalog(job.iceberg, pipelines[0].table.namespace, unique_id=job.new_id())


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """The place of a pipeline. `is_idle`: no record waits. `committed_at_ms`: its last commit; 0 if there is none, or unknown."""

    is_idle: bool
    committed_at_ms: int


UNKNOWN = Turn(is_idle=False, committed_at_ms=0)
"""The turn of a pipeline without a table, and of one whose table or topic cannot be read: its run reports the reason."""


def in_turn(pipelines: Sequence[Pipeline], turns: Mapping[str, Turn]) -> list[Pipeline]:
    """Return the pipelines by their turns: those that wait, the longest wait first, then those without records."""
    return sorted(pipelines, key=lambda pipeline: turns[pipeline.name])


def turns(pipelines: Sequence[Pipeline], job: JobContext) -> dict[str, Turn]:
    """Return the turn of each pipeline, from its table's ledger and its topic."""
    with ThreadPoolExecutor(PARALLEL, thread_name_prefix="turns") as threads:
        found = threads.map(lambda pipeline: _turn(pipeline, job), pipelines)
        return dict(zip((pipeline.name for pipeline in pipelines), found, strict=True))


def _turn(pipeline: Pipeline, job: JobContext) -> Turn:
    try:
        with explained(f"pipeline {pipeline.name}", stopping=job.stopping, redact=job.redact):
            has_table = job.iceberg.exists(pipeline.table.identifier)
            last = read_ledger(job.iceberg, pipeline) if has_table else None
            if last is None or last.end is None:
                return UNKNOWN
            spans = job.kafka.offsets(pipeline.topic.name, pipeline.isolation)
    except FrazilError:
        return UNKNOWN
    is_idle = all(last.end.at.get(partition, 0) >= span.stable for partition, span in spans.items())
    return Turn(is_idle=is_idle, committed_at_ms=last.at_ms)
