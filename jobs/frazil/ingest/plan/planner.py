"""The next batch of a run: from the topic's ends, within what operators decided, of a log that is the one that was read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from frazil.clients.kafka import Kafka, Span, TopicState
from frazil.declaration import Field, Pipeline
from frazil.declaration.options import Isolation
from frazil.ingest.plan import lost_deletes
from frazil.ingest.plan.log_check import LogCheck
from frazil.ingest.plan.meeting import meeting, met
from frazil.ingest.plan.plan import Handling, Plan, ended, is_before, no_further, plan, up_to_committed
from frazil.ingest.reporting.events import Reporter
from frazil.job.context import JobContext
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import BATCH_EVENTS, Entry, Ranges, window_of
from frazil.lake.ledger.next_offsets import Offsets

Spans = Mapping[int, Span]
Accepted = Mapping[str, Mapping[int, int]]
"""The offsets, by partition, up to which each decision counts."""


LOOK_SECONDS = 60.0
"""The longest time between two plans of a topic without new records."""


class Planner:
    """Plans the batches of one pipeline.

    `accepted` are the offsets up to which an operator accepts batches (`rejected_share.accepted`). `since` is when the
    ends were seen up to which the run lands, in seconds since 1970; 0 for a run that follows the topic. `handling` is how its next
    batch is staged.
    """

    def __init__(self, pipeline: Pipeline, job: JobContext, report: Reporter) -> None:
        self._pipeline, self._job = pipeline, job
        self._log = LogCheck(pipeline, job.kafka, report)
        self._topic: TopicState | None = None
        self._windows: Mapping[str, Mapping[int, int]] = {}
        self._by_time = pipeline.write.replaces_rows and not pipeline.write.order_columns
        self._source = source(pipeline)
        self._slice_ms = self._stored_us = 0
        self.accepted: Accepted = {}
        self._accepted_records: Ranges = {}
        self.since = 0.0
        self.handling = Handling()

    def forget(self) -> None:
        """Take decisions from the ledger again, and compare the log with it."""
        self.accepted = {}
        self._log.forget()

    def resume(self, last: Entry) -> None:
        """Take what operators decided, and when the table was complete, from the newest entry of the ledger."""
        if not self._pipeline.shape.is_masked:  # a shared read keeps records on disk as they are
            self._job.reads.enter(self._pipeline.name, self._source, in_slices=self._by_time)
        if not self.accepted or last.event is not None:  # else it stays so if batches of it are staged again
            self.accepted = accepted(last)
        windows = {name: last.window(name) for name in ledger.WINDOWS}
        self._accepted_records = last.accepted_records
        self._windows = {name: offsets.at for name, offsets in windows.items() if offsets is not None}
        known = last.end.last.caught_up if last.end is not None and last.end.last is not None else None
        self._stored_us, self._slice_ms = known.at if known is not None else 0, 0

    def next(self, after: Offsets, spans: Callable[[], Spans], max_rows: int) -> Plan:
        """Plan the batch behind `after`. Raises what `plan` raises, and `LogTruncated`."""
        self._topic, as_of = self._job.kafka.topic(self._pipeline.topic.name), self.since or self._job.clock()
        seen = held_back(self._pipeline, self._job.kafka, spans(), after)
        # A batch that went beyond what an operator decided about would be refused with all that is in it.
        there = seen
        for ends in (*self.accepted.values(), *self._windows.values()):
            there = no_further(there, after, ends)
        name, topic_id = self._pipeline.name, self._topic.topic_id
        planned = plan(name, after, topic_id, there, max_rows=max_rows, topic=self._pipeline.topic.name)
        is_slice = len(there) == 1 or _reaches(planned, seen)
        if planned.lag > max_rows and (self._by_time or self._job.reads.has_slices(name)):
            slice_, is_slice = self._slice(planned, max_rows)
            sliced = plan(name, after, topic_id, slice_, max_rows=max_rows)
            planned, is_slice = replace(planned, end=sliced.end), is_slice and sliced.lag <= max_rows
        planned = self._met(replace(planned, is_slice=is_slice))
        self._log.check(after, planned.spans)
        return replace(
            planned,
            keys_move=self._is_in(ledger.KEYS_MOVED, after, seen),
            may_lack_deletes=self._is_in(ledger.DELETES_LOST, after, seen),
            accepted_records=self._accepted_records,
            as_of=round(as_of * 1_000_000),
            handling=self.handling,
            is_to_end=_reaches(planned, seen),
        )

    @property
    def look_seconds(self) -> float:
        """The longest time, in seconds, between two plans of a topic without new records. In between, its offsets are compared.

        At most a quarter of the time for which the topic keeps deletes, as a plan without records says when none was missed.
        """
        return LOOK_SECONDS if self._topic is None else min(LOOK_SECONDS, self._topic.delete_retention_ms / 4000)

    def begin(self, planned: Plan) -> None:
        """Let the other pipelines of the topic know which batch is staged next."""
        self._job.reads.begin(self._pipeline.name, planned.stretch)

    def idle(self, planned: Plan) -> Offsets:
        """Return the offsets of a plan without records; they say that there were none."""
        assert self._topic is not None
        self.begin(planned)
        offsets = lost_deletes.idle(self._pipeline, planned, self._topic)
        self._stored_us = lost_deletes.stored(self._pipeline, self._job, offsets, self._stored_us)
        return offsets

    def _met(self, planned: Plan) -> Plan:
        """Return the plan, ended where another pipeline of the topic begins its next batch if that is in it."""
        start, end = planned.start.at, planned.end.at
        other = meeting(start, end, self._job.reads.ends(self._pipeline.name, start, planned.rows))
        if other is None:
            return planned
        at = met(start, end, other)
        # A slice of both is one, unless this pipeline has read beyond the other's in a partition.
        is_before = planned.is_slice and all(other.end.get(p, 0) >= begun for p, begun in start.items())
        is_slice = len(at) == 1 or (other.is_slice and (is_before or at == other.end))
        return replace(planned, end=replace(planned.end, at=at), is_slice=is_slice)

    def _is_in(self, window: str, after: Offsets, spans: Spans) -> bool:
        return is_before(after, self._windows.get(window, {}), spans)

    def _slice(self, planned: Plan, max_rows: int) -> tuple[Spans, bool]:
        """Return the spans up to the end of the next slice of time, and whether no record after it has been read."""
        topic, isolation = self._pipeline.topic.name, self._pipeline.isolation
        start, stable = planned.start.at, {p: span.stable for p, span in planned.spans.items()}
        asked: dict[int, Mapping[int, int]] = {}

        def offsets_at(ms: int) -> Mapping[int, int]:
            asked[ms] = self._job.kafka.offsets_at(topic, ms, isolation)
            return asked[ms]

        ends, self._slice_ms = slice_ends(start, stable, max_rows, offsets_at, after_ms=self._slice_ms)
        found = asked.get(self._slice_ms, stable)
        return ended(planned.spans, ends), all(found.get(p, end) >= start[p] for p, end in stable.items())


def _reaches(planned: Plan, spans: Spans) -> bool:
    return all(planned.end.at[p] >= span.stable for p, span in spans.items())


def held_back(pipeline: Pipeline, kafka: Kafka, spans: Mapping[int, Span], committed: Offsets) -> Mapping[int, Span]:
    """Return the spans, each ending at the committed offset where an open transaction begins before that.

    Records of the transaction were landed while the pipeline read uncommitted ones. The log is not truncated: it has them. Whether
    it is another one shows the last record that was read; without one, the span stays as it is, and ends too early.
    """
    is_behind = any(span.stable < committed.at.get(p, 0) for p, span in spans.items())
    if not is_behind or pipeline.isolation is Isolation.READ_UNCOMMITTED or committed.last is None:
        return spans
    known = {p: committed.at[p] for p in committed.last.identified(committed.at)}
    return up_to_committed(spans, kafka.offsets(pipeline.topic.name, Isolation.READ_UNCOMMITTED), known)


_FAR_MS = 1 << 42  # the year 2109: a later time is the end of the log


def slice_ends(
    start: Mapping[int, int],
    stable: Mapping[int, int],
    max_rows: int,
    offsets_at: Callable[[int], Mapping[int, int]],
    *,
    after_ms: int = 0,
) -> tuple[dict[int, int], int]:
    """Return where a batch of at most `max_rows` ends in each partition, and the time of these ends, milliseconds since 1970.

    `start` and `stable` are what there is to read, `offsets_at` gives the first offset of a time or later, by partition; `after_ms`
    is the time of the slice before. At least half of `max_rows` are in the slice, unless so many records have one timestamp: then
    the slice has all of them, and may be larger. A partition is read in the order of its offsets, so a record with a time far ahead
    holds back those behind it.
    """

    def ends(ms: int) -> dict[int, int]:
        if ms >= _FAR_MS:
            return dict(stable)
        at = offsets_at(ms)
        return {p: min(max(at.get(p, end), start[p]), end) for p, end in stable.items()}

    def size(found: Mapping[int, int]) -> int:
        return sum(end - start[p] for p, end in found.items())

    if size(stable) <= max_rows:
        return dict(stable), _FAR_MS
    low, high, width = after_ms, _FAR_MS, 60_000
    best = ends(low)
    if size(best) > max_rows:  # of one timestamp, or of earlier ones that came late
        return best, low
    while low + width < _FAR_MS:  # doubled from the slice before: what is waiting is near it
        found = ends(low + width)
        if size(found) > max_rows:
            high = low + width
            break
        low, best, width = low + width, found, width * 2
    while size(best) * 2 < max_rows and high - low > 1:
        middle = (low + high) // 2
        found = ends(middle)
        low, high, best = (middle, high, found) if size(found) <= max_rows else (low, middle, best)
    return (best, low) if size(best) else (ends(high), high)


def accepted(newest: Entry) -> dict[str, dict[int, int]]:
    """Return the offsets, by decision and partition, up to which an operator accepted such batches."""
    known = {event: newest.window(window_of(event)) for event in BATCH_EVENTS}
    topic_id = newest.end.topic_id if newest.end is not None else None
    return {event: dict(ends.at) for event, ends in known.items() if ends is not None and ends.topic_id == topic_id}


def source(pipeline: Pipeline) -> Hashable:
    """Return what pipelines of one driver have in common that share reads: the topic, how it is read, and how it is divided."""
    route, reading = pipeline.shape.route, (pipeline.isolation, tuple(sorted(pipeline.kafka.options.items())))
    is_divided = route is not None and not isinstance(route.by, Field)
    divided = route.of_topic if route is not None and is_divided else None
    return (pipeline.topic.name, *reading, divided)
