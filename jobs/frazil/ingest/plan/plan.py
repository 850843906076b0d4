"""Plan what one batch reads, from the offsets that a table holds, the offsets that Kafka has, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from frazil.declaration.engines import Limits
from frazil.errors import LogTruncated, OffsetsLost, TopicRecreated
from frazil.ingest.plan.ranges import OffsetRange, ranges_of
from frazil.job.shared_reads import Stretch
from frazil.lake.ledger.entry import Ranges
from frazil.lake.ledger.next_offsets import Offsets

if TYPE_CHECKING:
    from frazil.clients.kafka import Span


@dataclass(frozen=True, slots=True)
class Place:
    """A record of a topic."""

    topic_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Handling:
    """The handling that the records of a pipeline have needed so far.

    Some are decoded by `thorough` bodies only: then all are. Some changes omit values, which a batch `fills` from the table.
    `truncate` is the last truncate of the source's table where it deletes all rows: a batch with it lands what is after it.
    """

    thorough: bool = False
    fills: bool = False
    truncate: Place | None = None


@dataclass(frozen=True, slots=True)
class Restage:
    """A batch that is to be staged again, as it needs another handling than it had: no failed attempt."""

    why: str
    handling: Handling


@dataclass(frozen=True, slots=True)
class Plan:
    """One batch: where it starts and ends in every partition of the topic.

    `start` and `end` name all partitions, also those without anything new, so that `end` is the complete ledger; `committed` is the
    ledger it was planned on, `spans` the offsets of the topic at that time.

    An operator decided that in it records of a key may be in several partitions (`keys_move`), that deletes may be missing
    (`may_lack_deletes`). `as_of` is when the topic's ends were seen, microseconds since 1970; `is_to_end`: the batch reaches them.
    `is_slice` is that of its `stretch`.
    `accepted_records` are rejected records that are to be kept as dead letters. `handling` says how the batch is staged.
    """

    committed: Offsets
    start: Offsets
    end: Offsets
    lag: int
    spans: Mapping[int, Span] = field(default_factory=dict)
    keys_move: bool = False
    may_lack_deletes: bool = False
    as_of: int = 0
    is_to_end: bool = False
    is_slice: bool = False
    accepted_records: Ranges = field(default_factory=dict)
    handling: Handling = Handling()  # frozen

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """The partitions that have something to read."""
        return ranges_of(self.start.at, self.end.at)

    @property
    def rows(self) -> int:
        """The number of offsets that the batch covers."""
        return sum(len(r) for r in self.ranges)

    @property
    def stretch(self) -> Stretch:
        """The offsets that it reads, as other pipelines of the topic may read them, too."""
        leaders = {partition: span.leader_epoch for partition, span in self.spans.items()}
        return Stretch(self.end.topic_id, self.start.at, self.end.at, leaders, self.is_slice)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The partitions that have something to read beyond this batch."""
        return tuple(p for p, span in self.spans.items() if span.stable > self.end.at[p])

    @property
    def filled(self) -> tuple[int, ...]:
        """The partitions that hold records."""
        return tuple(p for p, span in self.spans.items() if span.stable > span.earliest)

    def truncate_at(self, offset: int | None) -> Place | None:
        """Return the record at an offset of the only partition; None for a topic of several: no order says what is before it."""
        if offset is None or len(self.end.at) != 1:
            return None
        (partition,) = self.end.at
        return Place(self.end.topic_id, partition, offset)

    @property
    def truncated_at(self) -> int | None:
        """The offset of the truncate that the batch has, as far as is known; it is in the only partition."""
        at = self.handling.truncate
        if at is None or self.truncate_at(at.offset) != at:
            return None
        return at.offset if any(one.start <= at.offset < one.end for one in self.ranges) else None

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to read."""
        return not self.ranges


def plan(
    pipeline: str,
    committed: Offsets,
    topic_id: str,
    spans: Mapping[int, Span],
    *,
    max_rows: int,
    topic: str | None = None,
) -> Plan:
    """Plan the next batch: at most `max_rows` offsets, shared among partitions by what each has waiting.

    `topic` is the declared topic's name; another one than the ledger's says that the pipeline was moved.

    A partition that the ledger does not name was added after it began, so all its records are unread: it starts at 0.
    Raises `TopicRecreated`, `LogTruncated` or `OffsetsLost`: the offsets in the ledger and those in Kafka then do not fit
    together, and going on would lose records.
    """
    if committed.topic_id != topic_id:
        moved_to = topic if topic not in (None, committed.topic) else None
        raise TopicRecreated.of(
            pipeline, committed.topic, topic_id=topic_id, committed_id=committed.topic_id, moved_to=moved_to
        )
    gone = sorted(committed.at.keys() - spans.keys())
    if gone:
        raise LogTruncated.missing(pipeline, committed.topic, gone)
    start = {p: committed.at.get(p, 0) for p in sorted(spans)}
    for p, span in spans.items():
        if start[p] > span.stable:
            raise LogTruncated.at_end(pipeline, committed.topic, partition=p, committed=start[p], end=span.stable)
        if start[p] < span.earliest:
            raise OffsetsLost.of(pipeline, committed.topic, partition=p, first=start[p], earliest=span.earliest)
    waiting = {p: span.stable - start[p] for p, span in sorted(spans.items())}
    taken = _share(waiting, max_rows)
    end = {p: start[p] + taken[p] for p in start}
    return Plan(
        committed,
        Offsets(committed.topic, topic_id, start),
        Offsets(committed.topic, topic_id, end),
        lag=sum(waiting.values()),
        spans=dict(sorted(spans.items())),
    )


def up_to(first: dict[int, Span], now: Mapping[int, Span], committed: Offsets | None) -> Mapping[int, Span]:
    """Return the spans of `now`, each ending no later than it did at `first`, where partitions that were added since are noted.

    Where another driver has committed records after that end, it is the committed offset: the log is not shorter than that.
    """
    at = committed.at if committed is not None else {}
    return ended(now, {p: max(first.setdefault(p, span).stable, at.get(p, 0)) for p, span in now.items()})


def no_further(spans: Mapping[int, Span], committed: Offsets, ends: Mapping[int, int]) -> Mapping[int, Span]:
    """Return the spans, none of which ends after its offset in `ends`; as they are once `committed` has come to all of these."""
    if not is_before(committed, ends, spans):
        return spans
    return ended(spans, {p: max(ends.get(p, 0), committed.at.get(p, 0)) for p in spans})


def is_before(committed: Offsets, ends: Mapping[int, int], spans: Mapping[int, Span]) -> bool:
    """Return whether an offset is before its one in `ends`. Of a partition that ends before that it need come no further."""
    return any(committed.at.get(p, 0) < min(end, spans[p].stable) for p, end in ends.items() if p in spans)


def ended(spans: Mapping[int, Span], ends: Mapping[int, int]) -> Mapping[int, Span]:
    """Return the spans, none of which ends after its offset in `ends`."""
    return {p: replace(span, stable=min(span.stable, ends[p])) for p, span in spans.items()}


def up_to_committed(
    spans: Mapping[int, Span], uncommitted: Mapping[int, Span], committed: Mapping[int, int]
) -> Mapping[int, Span]:
    """Return the spans, each reaching its committed offset if the log, with its `uncommitted` records, does."""
    reached = {p: o for p, o in committed.items() if p in uncommitted and o <= uncommitted[p].stable}
    return {p: replace(span, stable=max(span.stable, reached.get(p, 0))) for p, span in spans.items()}


def _share(waiting: Mapping[int, int], limit: int) -> dict[int, int]:
    total = sum(waiting.values())
    if total <= limit:
        return dict(waiting)
    taken = {p: n * limit // total for p, n in waiting.items()}
    spare = limit - sum(taken.values())
    for p in sorted(waiting, key=lambda p: waiting[p] - taken[p], reverse=True):
        more = min(spare, waiting[p] - taken[p], 1)
        taken[p] += more
        spare -= more
    return taken


UNMEASURED_ROWS = 4_096
"""So few rows take the time of their plan, of a cold JVM and of their commit: it says nothing of larger batches."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The size that the next batch may have, learnt from those before.

    `rows` starts at `first_rows`, at most quadruples from one batch to the next, and aims at `target_seconds` a batch within
    `max_rows` and `max_bytes`; `row_bytes` is the running mean of a record's value in bytes. Time alone never takes it below
    `first_rows`: where a commit takes longer than `target_seconds`, smaller batches take as long and land less. After a batch
    that died of memory none has more than `ceiling` rows, also if it was staged in time and died later.
    """

    limits: Limits
    rows: int
    row_bytes: float = 0.0
    ceiling: int | None = None

    def after(self, rows: int, bytes_read: int, seconds: float) -> Pace:
        """Return the pace after a batch of `rows` records with `bytes_read` bytes of values that took `seconds`."""
        if rows == 0:
            return self
        row_bytes = bytes_read / rows if not self.row_bytes else 0.7 * self.row_bytes + 0.3 * bytes_read / rows
        limits = self.limits
        wanted = int(rows * limits.target_seconds / max(seconds, 0.01))
        grown = self.rows
        if rows <= UNMEASURED_ROWS:
            grown *= 4 if rows >= self.rows // 2 else 1
        elif rows >= self.rows // 2 or seconds > limits.target_seconds:  # a small batch says little about large ones
            grown = max(min(wanted, self.rows * 4), self.rows // 4, min(limits.first_rows, self.rows))
        most = limits.max_rows if self.ceiling is None else min(limits.max_rows, self.ceiling)
        bounded = min(grown, most, int(limits.max_bytes / max(row_bytes, 1.0)))
        return replace(self, rows=max(bounded, 1), row_bytes=row_bytes)

    def at_most(self, rows: int) -> Pace:
        """Return the pace for a batch that must not be larger; later batches may be."""
        return replace(self, rows=max(min(self.rows, rows), 1))

    def halved(self, rows: int) -> Pace:
        """Return the pace after a batch of so many rows that died of memory."""
        half = max(min(self.rows, rows) // 2, 1)
        return replace(self, rows=half, ceiling=half)

    def lifted(self) -> Pace:
        """Return the pace that tries larger batches again, if one had died of memory: its records may have been unusually large."""
        return self if self.ceiling is None else replace(self, ceiling=self.ceiling * 2)
