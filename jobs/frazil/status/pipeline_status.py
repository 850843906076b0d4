"""The status of a pipeline: its state, what its table holds, how far that is behind its topic, and its last snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from frazil.audit.files.manifests import undecided_commits
from frazil.declaration import Pipeline
from frazil.errors import DecisionRequired, ForeignTable, LedgerLost, OtherPipeline, RolledBack
from frazil.ingest.plan.plan import plan
from frazil.ingest.setup import existing_table
from frazil.lake import layout
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.stop import Stop
from frazil.lake.ledger.totals import Counts
from frazil.lake.read.stored_tables import Snapshot, StoredTable

if TYPE_CHECKING:
    from frazil.clients.kafka import Span, TopicOffsets

DAY_SECONDS = 86_400.0
RATE_SECONDS = 300.0
"""The rate is that of the commits of the last five minutes."""
DIFFERS = "the declaration differs from the table"
_SIZES = ("total-files-size", "total-data-files", "total-delete-files")
_IN_FULL = ("location", "stale_keys", "unknown_keys", "stale", "columns", "partitions", "newest_record_at", "commits")


class State(StrEnum):
    """The state of a pipeline.

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
class PartitionStatus:
    """One partition: `held` is the next offset to read, `stable` the topic's end; None where it is not known."""

    partition: int
    held: int | None
    stable: int | None

    @property
    def lag(self) -> int | None:
        """Offsets that are not read yet."""
        return None if self.held is None or self.stable is None else max(self.stable - self.held, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One snapshot of a pipeline's table: the offsets it landed by partition, from and up to, and the counts of their records."""

    snapshot_id: int
    at: datetime
    operation: str
    offsets: Mapping[int, tuple[int, int]]
    counts: Counts | None
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """One pipeline. What is not known is None.

    `freshness_seconds` is the age of the newest landed record of the partition that is furthest behind. `rejected_24h` are records
    that the commits of the last 24 hours rejected; if the table has expired some of these, `is_all_rejected` is false. `rows` are
    those that readers see, as the table's commits count them.
    """

    pipeline: str
    topic: str
    table: str
    state: State = State.NO_TABLE
    why: str = ""
    """The message of a stop, the missing topic or schema, or why something is unknown."""
    commands: tuple[str, ...] = ()
    """Those that let a stopped pipeline continue."""
    record: tuple[str, int, int] | None = None
    """Topic, partition and offset of the record at which it stopped, if it is one."""
    freshness_seconds: float | None = None
    rejected_24h: int | None = None
    is_all_rejected: bool = True
    last_commit_seconds: float | None = None
    read_per_second: float | None = None
    """Records read by the commits of the last `RATE_SECONDS`, per second."""
    rows: int | None = None
    deleted_by_others: int = 0
    """Rows that other engines deleted, as operators accepted."""
    filtered: int = 0
    """Records that the declared `where` left out."""
    open_dead_letters: int | None = None
    """Dead letters without an outcome; None if their table was not read."""
    closed_dead_letters: Mapping[str, int] = field(default_factory=dict)
    """Dead letters with an outcome, by outcome."""
    foreign_commits: int = 0
    """Snapshots by which other engines changed rows since then: `rows` may differ from the rows that readers see."""
    bytes: int | None = None
    data_files: int | None = None
    delete_files: int | None = None
    differences: tuple[str, ...] = ()
    """The differences between the table and its declaration."""
    location: str | None = None
    stale_keys: int | None = None
    """Keys of an upsert table whose newest record was rejected; None if that was not counted."""
    unknown_keys: int | None = None
    """Rejected records whose key cannot be read; each may make one more key stale."""
    stale: tuple[str, ...] = ()
    """The same in sentences."""
    columns: tuple[tuple[str, str], ...] = ()
    partitions: tuple[PartitionStatus, ...] = ()
    newest_record_at: float | None = None
    """Seconds since 1970: rows are complete up to here."""
    commits: tuple[Commit, ...] = ()

    @property
    def lag(self) -> int | None:
        """Offsets that are not read yet, over all partitions; None without a table."""
        known = [partition.lag for partition in self.partitions]
        return None if not known or None in known else sum(lag for lag in known if lag is not None)

    @property
    def lag_seconds(self) -> float | None:
        """0 if no record waits, else `freshness_seconds`."""
        return 0.0 if self.lag == 0 else None if self.lag is None else self.freshness_seconds

    @property
    def text(self) -> str:
        """The state in words, such as `behind 1,204`."""
        return f"behind {self.lag:,}" if self.state is State.BEHIND and self.lag is not None else self.state.value

    def document(self, *, is_full: bool = False) -> dict[str, Any]:
        """Return the status as JSON, ages in seconds; `is_full` adds location, columns, partitions and snapshots."""
        ages = ("freshness_seconds", "lag_seconds", "last_commit_seconds")
        found: dict[str, Any] = {**asdict(self), "lag": self.lag, "lag_seconds": self.lag_seconds}
        found |= {name: None if found[name] is None else round(found[name], 3) for name in ages}
        record = self.record and dict(zip(("topic", "partition", "offset"), self.record, strict=True))
        found |= {"state": self.state.value, "why": self.why or None, "record": record}
        found["partitions"] = [{**asdict(one), "lag": one.lag} for one in self.partitions]
        found["commits"] = [{**asdict(one), "at": one.at.isoformat()} for one in self.commits]
        return found if is_full else {name: value for name, value in found.items() if name not in _IN_FULL}


def status_of(
    pipeline: Pipeline,
    table: StoredTable | None,
    offsets: TopicOffsets | None = None,
    *,
    now: float = 0.0,
    side: StoredTable | None = None,
    commits: int = 0,
    why: str = "",
    waiting: str = "",
) -> PipelineStatus:
    """Return the status of a pipeline from its table and the offsets of its topic; None for what does not exist or is not known.

    `side` is its dead-letter table.
    `why` says why there are no offsets, `waiting` what a pipeline without a table waits for. `now` is in seconds since 1970.
    """
    names = PipelineStatus(pipeline=pipeline.name, topic=pipeline.topic.name, table=pipeline.table.identifier)
    if table is not None:
        try:
            existing_table.check_ours(pipeline, table.layout)
        except (ForeignTable, OtherPipeline) as error:
            return replace(names, state=State.STOPPED, why=f"{error.what}. {error.do}", location=table.location)
    newest = table.newest(pipeline.name) if table is not None else None
    partitions = _partitions(newest.entry if newest else None, offsets.spans if offsets is not None else {})
    if table is None or table.head is None:
        state = State.WAITING if waiting else State.NO_TABLE
        return replace(names, state=state, why=waiting or why, partitions=partitions)
    entry, at = newest.entry if newest else None, _newest_record(table, pipeline.name)
    stop = _stop(pipeline, table, newest, offsets)
    size, data_files, delete_files = (int(table.head.summary.get(name, 0)) for name in _SIZES)
    rejected, is_all = _rejected(table, pipeline.name, since=now - DAY_SECONDS)
    stale = entry.stale_keys if entry is not None else None
    found = replace(
        names,
        location=table.location,
        freshness_seconds=None if at is None else max(now - at, 0.0),
        rejected_24h=rejected,
        is_all_rejected=is_all,
        last_commit_seconds=max(now - newest.committed_at.timestamp(), 0.0) if newest else None,
        read_per_second=round(_rate(table, pipeline.name, now=now), 3),
        rows=_rows(table, entry),
        deleted_by_others=_deleted(entry),
        filtered=entry.totals.filtered if entry is not None and entry.totals is not None else 0,
        open_dead_letters=_open(side, entry),
        closed_dead_letters=entry.closed_dead_letters if entry is not None else {},
        foreign_commits=len(undecided_commits(table)),
        bytes=size,
        data_files=data_files,
        delete_files=delete_files,
        stale_keys=stale.keys if stale else None,
        unknown_keys=stale.unknown if stale else None,
        stale=tuple(stale.notes) if stale else (),
        columns=tuple((field.name, str(field.type)) for field in table.columns.fields),
        partitions=partitions,
        newest_record_at=at,
        commits=tuple(_commit(s) for s, _ in zip(table.ancestors(table.head), range(commits), strict=False)),
    )
    if stop is not None:
        found = replace(found, state=State.STOPPED, why=stop.message, commands=stop.commands, record=stop.record)
    elif offsets is None:
        found = replace(found, state=State.UNKNOWN, why=why)
    else:
        found = replace(found, state=State.BEHIND if found.lag else State.CAUGHT_UP)
    said = existing_table.said(pipeline, table.layout)
    return replace(found, differences=tuple(one for one in said if one not in found.why))


def noted_stop(table: StoredTable, pipeline: str, newest: Snapshot | None) -> Stop | None:
    """Return the stop that the table has, unless its newest commit has other offsets than at the stop."""
    stop = Stop.of(table.properties, pipeline)
    held = newest.entry.end.at if newest is not None and newest.entry.end is not None else None
    return stop if stop is not None and stop.is_at(held) else None


def _stop(pipeline: Pipeline, table: StoredTable, newest: Snapshot | None, offsets: TopicOffsets | None) -> Stop | None:
    """Return why the pipeline stopped, or would stop. A stop that the table has needs no topic."""
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
        return Stop(error=type(decision).__name__, message=str(decision), commands=decision.commands)
    if (stop := noted_stop(table, pipeline.name, newest)) is not None or refused is None:
        return stop
    return Stop(error="DeclarationDiffers", message=f"{DIFFERS}: {refused}")


def _partitions(newest: Entry | None, spans: Mapping[int, Span]) -> tuple[PartitionStatus, ...]:
    """Return the partitions. One that the ledger does not name was added after it began: it is read from 0."""
    held = dict(newest.end.at) if newest and newest.end else {}
    earliest = {p: None if newest is None else 0 if held else span.earliest for p, span in spans.items()}
    return tuple(
        PartitionStatus(partition=p, held=held.get(p, earliest.get(p)), stable=spans[p].stable if p in spans else None)
        for p in sorted({*held, *spans})
    )


def _rows(table: StoredTable, newest: Entry | None) -> int:
    """Return how many rows readers see: the data files of an upsert table have deleted ones, too."""
    if newest is not None and newest.keys is not None:
        return newest.keys.rows
    if table.head is None:
        return 0
    # Another engine may have deleted rows of an append table by position.
    return int(table.head.summary.get("total-records", 0)) - int(table.head.summary.get("total-position-deletes", 0))


def _open(side: StoredTable | None, newest: Entry | None) -> int | None:
    """Return how many dead letters are open, as the commits of both tables count them."""
    if newest is None or newest.number == 0:
        return 0
    if side is None or side.head is None:
        return None
    summary = side.head.summary
    every = int(summary.get("total-records", 0)) - int(summary.get("total-position-deletes", 0))
    return max(every - sum(newest.closed_dead_letters.values()), 0)


def _deleted(newest: Entry | None) -> int:
    if newest is None:
        return 0
    return (newest.keys.removed if newest.keys is not None else 0) + (newest.totals.deleted if newest.totals else 0)


def _rejected(table: StoredTable, pipeline: str, *, since: float) -> tuple[int, bool]:
    """Return how many records were rejected since then, and whether the table still has all commits since."""
    commits = table.commits(pipeline)
    recent = list(takewhile(lambda s: s.committed_at.timestamp() >= since, commits))
    counts = [snapshot.entry.counts for snapshot in recent]
    rejected = sum(sum(count.rejected.values()) for count in counts if count is not None)
    # Tools erase the parent of the oldest snapshot that they keep; its sequence number stays.
    has_all = len(recent) < len(commits) or not commits or commits[-1].sequence_number <= 1
    return rejected, has_all


def _rate(table: StoredTable, pipeline: str, *, now: float) -> float:
    """Return the records read per second. If older commits have expired, the time begins at the oldest one that is kept."""
    commits = table.commits(pipeline)
    recent = list(takewhile(lambda s: s.committed_at.timestamp() >= now - RATE_SECONDS, commits))
    seconds = RATE_SECONDS
    if recent and len(recent) == len(commits) and recent[-1].sequence_number > 1:
        seconds = max(now - recent.pop().committed_at.timestamp(), 1.0)
    return sum(counts.read for one in recent if (counts := one.entry.counts) is not None) / seconds


def _newest_record(table: StoredTable, pipeline: str) -> float | None:
    """Return the newest record's time, by the newest commit that had a record."""
    for snapshot in table.commits(pipeline):
        if (newest := snapshot.entry.valid_through) is not None:
            return newest / 1000
    return None


def _commit(snapshot: Snapshot) -> Commit:
    entry = snapshot.entry
    return Commit(
        snapshot_id=snapshot.id,
        at=snapshot.committed_at,
        operation=snapshot.operation,
        offsets=_landed(entry),
        counts=entry.counts,
        is_ours=any(key.startswith("frazil.") for key in snapshot.summary),
    )


def _landed(entry: Entry) -> dict[int, tuple[int, int]]:
    """Return the partitions whose offset a commit moved."""
    if entry.start is None or entry.end is None:
        return {}
    start = entry.start.at
    return {p: (start.get(p, 0), end) for p, end in entry.end.at.items() if end != start.get(p, 0)}
