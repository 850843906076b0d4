"""What a driver does itself between two commits: the history of a state, its deleted rows, and old metadata."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from frazil.declaration import Pipeline, Spark, Upsert
from frazil.declaration.write_modes import history
from frazil.ingest.events import Event, Reporter
from frazil.ingest.state_history import StateHistory
from frazil.job.context import JobContext
from frazil.lake import metadata_expiry
from frazil.lake.history.recorded import kept_from
from frazil.lake.java_classes import Java
from frazil.maintain.between_batches import BetweenBatches

COMPACT_EVERY = 10
"""Commits between two looks at the deletes of a table. A look loads the table; only a rewrite takes longer."""


class Upkeep:
    """The upkeep of one pipeline's tables by its driver."""

    def __init__(self, pipeline: Pipeline, job: JobContext, report: Reporter) -> None:
        self._pipeline, self._job, self._report, self._commits = pipeline, job, report, 0
        self._history = StateHistory(pipeline, job, report)
        assert isinstance(pipeline.engine, Spark)
        seconds = float(pipeline.engine.limits.target_seconds)
        self._state = BetweenBatches(job, pipeline, seconds) if isinstance(pipeline.write, Upsert) else None

    def catch_up(self) -> None:
        """Have the history of the table follow the commits of earlier drivers, before the first batch."""
        self._history.catch_up()

    def after(self, publishing: Future[Any]) -> None:
        """Have the history follow a commit, then do what is due; nothing after a failed commit."""
        if publishing.exception() is not None:
            return
        self._history.follow()
        self._commits += 1
        if metadata_expiry.due(self._commits):
            self._expire_metadata()
        if self._commits % COMPACT_EVERY == 0:
            self._compact()

    def at_end(self) -> None:
        """Do what is due at the end of a run: the runs of a pipeline may all be short."""
        self._compact(at_end=True)
        self._expire_metadata()

    def _compact(self, *, at_end: bool = False) -> None:
        if self._state is None or self._job.stopping():
            return
        found = self._state.compact(at_end=at_end)
        if found is not None and (found.snapshots or found.why):
            facts = {
                name: getattr(found, name) for name in ("table", "files_removed", "files_added", "rows", "seconds")
            }
            self._report(Event.FILES_COMPACTED, **facts, ended=found.ended.value, why=found.why)

    def _expire_metadata(self) -> None:
        """Keep the metadata of a pipeline's tables small. If that fails, the failure is reported and the ingest goes on."""
        table = self._pipeline.table
        has_history = history(self._pipeline.write) is not None
        for identifier in (table.identifier, table.dead_letters, *([table.history] if has_history else [])):
            is_state = has_history and identifier == table.identifier
            trimmed = metadata_expiry.trim(
                self._job.iceberg,
                identifier,
                keep=table.keep_snapshots,
                keep_days=table.keep_days,
                now_ms=self._job.now_ms(),
                kept_from=self._kept_from if is_state else lambda _: None,
            )
            if trimmed.snapshots or trimmed.gave_up:
                facts = {"snapshots": trimmed.snapshots, "gave_up": trimmed.gave_up}
                self._report(Event.SNAPSHOTS_EXPIRED, table=identifier, **facts)

    def _kept_from(self, state: Java) -> int | None:
        return kept_from(self._job.iceberg, state, self._pipeline.table.history, self._pipeline.name)
