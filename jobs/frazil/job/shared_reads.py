"""Records that several pipelines of one driver read once, and the place of each pipeline in its topic.

A pipeline that begins a large batch keeps its records for those that begin at the same offsets next. Each of these executes the
read in jobs of its own, so an error of the read is its own error. No pipeline waits for another one: whoever has left, reads
elsewhere, or tries a batch again reads alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from py4j.protocol import Py4JError

LEAST_ROWS = 10_000
"""A smaller batch is read alone: keeping its records takes as long as reading them."""
MOST_OF_TOPIC, MOST = 2, 6
"""How many reads are kept of one topic, and of all: each within the limits of a batch, and on local disks only."""


class Records(Protocol):
    """Records on local disks, such as a frame that is kept there."""

    def unpersist(self) -> Any:
        """Remove them."""
        ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """The offsets of a batch: of each partition from `start` up to and without `end`, under these leaders.

    If it `is_slice`, one time of the log divides it from the records after it, in all partitions.
    """

    topic_id: str
    start: Mapping[int, int]
    end: Mapping[int, int]
    leaders: Mapping[int, int | None] = field(default_factory=dict)
    is_slice: bool = False

    @property
    def rows(self) -> int:
        """How many offsets it covers."""
        return sum(self.end[p] - start for p, start in self.start.items())

    def has(self, other: Stretch) -> bool:
        """Return whether the records of `other` are among these: of the same log, which has the same leaders."""
        read = [p for p, start in other.start.items() if other.end[p] > start]
        return self.topic_id == other.topic_id and all(
            p in self.start
            and self.start[p] <= other.start[p]
            and other.end[p] <= self.end[p]
            and self.leaders.get(p) == other.leaders.get(p)
            for p in read
        )

    def begins_before(self, at: Mapping[int, int]) -> bool:
        """Return whether these offsets are in it, and not at its end."""
        return at != self.end and all(start <= at.get(p, 0) <= self.end[p] for p, start in self.start.items())

    def is_after(self, at: Mapping[int, int]) -> bool:
        """Return whether it begins at these offsets, or later."""
        return all(start >= at.get(p, 0) for p, start in self.start.items())


@dataclass(slots=True)
class _Reader:
    """A pipeline that reads a topic. `in_slices`: it depends on slices of time. `kept` has the records of its newest batch."""

    source: Hashable
    in_slices: bool
    batch: Stretch | None = None
    kept: _Kept | None = None


@dataclass(slots=True, eq=False)
class _Kept:
    """Records that are read once, for the pipelines `readers`, of which some may not have begun with them."""

    source: Hashable
    stretch: Stretch
    readers: set[str]
    records: Records | None = None
    lock: Lock = field(default_factory=Lock)


class SharedReads:
    """The reads of one driver's pipelines. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers: dict[str, _Reader] = {}
        self._kept: list[_Kept] = []

    def enter(self, pipeline: str, source: Hashable, *, in_slices: bool) -> None:
        """Note that a pipeline is about to read. Pipelines share reads of one `source`: the topic and how it is read."""
        with self._lock:
            self._readers.setdefault(pipeline, _Reader(source, in_slices))

    def leave(self, pipeline: str) -> None:
        """Note that a pipeline reads no more, for now or at all."""
        with self._lock:
            self._readers.pop(pipeline, None)
            for kept in self._kept:
                kept.readers.discard(pipeline)
            unread = self._unread()
        _release(unread)

    def has_slices(self, pipeline: str) -> bool:
        """Return whether a pipeline of the same source depends on slices of time: then all of them read in such slices."""
        with self._lock:
            return any(other.in_slices for other in self._of_source(pipeline).values())

    def ends(self, pipeline: str, at: Mapping[int, int], rows: int) -> list[Stretch]:
        """Return the batches at whose ends a pipeline may end the batch that begins `at` these offsets, and has so many rows.

        If it begins in a kept read, this is the only one. A small batch ends at no other's.
        """
        with self._lock:
            if pipeline not in self._readers:
                return []
            inside = [k.stretch for k in self._kept if pipeline in k.readers and k.stretch.begins_before(at)]
            if inside or rows < LEAST_ROWS:
                return inside
            in_slices = self._readers[pipeline].in_slices
            newest = [other.batch for other in self._of_source(pipeline).values() if other.batch is not None]
            return [batch for batch in newest if batch.is_slice or not in_slices]

    def begin(self, pipeline: str, batch: Stretch) -> None:
        """Note the batch that a pipeline stages next, an empty one if nothing waits, and whether it shares the read of it."""
        with self._lock:
            reader = self._readers.get(pipeline)
            if reader is None:
                return
            before, reader.batch, reader.kept = reader.batch, batch, None
            is_retried = before is not None and before.end != batch.start
            for kept in (kept for kept in self._kept if pipeline in kept.readers):
                if batch.rows and not is_retried and kept.stretch.has(batch):
                    reader.kept = kept
                elif not kept.stretch.is_after(batch.end):
                    kept.readers.discard(pipeline)
            unread = self._unread()
            if reader.kept is None and not is_retried and batch.rows >= LEAST_ROWS:
                there = (one for one in self._kept if one.source == reader.source and one.stretch.has(batch))
                reader.kept = next(there, None)  # it was kept before this pipeline was there
                if reader.kept is not None:
                    reader.kept.readers.add(pipeline)
                others = self._next_at(pipeline, batch)
                if reader.kept is None and others and self._has_room(reader.source):
                    reader.kept = _Kept(reader.source, batch, {pipeline, *others})
                    self._kept.append(reader.kept)
        _release(unread)

    def records(self, pipeline: str, batch: Stretch, keep: Callable[[Stretch], Records]) -> tuple[Any, Stretch] | None:
        """Return the kept records that have those of the batch, and where these are; None if the pipeline reads it alone.

        `keep` makes those of a stretch, the same for all pipelines of the source. They stay until each of their pipelines begins a
        later batch, or leaves.
        """
        with self._lock:
            reader = self._readers.get(pipeline)
            kept = reader.kept if reader is not None and reader.batch == batch else None
        if kept is None:
            return None
        with kept.lock:
            if kept.records is None:
                kept.records = keep(kept.stretch)
            return kept.records, kept.stretch

    def _of_source(self, pipeline: str) -> dict[str, _Reader]:
        """Return the other pipelines of a pipeline's source."""
        me = self._readers.get(pipeline)
        if me is None:
            return {}
        return {name: one for name, one in self._readers.items() if name != pipeline and one.source == me.source}

    def _next_at(self, pipeline: str, batch: Stretch) -> list[str]:
        """Return the other pipelines whose next batch may begin where this one does."""
        ends = {name for kept in self._kept if kept.stretch.end == batch.start for name in kept.readers}
        return [
            name
            for name, one in self._of_source(pipeline).items()
            if (batch.is_slice or not one.in_slices)
            and (one.batch is None or one.batch.end == batch.start or name in ends)
        ]

    def _has_room(self, source: Hashable) -> bool:
        return len(self._kept) < MOST and sum(kept.source == source for kept in self._kept) < MOST_OF_TOPIC

    def _unread(self) -> list[_Kept]:
        """Drop the reads that have no readers; return these."""
        unread = [kept for kept in self._kept if not kept.readers]
        self._kept = [kept for kept in self._kept if kept.readers]
        return unread


def _release(unread: Sequence[_Kept]) -> None:
    for kept in unread:
        if kept.records is not None:
            with suppress(Py4JError, OSError, AttributeError, TypeError):  # the JVM has ended
                kept.records.unpersist()
