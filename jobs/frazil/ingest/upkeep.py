"""Metadata expiry between the commits of an ingest."""

from __future__ import annotations

from frazil.declaration import Pipeline
from frazil.ingest.events import Event, Reporter
from frazil.job.context import JobContext
from frazil.lake import metadata_expiry


def expire_metadata(pipeline: Pipeline, job: JobContext, report: Reporter) -> None:
    """Keep the metadata of a pipeline's tables small. If that fails, the failure is reported and the ingest goes on."""
    table = pipeline.table
    for identifier in (table.identifier, table.dead_letters):
        trimmed = metadata_expiry.trim(
            job.iceberg, identifier, keep=table.keep_snapshots, keep_days=table.keep_days, now_ms=job.now_ms()
        )
        if trimmed.snapshots or trimmed.gave_up:
            report(Event.SNAPSHOTS_EXPIRED, table=identifier, snapshots=trimmed.snapshots, gave_up=trimmed.gave_up)
