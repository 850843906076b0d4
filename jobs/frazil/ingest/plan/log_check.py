"""Notice a log that was truncated and has grown again: its offsets mean other records than those that were read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from frazil.clients.kafka import Kafka, Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline
from frazil.declaration.options import Isolation
from frazil.errors import LogTruncated
from frazil.ingest.plan import fingerprint
from frazil.ingest.reporting.events import Event, Reporter
from frazil.lake.ledger.next_offsets import Offsets

UNCOMMITTED = Isolation.READ_UNCOMMITTED
UNKNOWN = "retention or compaction removed the last record that was read, so a truncated log looks like an intact one"


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome for some partitions: whose last record is another one now, and whose could not be compared."""

    other: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()


def compare(
    committed: Offsets,
    spans: Mapping[int, Span],
    read: Callable[[Mapping[int, int]], Mapping[int, Record | None]],
    *,
    compacted: bool,
    of: Collection[int],
) -> Compared:
    """Read the last records of some partitions back and compare each with the one that was read.

    A record that retention or compaction removed cannot be compared. In a topic without compaction a record between the log's
    ends cannot vanish: if it is gone, the log is another one.
    """
    identified = committed.last.identified(committed.at) if committed.last is not None else {}
    wanted = {p: found for p, found in identified.items() if p in spans and p in of}
    there = {p: offset for p, (offset, _) in wanted.items() if spans[p].earliest <= offset < spans[p].stable}
    records = read(there) if there else {}
    other, unknown = [], [p for p in wanted if p not in there]
    for p in there:
        record = records[p]
        if record is not None and not fingerprint.is_of(record, wanted[p][1]):
            other.append(p)
        elif record is None:
            (unknown if compacted else other).append(p)
    return Compared(tuple(sorted(other)), tuple(sorted(unknown)))


class LogCheck:
    """When one run compares last records: at its start, after an interruption, and when a partition has a new leader."""

    def __init__(self, pipeline: Pipeline, kafka: Kafka, report: Reporter) -> None:
        self._pipeline, self._kafka, self._report = pipeline, kafka, report
        self._compared: dict[int, int | None] = {}

    def forget(self) -> None:
        """Compare all partitions at the next check."""
        self._compared = {}

    def check(self, committed: Offsets, spans: Mapping[int, Span]) -> None:
        """Compare the partitions that were not compared under their present leader. Raises `LogTruncated`."""
        due = [p for p, span in spans.items() if self._compared.get(p, ...) != span.leader_epoch]
        found = compared(self._pipeline, self._kafka, committed, spans, of=due)
        if found.other:
            raise truncated(self._pipeline, committed, found.other)
        if found.unknown:
            self._report(Event.LOG_UNVERIFIED, partitions=list(found.unknown), message=UNKNOWN)
        self._compared |= {p: spans[p].leader_epoch for p in due}


def compared(
    pipeline: Pipeline, kafka: Kafka, committed: Offsets, spans: Mapping[int, Span], *, of: Collection[int]
) -> Compared:
    """Compare the last records of some partitions with those that a pipeline's ledger holds.

    They are read whether or not their transactions were committed: the pipeline may have read them under another isolation.
    """
    topic = pipeline.topic.name
    if not of or committed.last is None or not committed.last.identified(committed.at):
        return Compared()

    def compare_now(spans: Mapping[int, Span], of: Collection[int]) -> Compared:
        compacted = kafka.topic(topic).compacted
        return compare(committed, spans, lambda at: kafka.records(topic, at, UNCOMMITTED), compacted=compacted, of=of)

    found = compare_now(spans, of)
    if not found.other:
        return found
    # Retention may have removed records since the log's ends were asked for.
    again = compare_now(kafka.offsets(topic, UNCOMMITTED), found.other)
    return Compared(again.other, tuple(sorted({*found.unknown, *again.unknown})))


def truncated(pipeline: Pipeline, committed: Offsets, partitions: Collection[int]) -> LogTruncated:
    """Return the refusal for partitions whose last record is another one now."""
    last = committed.last.at if committed.last is not None else {}
    offset, may_compare = last[min(partitions)].offset, not pipeline.shape.is_masked
    return LogTruncated.replaced(
        pipeline.name, committed.topic, partitions=partitions, offset=offset, may_compare=may_compare
    )
