"""All pipelines at a glance: one row each, with its state, by what its table and its topic say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from frazil.declaration import Pipeline
from frazil.errors import DecisionRequired, ForeignTable, LedgerLost, RolledBack
from frazil.ingest.plan.plan import plan
from frazil.ingest.setup import existing_table
from frazil.lake import layout
from frazil.lake.ledger.stop import Stop
from frazil.lake.read.stored_tables import StoredTable
from frazil.status.pipeline_status import PipelineStatus, noted_stop, place

if TYPE_CHECKING:
    from frazil.clients.kafka_topics import TopicOffsets

DAY_SECONDS = 86_400.0
DIFFERS = "the declaration differs from the table"
_SIZES = ("total-files-size", "total-data-files", "total-delete-files")


class State(StrEnum):
    """What a pipeline does, or waits for.

    `CAUGHT_UP`: no record waits. `BEHIND`: some do. `WAITING`: its topic does not exist or has no schema yet, so there is no table.
    `NO_TABLE`: no run has made its table yet. `STOPPED`: an error ended its last run, or an operator must decide before it
    continues. `UNKNOWN`: the topic, or the table, cannot be read.
    """

    CAUGHT_UP = "caught up"
    BEHIND = "behind"
    WAITING = "waiting"
    NO_TABLE = "no table yet"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One pipeline. What is not known is None.

    `lag_seconds` is 0 if no record waits, else the age of the newest landed record of the partition that is furthest behind.
    `freshness_seconds` is that age in any case. `rejected_24h` are records that the commits of the last 24 hours rejected; if the
    table has expired some of these, `is_all_rejected` is false. `rows` are those that readers see.
    """

    pipeline: str
    topic: str
    table: str
    state: State
    why: str = ""
    """The message of a stop, the missing topic or schema, or why something is unknown."""
    commands: tuple[str, ...] = ()
    """Those that let a stopped pipeline continue."""
    record: tuple[str, int, int] | None = None
    """Topic, partition and offset of the record at which it stopped, if it is one."""
    lag: int | None = None
    lag_seconds: float | None = None
    freshness_seconds: float | None = None
    rejected_24h: int | None = None
    is_all_rejected: bool = True
    last_commit_seconds: float | None = None
    rows: int | None = None
    deleted_by_others: int = 0
    """Rows that other engines deleted, as operators accepted."""
    foreign_commits: int = 0
    """Snapshots by which other engines changed rows since then: `rows` may differ from the rows that readers see."""
    bytes: int | None = None
    data_files: int | None = None
    delete_files: int | None = None
    differences: tuple[str, ...] = ()
    """The differences between the table and its declaration."""
    details: PipelineStatus | None = None
    """The status of the pipeline in full; None if its table cannot be read."""

    @property
    def text(self) -> str:
        """The state in words, such as `behind 1,204`."""
        return f"behind {self.lag:,}" if self.state is State.BEHIND and self.lag is not None else self.state.value


def row(
    pipeline: Pipeline,
    found: PipelineStatus,
    table: StoredTable | None,
    offsets: TopicOffsets | None,
    *,
    why: str,
    waiting: str,
    now: float,
) -> Row:
    """Return the row of a pipeline from its status, its table and the offsets of its topic; None for what is not known.

    `why` says why there are no offsets, `waiting` what a pipeline without a table waits for. `now` is in seconds since 1970.
    """
    if table is not None and not table.layout.is_ours:
        return _without_facts(pipeline, State.STOPPED, ForeignTable.of(pipeline.name, table.identifier).what, found)
    if table is None or table.head is None:
        return _without_facts(pipeline, State.WAITING if waiting else State.NO_TABLE, waiting or why, found)
    age = None if found.newest_record_at is None else max(now - found.newest_record_at, 0.0)
    lag = found.lag
    state, reason, stop = _state(pipeline, table, offsets, lag=lag, why=why)
    newest = table.newest(pipeline.name)
    committed = max(now - newest.committed_at.timestamp(), 0.0) if newest is not None else None
    size, data_files, delete_files = (int(table.head.summary.get(name, 0)) for name in _SIZES)
    rejected, is_all = _rejected(table, pipeline.name, since=now - DAY_SECONDS)
    return Row(
        pipeline=found.pipeline,
        topic=found.topic,
        table=found.table,
        state=state,
        why=reason,
        commands=stop.commands if stop is not None else (),
        record=stop.record if stop is not None else None,
        lag=lag,
        lag_seconds=0.0 if lag == 0 else (None if lag is None else age),
        freshness_seconds=age,
        rejected_24h=rejected,
        is_all_rejected=is_all,
        last_commit_seconds=committed,
        rows=found.rows,
        deleted_by_others=found.deleted_by_others,
        foreign_commits=found.foreign_commits,
        bytes=size,
        data_files=data_files,
        delete_files=delete_files,
        differences=tuple(one for one in existing_table.said(pipeline, table.layout) if one not in reason),
        details=found,
    )


def unreadable(pipeline: Pipeline, why: str) -> Row:
    """Return the row of a pipeline whose table cannot be read."""
    return _without_facts(pipeline, State.UNKNOWN, why)


def _without_facts(pipeline: Pipeline, state: State, why: str, details: PipelineStatus | None = None) -> Row:
    return Row(
        pipeline=pipeline.name,
        topic=pipeline.topic.name,
        table=pipeline.table.identifier,
        state=state,
        why=why,
        details=details,
    )


def totals(rows: Iterable[Row]) -> dict[str, int]:
    """Return the sums over all pipelines, of what is known."""
    listed = list(rows)
    names = ("lag", "rejected_24h", "rows", "bytes", "data_files", "delete_files")
    return {name: sum(getattr(one, name) or 0 for one in listed) for name in names}


def states(rows: Iterable[Row]) -> Mapping[str, int]:
    """Return how many pipelines are in each state that occurs."""
    listed = [one.state for one in rows]
    return {state.value: listed.count(state) for state in State if state in listed}


def document(one: Row) -> dict[str, Any]:
    """Return a row as JSON; ages in seconds, to the millisecond."""
    ages = ("lag_seconds", "freshness_seconds", "last_commit_seconds")
    values = {name: getattr(one, name) for name in one.__slots__ if name != "details"}
    rounded = {name: None if values[name] is None else round(values[name], 3) for name in ages}
    return {**values, **rounded, "state": one.state.value, "why": one.why or None, "record": place(one.record)}


def _state(
    pipeline: Pipeline, table: StoredTable, offsets: TopicOffsets | None, *, lag: int | None, why: str
) -> tuple[State, str, Stop | None]:
    """Return the state of a pipeline with a table, the reason, and the stop. A stop that the table has needs no topic."""
    newest = table.newest(pipeline.name)
    refused = next((one for one in layout.differences(pipeline, table.layout) if one.is_refused), None)
    try:
        if refused is None:
            existing_table.columns_to_add(pipeline, table.layout)
        if newest is None:
            raise LedgerLost.of(pipeline.name, table.identifier, is_state=pipeline.write.replaces_rows)
        if not table.follows_tag(pipeline.name):
            raise RolledBack.of_table(pipeline.name, table.identifier)
        end = newest.entry.end
        if end is not None and offsets is not None:
            plan(pipeline.name, end, offsets.topic_id, offsets.spans, max_rows=1, topic=pipeline.topic.name)
    except DecisionRequired as decision:
        stop: Stop | None = Stop(error=type(decision).__name__, message=str(decision), commands=decision.commands)
    else:
        stop = noted_stop(table, pipeline.name, newest.entry)
        if stop is None and refused is not None:
            stop = Stop(error="DeclarationDiffers", message=f"{DIFFERS}: {refused}")
    if stop is not None:
        return State.STOPPED, stop.message, stop
    if offsets is None:
        return State.UNKNOWN, why, None
    return State.BEHIND if lag else State.CAUGHT_UP, "", None


def _rejected(table: StoredTable, pipeline: str, *, since: float) -> tuple[int, bool]:
    """Return how many records were rejected since then, and whether the table still has all commits since."""
    commits = table.commits(pipeline)
    recent = list(takewhile(lambda s: s.committed_at.timestamp() >= since, commits))
    counts = [snapshot.entry.counts for snapshot in recent]
    rejected = sum(sum(count.rejected.values()) for count in counts if count is not None)
    # Tools erase the parent of the oldest snapshot that they keep; its sequence number stays.
    has_all = len(recent) < len(commits) or not commits or commits[-1].sequence_number <= 1
    return rejected, has_all
