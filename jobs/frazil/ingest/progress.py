"""The events by which a pipeline reports its progress, and the sum of what it landed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from frazil.declaration import Pipeline
from frazil.ingest.one_batch import StagedBatch
from frazil.ingest.reporting import many_files
from frazil.ingest.reporting.events import Event, Reporter, Total
from frazil.lake.commit.other_commits import OtherCommit

IDLE_SECONDS = 60.0  # between two `idle` events, as metrics are kept by the minute


class Progress:
    """The progress of one pipeline in one run. `total` is the sum of its committed batches; `clock` is in seconds since 1970."""

    def __init__(self, pipeline: Pipeline, report: Reporter, clock: Callable[[], float]) -> None:
        self.total = Total()
        self._pipeline, self._report, self._clock = pipeline, report, clock
        self._has_warned = False
        self._idle_reported: float | None = None
        self._foreign: set[int] = set()

    def committed(self, staged: StagedBatch, snapshot_id: int) -> None:
        """Report a batch that was committed, and add it to the total."""
        counts, now, newest = staged.request.counts, self._clock(), staged.newest_ms
        self.total.add(counts)
        self._report(
            Event.BATCH_COMMITTED,
            snapshot=snapshot_id,
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
            freshness_seconds=None if newest is None else round(now - newest / 1000, 3),
            lag=staged.plan.lag - staged.plan.rows,
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

    def idle(self, facts: Callable[[], Mapping[str, Any]] = lambda: {"lag": 0, "freshness_seconds": 0.0}) -> None:
        """Report that nothing can be read: at once, then every `IDLE_SECONDS`. `facts` is called only then."""
        now = self._clock()
        if self._idle_reported is None or now - self._idle_reported >= IDLE_SECONDS:
            self._idle_reported = now
            self._report(Event.IDLE, **facts())
