"""Convert every error of a pipeline to an outcome, an event and, where that may help, a bounded number of retries."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.envelopes.chosen_envelope import envelope
from frazil.errors import (
    DecisionRequired,
    Fault,
    Fenced,
    FrazilError,
    IncompatibleSchema,
    InvalidInput,
    JvmEnded,
    RuntimeDiffers,
    ServiceUnavailable,
    UnreadableSchema,
)
from frazil.errors.causes import MOST_CHARACTERS
from frazil.ingest.loop import Ingestion
from frazil.ingest.reporting.events import Event, Reporter, Sink, Total
from frazil.ingest.spark_errors import Cancelled, explained
from frazil.job.context import JobContext
from frazil.lake.ledger import stop
from frazil.lake.spark_session import jvm_answers

OUTAGE_SECONDS = (1.0, 60.0)  # the first pause of a pipeline whose service does not answer, doubled up to the last
DECISION_SECONDS = (60.0, 600.0)  # ... of one that waits for an operator
FAILURE_SECONDS = (5.0, 15.0, 45.0, 120.0, 300.0)  # the pauses after other errors in a row; one more ends the pipeline
STOP_SECONDS = 1.0  # a signal that ends both processes reaches the JVM first or this one first
_PERMANENT = (InvalidInput, RuntimeDiffers, JvmEnded)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one pipeline's run: the totals of what it landed, and the error that ended it, if one did."""

    total: Total = field(default_factory=Total)
    error: FrazilError | None = None


def guarded(
    pipeline: Pipeline,
    job: JobContext,
    registry: Registry | None,
    sink: Sink,
    work: Callable[[Ingestion], object],
) -> Outcome:
    """Run `work` with the pipeline's ingestion and report how it ended. Any exception becomes the outcome's error."""
    report, total = reporter(pipeline, job, sink), Total()
    try:
        ingestion = Ingestion(
            pipeline,
            job,
            writer_schemas(pipeline.topic, registry, envelope=envelope(pipeline.envelope), route=pipeline.shape.route),
            report,
        )
        total = ingestion.total
        job.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pipeline.name)
        with explained(_where(pipeline), stopping=job.stopping, redact=job.redact):
            work(ingestion)
        if not (total.stopped or total.fenced):
            note_end(pipeline, job, None)
    except Cancelled:
        total.stopped = True
    except BaseException as error:  # noqa: BLE001 - a thread's last resort; a panic of a Rust library is no Exception
        known = as_known(error, pipeline, job)
        if isinstance(known, Fenced) and known.is_by_another_than(job.run):
            total.fenced = True
            report(Event.FENCED, message=known.what)
        elif known is not None:
            report_error(report, known)
            note_end(pipeline, job, known)
            return Outcome(total, known)
        else:
            total.stopped = True
    finally:
        job.reads.leave(pipeline.name)
    report(Event.PIPELINE_FINISHED, read=total.read, written=total.written, stopped=total.stopped)
    return Outcome(total)


def persist(ingestion: Ingestion, every_seconds: float, standby: Standby | None = None) -> None:
    """Poll until the run is to end.

    An outage and a decision are waited for without end. After any other error the pipeline starts again from what the table
    says; after one error more than `FAILURE_SECONDS` has pauses, without a successful poll in between, the error is raised.
    Raises at once what a new attempt cannot change: invalid input, a lost JVM, and another driver's commit unless `standby`
    says that the pipeline is to be tried again.
    """
    job, pipeline = ingestion.job, ingestion.pipeline
    pause, failures, was_stopped = 0.0, 0, True
    while not job.stopping():
        began = job.clock()
        try:
            with explained(_where(pipeline), stopping=job.stopping, redact=job.redact):
                ingestion.poll()
                if was_stopped:
                    note_end(pipeline, job, None)
            pause, failures, was_stopped = 0.0, 0, False
        except Cancelled:
            return
        except BaseException as error:
            known = as_known(error, pipeline, job)
            job.reads.leave(pipeline.name)
            if known is None:
                return
            match known:
                case ServiceUnavailable():
                    pause = outage_pause(pause)
                    report_error(ingestion.report, known, retry_in_seconds=pause)
                case DecisionRequired():
                    pause = min(max(pause * 2, DECISION_SECONDS[0]), DECISION_SECONDS[1])
                    report_error(ingestion.report, known, retry_in_seconds=pause)
                    note_end(pipeline, job, known)
                    was_stopped = True
                case Fenced() if standby is not None and _is_final(known, job.run) and standby.may_wait(pipeline.name):
                    ingestion.report(Event.FENCED, message=known.what)
                    if not standby.wait(pipeline.name):
                        raise known from error
                    pause = 0.0
                case _ if _is_final(known, job.run) or failures == len(FAILURE_SECONDS):
                    raise known from error
                case _:
                    pause, failures = FAILURE_SECONDS[failures], failures + 1
                    facts = {"error": type(known).__name__, "message": str(known), "attempt": failures}
                    ingestion.report(Event.PIPELINE_RETRIED, **facts, retry_in_seconds=pause)
            ingestion.forget()
        job.wait(max(pause or every_seconds - (job.clock() - began), 0.0))


def note_end(pipeline: Pipeline, job: JobContext, error: FrazilError | None) -> None:
    """Keep a stop in the pipeline's table, or remove it if there was no error. An outage, or another driver, is no stop.

    A catalog that does not answer keeps nothing: the error itself is what counts, and the next run notes it again.
    """
    if isinstance(error, ServiceUnavailable | Fenced | JvmEnded):
        return
    with contextlib.suppress(FrazilError, Py4JError, PySparkException):
        if error is None:
            stop.clear(job.iceberg, pipeline.table.identifier, pipeline.name)
            return
        noted = stop.Stop(
            error=type(error).__name__,
            message=job.redact(str(error)),
            commands=error.commands,
            **(error.facts if isinstance(error, DecisionRequired) else {}),
        )
        stop.note(job.iceberg, pipeline.table.identifier, pipeline.name, noted)


def _is_final(error: FrazilError, run: str) -> bool:
    return isinstance(error, _PERMANENT) or (isinstance(error, Fenced) and error.is_by_another_than(run))


def as_known(error: BaseException, pipeline: Pipeline, job: JobContext) -> FrazilError | None:
    """Return the error in Frazil's words; None if the run is ending and took the JVM with it.

    What is no `FrazilError` is a `Fault`, or `JvmEnded` if Spark's JVM is gone.
    """
    if not jvm_answers(job.spark):
        job.wait(STOP_SECONDS)
        return None if job.stopping() else JvmEnded.of(_where(pipeline))
    if isinstance(error, IncompatibleSchema | UnreadableSchema):  # their place is a field, or one of the schema
        return type(error)(error.what, where=f"{_where(pipeline)}, {error.where}", do=error.do)
    if isinstance(error, FrazilError):
        return error
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    words = " ".join(job.redact(str(error)).split())[:MOST_CHARACTERS]
    return Fault.of(error, where=_where(pipeline), text=f"{words}{place}")


def outage_pause(before: float) -> float:
    """Return how long to wait for a service, after a pause of `before` seconds."""
    return min(max(before * 2, OUTAGE_SECONDS[0]), OUTAGE_SECONDS[1])


def report_error(report: Reporter, error: FrazilError, **facts: Any) -> None:
    """Report an error by the event of its kind: an outage, a decision that an operator must make, or a failure."""
    event = Event.DECISION_REQUIRED if isinstance(error, DecisionRequired) else Event.PIPELINE_FAILED
    if isinstance(error, ServiceUnavailable):
        event = Event.SERVICE_UNAVAILABLE
    report(event, error=type(error).__name__, message=str(error), **facts)


def reporter(pipeline: Pipeline, job: JobContext, sink: Sink) -> Reporter:
    """Return the reporter of one pipeline's events."""
    return Reporter(sink, pipeline.name, pipeline.topic.name, job.run, job.clock, pipeline.group)


def _where(pipeline: Pipeline) -> str:
    return f"pipeline {pipeline.name}"


SECONDS = (60.0, 600.0)  # the first pause of a pipeline that was fenced, doubled each time up to the last
STEP_SECONDS = 5.0  # how soon a pipeline that waits notices that the run lands nothing any more


class Standby:
    """The pipelines of a run, by name. Safe to share between threads."""

    def __init__(self, pipelines: Iterable[str], job: JobContext) -> None:
        self._job, self._landing = job, set(pipelines)
        self._pauses: dict[str, float] = {}

    def began(self, pipeline: str) -> None:
        """Note that a pipeline has joined the run."""
        self._landing.add(pipeline)

    def ended(self, pipeline: str) -> None:
        """Note that a pipeline has ended."""
        self._landing.discard(pipeline)

    def may_wait(self, pipeline: str) -> bool:
        """Note that `pipeline` was fenced; return whether the run lands others."""
        self._landing.discard(pipeline)
        return bool(self._landing)

    def wait(self, pipeline: str) -> bool:
        """Wait; return whether `pipeline` is to be tried again: the run still lands others, or is to end."""
        pause = min(max(self._pauses.get(pipeline, 0.0) * 2, SECONDS[0]), SECONDS[1])
        self._pauses[pipeline] = pause
        for _ in range(round(pause / STEP_SECONDS)):
            if not self._landing or self._job.stopping():
                break
            self._job.wait(STEP_SECONDS)
        if not self._landing and not self._job.stopping():
            return False
        self._landing.add(pipeline)
        return True
