"""The status of a pipeline: what its table holds, how far that is behind its topic, and its last snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from frazil.audit.files.manifests import undecided_commits
from frazil.declaration import Pipeline
from frazil.errors import KafkaUnavailable, TokenUnavailable
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.stop import Stop
from frazil.lake.ledger.totals import Counts
from frazil.lake.read.stored_tables import Lake, Snapshot, StoredTable

if TYPE_CHECKING:
    from frazil.clients.kafka import Kafka, Span


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
    """What is known of one pipeline. Without a table nothing but names is; `why` says what could not be asked."""

    pipeline: str
    topic: str
    table: str
    location: str | None = None
    rows: int | None = None
    """Rows that readers see, as the table's commits count them."""
    deleted_by_others: int = 0
    """Rows that other engines deleted, as operators accepted."""
    foreign_commits: int = 0
    """Snapshots by which other engines changed rows since then, as far as they are kept: `rows` may not be what readers see."""
    stale_keys: int | None = None
    """Keys of a table of current state whose newest record was rejected; None if that was not counted."""
    unknown_keys: int | None = None
    """Rejected records whose key cannot be read; each may make one more key stale."""
    stale: tuple[str, ...] = ()
    """The same in sentences."""
    columns: tuple[tuple[str, str], ...] = ()
    partitions: tuple[PartitionStatus, ...] = ()
    newest_record_at: float | None = None
    """Seconds since 1970: rows are complete up to here."""
    commits: tuple[Commit, ...] = ()
    why: str = ""
    waiting: str = ""
    """What a pipeline without a table waits for."""
    stopped: str = ""
    """Why its last run ended with an error, with the commands that let it continue and the place of the record, if it is one."""
    commands: tuple[str, ...] = ()
    record: tuple[str, int, int] | None = None

    @property
    def lag(self) -> int | None:
        """Offsets that are not read yet, over all partitions."""
        known = [partition.lag for partition in self.partitions]
        return None if not known or None in known else sum(lag for lag in known if lag is not None)

    def document(self, *, now: float) -> dict[str, Any]:
        """Return the status as JSON."""
        freshness = None if self.newest_record_at is None else round(now - self.newest_record_at, 3)
        partitions = [{**asdict(p), "lag": p.lag} for p in self.partitions]
        commits = [{**asdict(c), "at": c.at.isoformat()} for c in self.commits]
        return {
            **asdict(self),
            "record": place(self.record),
            "lag": self.lag,
            "freshness_seconds": freshness,
            "partitions": partitions,
            "commits": commits,
        }


def pipeline_status(pipeline: Pipeline, lake: Lake, kafka: Kafka | None, *, commits: int) -> PipelineStatus:
    """Return the status of a pipeline now, with its newest `commits` snapshots.

    A Kafka outage is reported in `why`, not raised. Without `kafka`, the end of the topic is not known.
    """
    spans, why = _spans(pipeline, kafka) if kafka is not None else ({}, "")
    return table_status(pipeline, lake, lake.table(pipeline.table.identifier), spans, commits=commits, why=why)


def table_status(
    pipeline: Pipeline,
    lake: Lake,
    table: StoredTable | None,
    spans: Mapping[int, Span],
    *,
    commits: int = 0,
    why: str = "",
) -> PipelineStatus:
    """Return the status of a pipeline by its table, None if it has none yet, and the offsets of its topic."""
    stable = {partition: span.stable for partition, span in spans.items()}
    if table is None:
        return PipelineStatus(
            pipeline=pipeline.name,
            topic=pipeline.topic.name,
            table=pipeline.table.identifier,
            partitions=tuple(PartitionStatus(partition=p, held=None, stable=end) for p, end in stable.items()),
            why=why,
        )
    newest = next(iter(table.commits(pipeline.name)), None)
    entry = newest.entry if newest else None
    held = dict(entry.end.at) if entry and entry.end else {}
    return PipelineStatus(
        pipeline=pipeline.name,
        topic=pipeline.topic.name,
        table=pipeline.table.identifier,
        location=table.location,
        rows=_rows(table, entry),
        deleted_by_others=_deleted(entry),
        foreign_commits=len(undecided_commits(table)),
        **_of_stale_keys(entry),
        columns=tuple((field.name, str(field.type)) for field in table.columns.fields),
        partitions=tuple(
            # A partition that the ledger does not name was added after it began: it is read from 0.
            PartitionStatus(partition=p, held=held.get(p, 0 if held else _earliest(spans.get(p))), stable=stable.get(p))
            for p in sorted({*held, *stable})
        ),
        newest_record_at=_newest_record(table, pipeline.name),
        **_of_stop(noted_stop(table, pipeline.name, entry)),
        commits=tuple(_commit(s) for s, _ in zip(table.ancestors(table.head), range(commits), strict=False)),
        why=why,
    )


def noted_stop(table: StoredTable, pipeline: str, newest: Entry | None) -> Stop | None:
    """Return the stop that the table has, unless its newest entry has other offsets than at the stop."""
    stop = Stop.of(table.properties, pipeline)
    held = newest.end.at if newest is not None and newest.end is not None else None
    return stop if stop is not None and stop.is_at(held) else None


def place(record: tuple[str, int, int] | None) -> dict[str, Any] | None:
    """Return the place of a record as JSON."""
    return None if record is None else dict(zip(("topic", "partition", "offset"), record, strict=True))


def _of_stop(stop: Stop | None) -> dict[str, Any]:
    return {} if stop is None else {"stopped": stop.message, "commands": stop.commands, "record": stop.record}


def _rows(table: StoredTable, newest: Entry | None) -> int:
    """Return how many rows readers see: the data files of a table of current state have deleted ones, too."""
    if newest is not None and newest.keys is not None:
        return newest.keys.rows
    if table.head is None:
        return 0
    # Another engine may have deleted rows of an append table by position.
    return int(table.head.summary.get("total-records", 0)) - int(table.head.summary.get("total-position-deletes", 0))


def _deleted(newest: Entry | None) -> int:
    if newest is None:
        return 0
    return (newest.keys.removed if newest.keys is not None else 0) + (newest.totals.deleted if newest.totals else 0)


def _of_stale_keys(newest: Entry | None) -> dict[str, Any]:
    stale = newest.stale_keys if newest is not None else None
    if stale is None:
        return {}
    return {"stale_keys": stale.keys, "unknown_keys": stale.unknown, "stale": tuple(stale.notes)}


def _spans(pipeline: Pipeline, kafka: Kafka) -> tuple[Mapping[int, Span], str]:
    try:
        return kafka.offsets(pipeline.topic.name, pipeline.isolation), ""
    except (KafkaUnavailable, TokenUnavailable) as error:
        return {}, str(error)


def _earliest(span: Span | None) -> int | None:
    return span.earliest if span is not None else None


def _newest_record(table: StoredTable, pipeline: str) -> float | None:
    """Return the newest record's time, by the newest commit that had a record."""
    for snapshot in table.commits(pipeline):
        if ledger.VALID_THROUGH in snapshot.summary:
            return int(snapshot.summary[ledger.VALID_THROUGH]) / 1000
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
