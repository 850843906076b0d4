"""The events by which a pipeline reports its progress, and the sum of what it landed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from frazil.clients.kafka import Span
from frazil.declaration import Pipeline
from frazil.ingest.one_batch import StagedBatch
from frazil.ingest.reporting import many_files
from frazil.ingest.reporting.events import Event, Reporter, Total
from frazil.lake.commit.other_commits import OtherCommit
from frazil.lake.commit.request import Committed

IDLE_SECONDS = 60.0  # between two `idle` events, as metrics are kept by the minute

MOST_RANGES = 100
"""Partitions whose offsets an event has."""


class Progress:
    """The progress of one pipeline in one run. `total` is the sum of its committed batches; `clock` is in seconds since 1970."""

    def __init__(self, pipeline: Pipeline, report: Reporter, clock: Callable[[], float]) -> None:
        self.total = Total()
        self._pipeline, self._report, self._clock = pipeline, report, clock
        self._has_warned = False
        self._idle_reported: float | None = None
        self._foreign: set[int] = set()

    def committed(self, staged: StagedBatch, commit: Committed, seconds: float) -> None:
        """Report a batch whose commit took so many seconds, and add it to the total."""
        counts, now = staged.request.counts, self._clock()
        self.total.add(counts)
        self._report(
            Event.BATCH_COMMITTED,
            snapshot=commit.snapshot_id,
            read=counts.read,
            written=counts.written,
            rejected=dict(counts.rejected),
            skipped=dict(counts.skipped),
            **({"filtered": dict(counts.filtered)} if counts.filtered else {}),
            **{name: n for name in ("unmatched", "late_events") if (n := getattr(counts, name))},
            **({"late": counts.late} if counts.late else {}),
            bytes=staged.bytes_read,
            duration_seconds=round(now - staged.began, 3),
            stage_seconds=round(staged.seconds, 3),
            commit_seconds=round(seconds, 3),
            freshness_seconds=self._freshness(staged),
            lag=_lag(staged),
            retention_used=_retention_used(staged.plan.spans, staged.request.end.at),
            offsets=_ranges(staged),
            **({"masked": counts.written} if self._pipeline.shape.masks else {}),
            **commit.sizes,
        )
        files = len(staged.main.files)
        if not self._has_warned and (message := many_files.of_batch(self._pipeline, files, staged.main.rows)):
            self._has_warned = True
            self._report(Event.MANY_FILES, message=message, files=files, rows=staged.main.rows)

    def foreign(self, commit: OtherCommit) -> None:
        """Report a commit by which another engine wrote rows of an upsert table, once in a run."""
        if commit.snapshot_id in self._foreign:
            return
        self._foreign.add(commit.snapshot_id)
        facts = {"snapshot": commit.snapshot_id, "operation": commit.operation}
        said = {"engine": commit.engine, "application": commit.application}
        message = f"another engine wrote rows of the table: {commit}"
        self._report(
            Event.FOREIGN_COMMIT, message=message, **facts, **{name: text for name, text in said.items() if text}
        )

    def held(self, staged: StagedBatch) -> None:
        """Report, as `idle` does, that the topic was read up to the end of a batch without a record for this table."""
        self.idle(
            lambda: {
                "lag": _lag(staged),
                "freshness_seconds": self._freshness(staged) if _lag(staged) else 0.0,
                "retention_used": _retention_used(staged.plan.spans, staged.request.end.at),
            }
        )

    def idle(self, facts: Callable[[], Mapping[str, Any]] = lambda: {"lag": 0, "freshness_seconds": 0.0}) -> None:
        """Report that the table gets no record: at once, then every `IDLE_SECONDS`. `facts` is called only then."""
        now = self._clock()
        if self._idle_reported is None or now - self._idle_reported >= IDLE_SECONDS:
            self._idle_reported = now
            self._report(Event.IDLE, **facts())

    def _freshness(self, staged: StagedBatch) -> float | None:
        """Return the age of the newest record of a batch; None if it is not known."""
        newest = staged.newest_ms
        return None if newest is None else round(self._clock() - newest / 1000, 3)


def _lag(staged: StagedBatch) -> int:
    """Return how many offsets waited behind a batch when it was planned."""
    return staged.plan.lag - staged.plan.rows


def _retention_used(spans: Mapping[int, Span], ends: Mapping[int, int]) -> float:
    """Return the unread part of what Kafka has of a partition, the highest of those that it deleted records of already."""
    waiting = ((s.stable - max(ends.get(p, 0), s.earliest), s) for p, s in spans.items() if s.earliest)
    return round(max((n / (s.stable - s.earliest) for n, s in waiting if n > 0), default=0.0), 3)


def _ranges(staged: StagedBatch) -> str:
    """Return the offsets of a batch, such as `0:10-20 1:5-9`, from and up to."""
    start, end = staged.request.start.at, staged.request.end.at
    moved = [f"{p}:{start.get(p, 0)}-{at}" for p, at in sorted(end.items()) if at != start.get(p, 0)]
    return " ".join([*moved[:MOST_RANGES], *(["…"] if len(moved) > MOST_RANGES else [])])
