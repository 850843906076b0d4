"""The steps of one planned batch, top to bottom: each takes the value that the one before returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline
from frazil.errors import SparkFailed
from frazil.ingest.batch.account import commit_request
from frazil.ingest.batch.read import beyond_spark
from frazil.ingest.batch.refused_records import check_mode
from frazil.ingest.batch.rejected_share import check_keys
from frazil.ingest.batch.staged_records import StagedRejected
from frazil.ingest.batch.staging import Staging
from frazil.ingest.batch.truncates import check_met
from frazil.ingest.plan.plan import Plan
from frazil.ingest.schema.schema_tracking import Evolution
from frazil.ingest.spark_errors import TimestampOverflow, explained
from frazil.job.context import JobContext
from frazil.lake import tables
from frazil.lake.commit.check import CommitRequest, StageAgain
from frazil.lake.stage import Staged
from frazil.upsert.key_changes import KeyChanges


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
    def is_fenced(self) -> bool:
        """Whether the table held other offsets than were planned on when records were compared with its rows; commits refuse it."""
        return self.changes is not None and not self.changes.is_on(self.batch.committed)

    @property
    def newest_ms(self) -> int | None:
        """How far the topic was read, as a record timestamp: of the partitions in this batch and those that wait, the last."""
        last = self.batch.end.last
        partitions = {*(r.partition for r in self.plan.ranges), *self.plan.waiting}
        return last.valid_through(partitions) if last is not None else None


class BatchTooLarge(MemoryError):
    """A task or the driver ran out of memory at a batch of so many `rows`; a smaller one may do."""

    def __init__(self, text: str, rows: int) -> None:
        super().__init__(text)
        self.rows = rows


@contextmanager
def spark_jobs(pipeline: Pipeline, job: JobContext, staging: Staging, rows: int) -> Iterator[None]:
    """Turn what a Spark job of a batch of so many `rows` fails with into an error of Frazil, as `explained` does.

    Raises `StageAgain` if no retry would help but the table's columns are not those that the batch is staged for, and
    `BatchTooLarge`.
    """
    try:
        with explained(f"pipeline {pipeline.name}", stopping=job.stopping, redact=job.redact):
            yield
    except MemoryError as error:
        raise BatchTooLarge(str(error) or "the driver ran out of memory", rows) from None
    except SparkFailed as error:
        if (
            isinstance(error, TimestampOverflow)
            or tables.columns(job.iceberg, pipeline.table.identifier) == staging.table
        ):
            raise
        raise StageAgain(f"the table's columns changed while a batch was staged: {error.what}") from error


def read_by_driver(pipeline: Pipeline, job: JobContext, planned: Plan) -> list[Record]:
    """Return the records of a batch that Spark cannot read, and those between. Raises `BatchTooLarge`."""
    try:
        return beyond_spark(pipeline, job.kafka, planned.ranges)
    except MemoryError as error:
        raise BatchTooLarge(str(error), planned.rows) from None


def stage_batch(
    pipeline: Pipeline,
    job: JobContext,
    staging: Staging,
    evolution: Evolution,
    planned: Plan,
    by_driver: Sequence[Record] = (),
) -> StagedBatch:
    """Stage a planned batch, and check that each of its offsets is accounted for.

    `by_driver` are the records of the batch that the driver has read, as Spark cannot.

    Raises `UnknownSchemas`, `RegistryUnavailable`, `RejectedRecords`, `KeysMissing`, `InvalidInput`, `CountsDisagree`,
    `StageAgain`, `BatchTooLarge`, and what a failed Spark job means, `TimestampOverflow` among it; then there are files that no
    snapshot will name, and nothing else.
    """
    began = job.clock()
    with spark_jobs(pipeline, job, staging, planned.rows):
        rows = staging.stage(planned, by_driver)
        rejected = StagedRejected() if rows.are_all else staging.stage_rejected(rows)
    check_met(pipeline, planned, staging.truncated, rejected.counted.last_truncate, clears=rows.clears)
    evolution.framed_keys.met(rows.read.key_ids)
    evolution.learn(rejected.counted.values, rejected.counted.keys)
    if staging.keyless.is_possible:
        check_keys(pipeline, rejected.counted, rows.read.records)
        staging.keyless.is_possible = not rows.landed
    check_mode(pipeline, planned, rejected.counted, rejected.refused, evolution.explain)
    batch = commit_request(pipeline, job, rows, rejected.counted)
    if rows.changes is not None:
        rows.changes.rejected = rejected.keys
    seconds = job.clock() - began
    job.failpoint("stage.done")
    return StagedBatch(planned, rows.files, rejected.files, batch, rows.read.bytes, began, seconds, rows.changes)
