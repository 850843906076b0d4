"""The steps of one planned batch, top to bottom: each takes the value that the one before returned."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from frazil.declaration import Pipeline
from frazil.ingest.account import commit_request
from frazil.ingest.plan import Plan
from frazil.ingest.read import beyond_spark
from frazil.ingest.rejected_share import check_mode
from frazil.ingest.schema_tracking import Evolution
from frazil.ingest.spark_errors import TimestampOverflow, explained
from frazil.ingest.staging import StagedRejected, StagedRows, Staging
from frazil.job.context import JobContext
from frazil.lake.commit.check import CommitRequest
from frazil.lake.deletes.key_changes import KeyChanges
from frazil.lake.stage import Staged


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """The files of one batch, and what their commit says."""

    plan: Plan
    main: Staged
    dead_letters: Staged | None
    batch: CommitRequest
    bytes_read: int
    began: float
    seconds: float
    changes: KeyChanges | None = None

    @property
    def newest_ms(self) -> int | None:
        """How far the topic was read, as a record timestamp: of the partitions in this batch and those that wait, the last."""
        last = self.batch.end.last
        partitions = {*(r.partition for r in self.plan.ranges), *self.plan.waiting}
        return last.valid_through(partitions) if last is not None else None


def stage_batch(
    pipeline: Pipeline, job: JobContext, staging: Staging, evolution: Evolution, planned: Plan
) -> StagedBatch:
    """Stage a planned batch, and check that each of its offsets is accounted for.

    Raises `UnknownSchemas`, `RegistryUnavailable`, `RejectedRecords`, `CountsDisagree`, `StageAgain`, and what a failed Spark job
    means; then there are files that no snapshot will name, and nothing else.
    """
    began = job.clock()
    rows = _rows(pipeline, job, staging, planned)
    with _explained(pipeline, job):
        rejected = StagedRejected() if rows.are_all else staging.stage_rejected(rows)
    evolution.learn(rejected.counted.values, rejected.counted.keys)
    check_mode(pipeline, rejected.counted)
    batch = commit_request(pipeline, job, rows, rejected.counted)
    seconds = job.clock() - began
    job.failpoint("stage.done")
    return StagedBatch(planned, rows.files, rejected.files, batch, rows.read.bytes, began, seconds, rows.changes)


def _rows(pipeline: Pipeline, job: JobContext, staging: Staging, planned: Plan) -> StagedRows:
    try:
        with _explained(pipeline, job):
            return staging.stage(planned)
    except TimestampOverflow:
        by_driver = beyond_spark(pipeline, job.kafka, planned.ranges)
        if not by_driver:
            raise
    with _explained(pipeline, job):
        return staging.stage(planned, by_driver)


def _explained(pipeline: Pipeline, job: JobContext) -> AbstractContextManager[None]:
    return explained(f"pipeline {pipeline.name}", stopping=job.stopping, redact=job.redact)
