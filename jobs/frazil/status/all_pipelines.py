"""The status of all pipelines: one question to Kafka for all topics, and the tables in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial

from frazil.clients.daemon_threads import DaemonThreads
from frazil.clients.kafka import Asked, Kafka, TopicOffsets
from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.declaration.options import Isolation
from frazil.errors import FrazilError, ServiceUnavailable, TopicMissing
from frazil.ingest.plan.plan import up_to_committed
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.status.pipeline_status import PipelineStatus, State, status_of

PARALLEL = 8
"""Tables that are read at a time."""
LONGEST_SECONDS = 10.0
"""The longest time of one look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services to ask; clients are made when they are needed. Without `kafka`, `stopped` says why."""

    lake: Lake
    kafka: Callable[[], Kafka] | None
    registry: Callable[[], Registry | None]
    stopped: str = ""
    commits: int = 0
    """Newest snapshots of each table to report."""


def all_pipelines(
    pipelines: Sequence[Pipeline], services: Services, threads: DaemonThreads, *, now: Callable[[], float]
) -> list[PipelineStatus]:
    """Return a row for each pipeline, in their order. A pipeline that cannot be read is a row with its reason.

    So is one that has no answer within `LONGEST_SECONDS`: a catalog's client waits without an end. `now` is in seconds since 1970.
    """
    topics = threads.submit(partial(_offsets, pipelines, services))  # first: what comes after it waits for it
    answers = [threads.submit(partial(_row, pipeline, services, topics, now)) for pipeline in pipelines]
    wait(answers, timeout=LONGEST_SECONDS)
    return [_made(pipeline, answer) for pipeline, answer in zip(pipelines, answers, strict=True)]


def one_pipeline(
    pipeline: Pipeline, services: Services, threads: DaemonThreads, *, now: Callable[[], float]
) -> PipelineStatus:
    """Return the row of one pipeline. Raises what reading its table raises."""
    return _row(pipeline, services, threads.submit(partial(_offsets, [pipeline], services)), now)


def _made(pipeline: Pipeline, answer: Future[PipelineStatus]) -> PipelineStatus:
    late = answer.cancel() or not answer.done()
    error = None if late else answer.exception()
    if not late and error is None:
        return answer.result()
    why = f"no answer within {LONGEST_SECONDS:g} s" if error is None else _reason(error)
    return replace(status_of(pipeline, None), state=State.UNKNOWN, why=why)


def totals(found: Iterable[PipelineStatus]) -> dict[str, int]:
    """Return the sums over all pipelines, of what is known; the lag of several pipelines of one topic counts once."""
    listed = list(found)
    sums = dict.fromkeys(("lag", "rejected_24h", "rows", "bytes", "data_files", "delete_files"), 0)
    for name in sums:
        parts: dict[str, list[int]] = {}
        for one in listed:
            parts.setdefault(one.topic if name == "lag" else one.pipeline, []).append(getattr(one, name) or 0)
        sums[name] = sum(map(max, parts.values()))
    return sums


def states(found: Iterable[PipelineStatus]) -> Mapping[str, int]:
    """Return how many pipelines are in each state that occurs."""
    listed = [one.state for one in found]
    return {state.value: listed.count(state) for state in State if state in listed}


def _row(pipeline: Pipeline, services: Services, topics: Future[Asked], now: Callable[[], float]) -> PipelineStatus:
    table = services.lake.table(pipeline.table.identifier)
    offsets, why, is_missing = _of_topic(pipeline, services, topics)
    if offsets is not None and table is not None:
        offsets = _with_open_transactions(pipeline, table, offsets, topics.result())
    waiting = "" if table is not None else why if is_missing else _waiting(pipeline, services)
    newest = table.newest(pipeline.name) if table is not None else None
    side = services.lake.table(pipeline.table.dead_letters) if newest is not None and newest.entry.number else None
    return status_of(pipeline, table, offsets, now=now(), side=side, commits=services.commits, why=why, waiting=waiting)


def _offsets(pipelines: Sequence[Pipeline], services: Services) -> Asked:
    if services.kafka is None:
        return {}
    asked = {(pipeline.topic.name, pipeline.isolation) for pipeline in pipelines}
    transactional = {(p.topic.name, Isolation.READ_UNCOMMITTED) for p in pipelines if p.topic.transactional}
    return services.kafka().offsets_of(asked | transactional)


def _with_open_transactions(
    pipeline: Pipeline, table: StoredTable, offsets: TopicOffsets, asked: Asked
) -> TopicOffsets:
    """Return the offsets, reaching those that the table holds where an open transaction begins before these."""
    newest, uncommitted = table.newest(pipeline.name), asked.get((pipeline.topic.name, Isolation.READ_UNCOMMITTED))
    if newest is None or newest.entry.end is None or not isinstance(uncommitted, TopicOffsets):
        return offsets
    reached = up_to_committed(offsets.spans, uncommitted.spans, newest.entry.end.at)
    return replace(offsets, spans={p: replace(s, stable=reached[p].stable) for p, s in offsets.spans.items()})


def _of_topic(pipeline: Pipeline, services: Services, topics: Future[Asked]) -> tuple[TopicOffsets | None, str, bool]:
    """Return the offsets of a pipeline's topic, or why they are unknown, and whether the topic does not exist."""
    try:
        found = topics.result().get((pipeline.topic.name, pipeline.isolation))
    except ServiceUnavailable as error:
        return None, _reason(error), False
    if isinstance(found, TopicOffsets):
        return found, "", False
    return None, services.stopped if found is None else _reason(found), isinstance(found, TopicMissing)


def _waiting(pipeline: Pipeline, services: Services) -> str:
    """Return what a pipeline without a table waits for; empty if its topic has a schema, or needs none."""
    from frazil.decode.writers.topic_writers import topic_rows  # loads Spark

    try:
        rows = topic_rows(pipeline, services.registry())
    except ServiceUnavailable as error:
        return _reason(error)
    if rows.versions or rows.are_in_records or not rows.subjects:
        return ""
    return rows.problems[0] if rows.problems else f"no schema in {', '.join(rows.subjects)}"


def _reason(error: BaseException) -> str:
    """Return an error on one line, without its remedy. It is not cut: half a secret could not be masked."""
    if isinstance(error, FrazilError):
        return " ".join((f"{error.where}: {error.what}" if error.where else error.what).split())
    return " ".join(f"{type(error).__name__}: {error}".split())
