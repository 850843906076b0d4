"""One batch: a plan, read, decoded, routed and staged: files in no snapshot, and an account that adds up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from frazil.clients.kafka_records import Record
from frazil.dead_letters.rejected_rows import dead_letters
from frazil.declaration import Pipeline
from frazil.declaration.options import ErrorMode, MetadataColumns
from frazil.decode.decode import columns_of, decode, rejected, rows
from frazil.decode.decoding import REASON, SCHEMA_ID, Decoding
from frazil.decode.keys import KeyLanding, key_column
from frazil.decode.met import Met, UnknownSchemas
from frazil.errors import CountsDisagree, RejectedRecords, SparkFailed
from frazil.ingest import record_counts
from frazil.ingest.plan import Plan
from frazil.ingest.read import HEADERS, TIMESTAMP_OVERFLOW, beyond_spark, consumer_options, read
from frazil.ingest.route import metadata, route
from frazil.ingest.spark_errors import explained
from frazil.job.context import JobContext
from frazil.lake.commit.check import CommitRequest, StageAgain
from frazil.lake.last_records import LastRecords
from frazil.lake.sort_order import order
from frazil.lake.stage import Staged, stage
from frazil.lake.totals import Counts


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """What staging one plan gave."""

    plan: Plan
    main: Staged
    dead_letters: Staged | None
    batch: CommitRequest
    bytes_read: int
    began: float
    seconds: float

    @property
    def newest_ms(self) -> int | None:
        """How far the topic was read, as a record timestamp: of the partitions in this batch and those that wait, the last."""
        last = self.batch.end.last
        partitions = {*(r.partition for r in self.plan.ranges), *self.plan.waiting}
        return last.valid_through(partitions) if last is not None else None


@dataclass(slots=True)
class Thoroughness:
    """Whether a pipeline has met records that only the thorough bodies decode; from then on it decodes all by these."""

    is_needed: bool = False


@dataclass(frozen=True, slots=True)
class Staging:
    """How the batches of one pipeline are staged, as long as its schemas stay as they are.

    `learn` finds out about frames, of values and of keys, that the decoders left out; whether the batch is to be staged again then.
    """

    pipeline: Pipeline
    job: JobContext
    decoding: Decoding
    columns: tuple[str, ...]
    learn: Callable[[Met, Met], bool]
    key: KeyLanding | None = None
    thoroughness: Thoroughness = field(default_factory=Thoroughness)

    def stage(self, planned: Plan) -> StagedBatch:
        """Stage one plan.

        Raises `UnknownSchemas`, `RegistryUnavailable`, `RejectedRecords`, `CountsDisagree`, `StageAgain`, and what a failed job
        means; then there are files that no snapshot will name, and nothing else.
        """
        by_driver: Sequence[Record] = ()
        while True:
            try:
                return self._explained(planned, by_driver)
            except SparkFailed as failed:
                if by_driver or TIMESTAMP_OVERFLOW not in failed.what:
                    raise
                by_driver = beyond_spark(self.pipeline, self.job.kafka, planned.ranges)
                if not by_driver:
                    raise

    def _explained(self, planned: Plan, by_driver: Sequence[Record]) -> StagedBatch:
        job = self.job
        with explained(f"pipeline {self.pipeline.name}", stopping=job.stopping, redact=job.redact):
            return self._staged(planned, by_driver)

    def _staged(self, planned: Plan, by_driver: Sequence[Record]) -> StagedBatch:
        began = self.job.clock()
        thorough = self.decoding.thorough
        decoding = thorough if self.thoroughness.is_needed else self.decoding
        observed = Observation()
        records = self._read(planned, by_driver)
        records = record_counts.observe_records(records, observed, planned.ranges)
        decoded = decode(records, decoding)
        at = datetime.fromtimestamp(began, UTC)
        self.job.failpoint("stage.started")
        main = stage(
            self.job.iceberg,
            self.pipeline.table.identifier,
            route(rows(decoded, decoding), columns_of(self.columns), self._metadata(at)),
            unique_id=self.job.new_id(),
            at=began,
            sort=order(self.pipeline.table.sort_fields),
        )
        self.job.failpoint("stage.written")
        seen = observed.get
        found = record_counts.counts(seen["partitions"])
        gaps = record_counts.gaps(found, planned.ranges)
        counts = Counts(read=int(seen["read"] or 0), written=main.rows, gaps=gaps)
        if gaps:
            self._check_gaps(planned, counts)
        side = None
        if counts.read != counts.written:
            again = self._read(planned, by_driver, headers=True)  # a replay needs headers
            counts, side = self._rejected(planned, rejected(decode(again, thorough), thorough), counts, at)
            if decoding is not thorough and not counts.adds_up:
                self.thoroughness.is_needed = True
                raise StageAgain("records need a thorough decoder", where=f"pipeline {self.pipeline.name}")
        adds_up = counts.adds_up and sum(found.values()) == counts.read
        if not adds_up or counts.read + sum(gaps.values()) != planned.rows or min(gaps.values(), default=0) < 0:
            raise CountsDisagree.of_batch(
                self.pipeline.name,
                offsets=f"{planned.start} to {planned.end}",
                number=planned.rows,
                counts={
                    "read": counts.read,
                    "gaps": gaps,
                    "written": counts.written,
                    "rejected": dict(counts.rejected),
                    "skipped": dict(counts.skipped),
                },
            )
        epochs = self._leader_epochs(planned)
        newest = record_counts.last_records(seen, epochs, now_ms=began * 1000)
        last = (planned.committed.last or LastRecords(planned.committed.topic_id)).after(newest)
        batch = CommitRequest(
            pipeline=self.pipeline.name,
            run=self.job.run,
            version=self.job.version,
            start=planned.start,
            end=replace(planned.end, last=last),
            committed=planned.committed,
            topic_id=self.job.kafka.topic(self.pipeline.topic.name).topic_id,
            counts=counts,
            schema_ids=decoding.schema_ids,
            staged_us=round(at.timestamp() * 1_000_000),
            valid_through=last.valid_through(planned.filled),
        )
        seconds = self.job.clock() - began
        self.job.failpoint("stage.done")
        return StagedBatch(planned, main, side, batch, int(seen["bytes"] or 0), began, seconds)

    def _rejected(self, planned: Plan, rejects: DataFrame, counts: Counts, at: datetime) -> tuple[Counts, Staged]:
        """Stage the dead letters of a batch, by a second job over the same range, and count them by reason."""
        on_error, on_tombstone = self.pipeline.on_error, self.pipeline.write.on_tombstone
        observed, skipped = Observation(), record_counts.skips(F.col(REASON), on_error, on_tombstone)
        lost = record_counts.observe_rejected(rejects, observed, skipped)
        letters = dead_letters(
            lost.where(~skipped),
            reason=REASON,
            schema_id=SCHEMA_ID,
            pipeline=self.pipeline.name,
            run=self.job.run,
            at=at,
        )
        side = stage(
            self.job.iceberg,
            self.pipeline.table.dead_letters,
            letters,
            unique_id=self.job.new_id(),
            at=self.job.clock(),
        )
        self.job.failpoint("stage.rejected")
        seen = observed.get
        values, keys = record_counts.met(seen, "values"), record_counts.met(seen, "keys")
        if (values or keys) and self.learn(values, keys):
            raise UnknownSchemas(values, keys)
        by_reason = record_counts.by_reason(seen, "rejected")
        if by_reason and on_error is ErrorMode.SUSPEND:
            first = seen["first"]
            place = (first["partition"], first["offset"], first[REASON])
            raise RejectedRecords.of(self.pipeline.name, self.pipeline.topic.name, counts=by_reason, first=place)
        return Counts(
            read=counts.read,
            written=counts.written,
            rejected=by_reason,
            skipped=record_counts.by_reason(seen, "skipped"),
            skipped_at=record_counts.counts(seen["skipped_at"]),
            gaps=counts.gaps,
        ), side

    def _read(self, planned: Plan, by_driver: Sequence[Record], *, headers: bool = False) -> DataFrame:
        topic = self.pipeline.topic
        options = consumer_options(self.pipeline, self.job.kafka)
        leaders = {partition: span.leader_epoch for partition, span in planned.spans.items()}
        return read(
            self.job.spark,
            topic.name,
            planned.ranges,
            options=options,
            isolation=self.pipeline.isolation.value,
            group=self.job.consumers.group(self.pipeline.name, options, leaders),
            headers=headers or self.pipeline.headers or topic.value_format.has_schema or topic.key_format.has_schema,
            by_driver=by_driver,
        )

    def _metadata(self, at: datetime) -> list[Column]:
        is_struct = self.pipeline.table.metadata_columns is MetadataColumns.STRUCT
        key = F.col("key") if self.key is None else key_column(self.key)
        headers = F.col("headers") if self.pipeline.headers else F.lit(None).cast(HEADERS)
        return metadata(schema_id=SCHEMA_ID, struct=is_struct, ingested_at=at, key=key, headers=headers)

    def _check_gaps(self, planned: Plan, counts: Counts) -> None:
        topic = self.job.kafka.topic(self.pipeline.topic.name)
        if not topic.compacted and not self.pipeline.topic.transactional:
            raise CountsDisagree.of_gaps(
                self.pipeline.name,
                offsets=f"{planned.start} to {planned.end}",
                number=planned.rows,
                read=counts.read,
                gaps=counts.gaps,
            )

    def _leader_epochs(self, planned: Plan) -> dict[int, int | None]:
        """Return the leader epochs of the partitions that were read.

        Raises `StageAgain` if one has changed since the batch was planned: the log that was read may be another one than the log
        that was planned on, and only the next plan compares them.
        """
        before = {r.partition: planned.spans[r.partition].leader_epoch for r in planned.ranges}
        now = self.job.kafka.leader_epochs(self.pipeline.topic.name, before.keys())
        if now != before:
            raise StageAgain(
                "a partition got a new leader while the batch was read", where=f"pipeline {self.pipeline.name}"
            )
        return now
