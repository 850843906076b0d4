"""The steps of one planned batch, top to bottom: each takes the value that the one before returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline
from frazil.errors import SparkFailed
from frazil.ingest.batch.offset_account import commit_request
from frazil.ingest.batch.refused_records import check_mode
from frazil.ingest.batch.rejected_share import check_keys
from frazil.ingest.batch.staged_records import StagedRecords, StagedRejected
from frazil.ingest.batch.staging import Staging
from frazil.ingest.plan.plan import Plan, Restage
from frazil.ingest.schema.evolution import Evolution
from frazil.ingest.spark_errors import TimestampOverflow, explained
from frazil.job.context import JobContext
from frazil.lake import tables
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.request import CommitRequest
from frazil.lake.stage import Staged
from frazil.upsert.key_changes import KeyChanges


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """The files of one batch, and what their commit says."""

    plan: Plan
    main: Staged
    dead_letters: Staged | None
    request: CommitRequest
    bytes_read: int
    began: float
    seconds: float
    changes: KeyChanges | None = None

    @property
    def is_fenced(self) -> bool:
        """True if the table held other offsets than were planned on when records were compared with its rows; commits refuse it."""
        return self.changes is not None and not self.changes.is_on(self.request.committed)

    @property
    def newest_ms(self) -> int | None:
        """The record timestamp up to which the topic was read: of the partitions in this batch and those that wait, the last."""
        last = self.request.end.last
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
            or tables.columns(job.iceberg, pipeline.table.identifier) == staging.layout.table
        ):
            raise
        raise StageAgain(f"the table's columns changed while a batch was staged: {error.what}") from error


def stage_batch(
    pipeline: Pipeline,
    job: JobContext,
    staging: Staging,
    evolution: Evolution,
    planned: Plan,
    by_driver: Sequence[Record] = (),
) -> StagedBatch | Restage:
    """Stage a planned batch, and check that each of its offsets is accounted for; or return how to stage it again.

    `by_driver` are the records of the batch that the driver has read, as Spark cannot.

    Raises `UnknownSchemas`, `RegistryUnavailable`, `RejectedRecords`, `KeysMissing`, `InvalidInput`, `CountsDisagree`,
    `StageAgain`, `BatchTooLarge`, and what a failed Spark job means, `TimestampOverflow` among it; then there are files that no
    snapshot will name, and nothing else.
    """
    began = job.clock()
    with spark_jobs(pipeline, job, staging, planned.rows):
        staged = staging.stage(planned, by_driver)
        if staged.rows.omits_values:
            return Restage("changes omit values", replace(planned.handling, fills=True))
        rejected = StagedRejected() if staged.are_all else staging.stage_rejected(staged)
    if not staged.are_all and (again := _handled_otherwise(planned, staging, staged, rejected)) is not None:
        return again
    evolution.framed_keys.check(staged.read.key_ids)
    evolution.learn(rejected.counted.values, rejected.counted.keys)
    if evolution.may_lack_keys:
        elsewhere = sum(staged.elsewhere.values()) + sum(rejected.counted.elsewhere.values())
        check_keys(pipeline, rejected.counted, staged.read.records - elsewhere)
        evolution.may_lack_keys = not staged.rows.landed
    check_mode(pipeline, planned, rejected.counted, rejected.refused, evolution.explain)
    request, rows = commit_request(pipeline, job, staged, rejected.counted), staged.rows
    if rows.changes is not None:
        rows.changes.rejected = rejected.keys
    seconds = job.clock() - began
    job.failpoint("stage.done")
    return StagedBatch(planned, rows.files, rejected.files, request, staged.read.bytes, began, seconds, rows.changes)


def _handled_otherwise(
    planned: Plan, staging: Staging, staged: StagedRecords, rejected: StagedRejected
) -> Restage | None:
    """Return how to stage a batch again whose rejected records say that it needs another handling; None if it does not."""
    counted = rejected.counted
    if staged.decoding is not staged.thorough and counted.records != staged.lacks_rows:
        return Restage("records need a thorough decoder", replace(planned.handling, thorough=True))
    if staging.deletes_all(planned):
        last = planned.truncate_at(counted.last_truncate)
        if last != (planned.handling.truncate if staged.rows.clears else None):
            return Restage("the source's table was truncated", replace(planned.handling, truncate=last))
    return None
