"""Run the pipelines of one job. Each has a thread and a fair share of the cores; one's error is not another's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field, replace

from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.errors import Fault, FrazilError, InvalidInput, JvmEnded, ServiceUnavailable
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
from frazil.ingest.pattern_reports import refusals, report_matched, report_refused, report_unmatched
from frazil.ingest.reporting.events import Sink
from frazil.ingest.setup.table_setup import read_ledger
from frazil.ingest.spark_errors import explained
from frazil.job.context import JobContext
from frazil.job.entry_point import REFUSED
from frazil.job.matched_topics import Matched, MatchedTopics, source_of
from frazil.job.offset_looks import OffsetLooks
from frazil.lake.commit.catalog_check import check_catalog
from frazil.lake.spark_session import jvm_answers

PARALLEL = 16  # pipelines that are drained at once; more threads than this only wait for cores
EVERY_SECONDS = 2.0  # between two looks at a topic that is followed: with a small batch's second, visible within 5
REPORT_SECONDS = 60.0  # how often the error of a pipeline that ended is reported again, while others go on
MOST_THREADS = 10_000  # of a run with patterns: the pipeline of a topic that disappears waits until it is there again
TOPICS_SECONDS = 30.0  # how often topics are listed that match a pattern: a new one joins within a minute


def drain(
    pipelines: Sequence[Pipeline],
    job: JobContext,
    registry: Registry | None,
    sink: Sink,
    *,
    topics: MatchedTopics | None = None,
    until: Mapping[int, int] | int | None = None,
    probe: bool = True,
) -> dict[str, Outcome]:
    """Land all pipelines up to the stable offsets seen at start, and those of the `topics` that match; return outcomes by name.

    `until` is that of `Ingestion.drain`.
    If there are more than `PARALLEL`, those that have waited longest come first.
    """
    refuse_foreign(pipelines)
    found = Matched() if topics is None else topics.look()
    if topics is not None:
        report_matched(topics, found, job, sink)
        pipelines = [*pipelines, *found.pipelines]
    if probe:
        prove(pipelines, job, topics)
    if len(pipelines) > PARALLEL:
        pipelines = in_turn(pipelines, turns(pipelines, job))
    with ThreadPoolExecutor(max(min(len(pipelines), PARALLEL), 1), thread_name_prefix="pipeline") as threads:
        runs = {
            p.name: threads.submit(guarded, p, job, registry, sink, lambda ingestion: ingestion.drain(until))
            for p in pipelines
        }
        return {p.name: _outcome(runs[p.name], p, job) for p in pipelines} | refusals(found)


def follow(
    pipelines: Sequence[Pipeline],
    job: JobContext,
    registry: Registry | None,
    sink: Sink,
    *,
    topics: MatchedTopics | None = None,
    every_seconds: float = EVERY_SECONDS,
    report_seconds: float = REPORT_SECONDS,
    topics_seconds: float = TOPICS_SECONDS,
    probe: bool = True,
) -> dict[str, Outcome]:
    """Land all pipelines until the job is to stop, or until all have ended; return each one's outcome by name.

    A pipeline looks at its topic every `every_seconds`. `guard.persist` says what it does after an error, and `Standby` after
    another driver's commit. The error of a pipeline that has ended is reported again every `report_seconds` while others go on.
    The `topics` that match are looked for every `topics_seconds`, and new ones join; without any the run goes on.
    If Spark's JVM ends, all pipelines end with `JvmEnded`.
    """
    refuse_foreign(pipelines)
    found = Matched() if topics is None else _first_look(topics, job, sink)
    if found is None:
        return {}
    pipelines = [*pipelines, *found.pipelines]
    if probe and not _proven(pipelines, job, sink, topics):
        return {}

    standby = Standby([p.name for p in pipelines], job)
    job = replace(job, looks=OffsetLooks(job.kafka, every_seconds))

    def land_until_stopped(ingestion: Ingestion) -> None:
        persist(ingestion, every_seconds, standby)
        ingestion.total.stopped = True

    def one(pipeline: Pipeline) -> Outcome:
        try:
            return guarded(pipeline, job, registry, sink, land_until_stopped)
        finally:
            standby.ended(pipeline.name)

    most = len(pipelines) if topics is None else MOST_THREADS
    with ThreadPoolExecutor(max(most, 1), thread_name_prefix="pipeline") as threads:
        running = _Running(job, sink, {p.name: (p, threads.submit(one, p)) for p in pipelines}, refusals(found))

        def join(pipeline: Pipeline) -> None:
            standby.began(pipeline.name)
            running.runs[pipeline.name] = pipeline, threads.submit(one, pipeline)

        looks = _Looks(topics, topics_seconds, join) if topics else None
        running.watch(report_seconds, looks)
        outcomes = {name: _outcome(run, p, job) for name, (p, run) in running.runs.items()}
    if running.is_lost:
        outcomes = {n: replace(o, error=o.error or JvmEnded.of(f"pipeline {n}")) for n, o in outcomes.items()}
    return outcomes | running.refused


@dataclass(slots=True)
class _Looks:
    """The looks for new topics: `join` has a pipeline run. After one that `has_failed`, the next one reports what matches."""

    topics: MatchedTopics
    every: float
    join: Callable[[Pipeline], None]
    has_failed: bool = False
    due: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.due += self.every


@dataclass(slots=True)
class _Running:
    """The pipelines of a run that follows, and the topics that it refused."""

    job: JobContext
    sink: Sink
    runs: dict[str, tuple[Pipeline, Future[Outcome]]]
    refused: dict[str, Outcome]
    is_lost: bool = False
    """True once Spark's JVM has ended."""

    def watch(self, every: float, looks: _Looks | None) -> None:
        """Wait until all pipelines have ended, and report those that ended with an error; have new topics join."""
        due = time.monotonic() + every
        while pending := [run for _, run in self.runs.values() if not run.done()] or self._waits(looks):
            seconds = max(min(due, looks.due if looks else due) - time.monotonic(), 0.0)
            if isinstance(pending, list):
                is_ended = bool(wait_for(pending, seconds, FIRST_COMPLETED).done)
            else:
                is_ended = False
                self.job.wait(seconds)
            is_due = time.monotonic() >= due
            if not (self.is_lost or self.job.stopping()) and (is_ended or is_due) and not jvm_answers(self.job.spark):
                self.is_lost = True
                self.job.stop()
            if is_due:
                due = time.monotonic() + every
                self._report_ended()
            if looks and time.monotonic() >= looks.due and not self.job.stopping():
                looks.due = time.monotonic() + looks.every
                self._look(looks)

    def _waits(self, looks: _Looks | None) -> bool:
        """Return whether the run has no topic yet, and goes on until it has one."""
        return looks is not None and not self.runs and not self.job.stopping()

    def _report_ended(self) -> None:
        report_refused(self.refused, self.job, self.sink)
        if all(run.done() for _, run in self.runs.values()):
            return
        for pipeline, run in self.runs.values():
            error = _outcome(run, pipeline, self.job).error if run.done() else None
            if error is not None:
                report_error(reporter(pipeline, self.job, self.sink), error)

    def _look(self, looks: _Looks) -> None:
        try:
            with explained("topics", stopping=self.job.stopping, redact=self.job.redact):
                found = looks.topics.look() if looks.has_failed else looks.topics.look_for_new()
                looks.has_failed = False
        except Exception as error:  # noqa: BLE001 - it would leave the pipelines running without the thread that watches them
            known = (
                error
                if isinstance(error, FrazilError)
                else Fault.of(error, where="topics", text=self.job.redact(str(error)))
            )
            looks.has_failed = True
            report_unmatched(looks.topics, known, self.job, self.sink)
            return
        if found is None:
            return
        report_matched(looks.topics, found, self.job, self.sink, known=self.refused)
        taken = self._taken(found)
        report_refused({name: one for name, one in taken.items() if name not in self.refused}, self.job, self.sink)
        self.refused = refusals(found) | taken
        for pipeline in found.pipelines:
            if pipeline.name not in self.runs:
                looks.join(pipeline)

    def _taken(self, found: Matched) -> dict[str, Outcome]:
        """Return the outcomes of topics and types that cannot join: another one without a table has their name in this run."""
        refused = {}
        for pipeline in found.pipelines:
            ours, running = source_of(pipeline), self.runs.get(pipeline.name)
            theirs = source_of(running[0]) if running is not None else ours
            if theirs != ours:
                what = f"the {theirs.noun} {theirs.name} waits in this run for a table of the same name"
                do = "Start the run again: then one of them has the table, and the error of the other says what to do"
                refused[f"{REFUSED}{ours}"] = Outcome(error=InvalidInput(what, where=f"topic {ours}", do=do))
        return refused


def _first_look(topics: MatchedTopics, job: JobContext, sink: Sink) -> Matched | None:
    """Look for topics, waiting while a service is unavailable; None if the run is to end before that."""
    pause = 0.0
    while not job.stopping():
        try:
            with explained("topics", stopping=job.stopping, redact=job.redact):
                found = topics.look()
            report_matched(topics, found, job, sink)
            return found
        except ServiceUnavailable as error:
            pause = outage_pause(pause)
            report_unmatched(topics, error, job, sink, retry_in_seconds=pause)
        job.wait(pause)
    return None


def _outcome(run: Future[Outcome], pipeline: Pipeline, job: JobContext) -> Outcome:
    """Return the outcome of a pipeline's thread. An exception there, say of a log that cannot be written, is one pipeline's."""
    error = run.exception()
    return run.result() if error is None else Outcome(error=as_known(error, pipeline, job))


def _proven(pipelines: Sequence[Pipeline], job: JobContext, sink: Sink, topics: MatchedTopics | None = None) -> bool:
    """Prove the catalog's fence, waiting while it is unavailable; False if the run is to end before that."""
    pause = 0.0
    while not job.stopping():
        try:
            prove(pipelines, job, topics)
            if pause and topics is not None and not pipelines:
                report_matched(topics, Matched(), job, sink)
            return True
        except ServiceUnavailable as error:
            pause = outage_pause(pause)
            for pipeline in pipelines:
                report_error(reporter(pipeline, job, sink), error, retry_in_seconds=pause)
            if topics is not None and not pipelines:
                report_unmatched(topics, error, job, sink, retry_in_seconds=pause)
        job.wait(pause)
    return False


def prove(pipelines: Sequence[Pipeline], job: JobContext, topics: MatchedTopics | None = None) -> None:
    """Prove the catalog's fence in the first pipeline's namespace, or the first pattern's. Raises `FenceUnproven`."""
    patterns = () if topics is None else topics.patterns
    namespaces = [*(one.table.namespace for one in pipelines[:1]), *(one.namespace for one in patterns[:1])]
    if namespaces:
        with explained("catalog", stopping=job.stopping, redact=job.redact):
            check_catalog(job.iceberg, namespaces[0], unique_id=job.new_id())


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
