"""The upkeep by a driver between two commits: it removes the deleted rows of an upsert table, and old metadata."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from frazil.declaration import Pipeline, Spark
from frazil.ingest.reporting.events import Event, Reporter
from frazil.job.context import JobContext
from frazil.lake import metadata_expiry
from frazil.maintain.between_batches import BetweenBatches

COMPACT_EVERY = 10
"""Commits between two looks at the deletes of a table. A look loads the table; only a rewrite takes longer."""


class Upkeep:
    """The upkeep of one pipeline's tables by its driver."""

    def __init__(self, pipeline: Pipeline, job: JobContext, report: Reporter) -> None:
        self._pipeline, self._job, self._report, self._commits = pipeline, job, report, 0
        assert isinstance(pipeline.engine, Spark)
        seconds = float(pipeline.engine.limits.target_seconds)
        self._state = BetweenBatches(job, pipeline, seconds) if pipeline.write.replaces_rows else None

    def after(self, publishing: Future[Any]) -> None:
        """Do what is due after a commit; nothing after a failed one."""
        if publishing.exception() is not None:
            return
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
        for identifier in self._pipeline.tables:
            trimmed = metadata_expiry.trim(
                self._job.iceberg,
                identifier,
                keep=table.snapshots.newest,
                keep_days=table.snapshots.days,
                now_ms=self._job.now_ms(),
            )
            if trimmed.snapshots or trimmed.gave_up:
                facts = {"snapshots": trimmed.snapshots, "gave_up": trimmed.gave_up}
                self._report(Event.SNAPSHOTS_EXPIRED, table=identifier, **facts)
