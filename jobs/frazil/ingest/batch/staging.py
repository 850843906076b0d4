"""Stage the records of a planned batch: read, decode and route them, and write rows and dead letters to files in no snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from frazil.clients.kafka_records import Record
from frazil.dead_letters.rejected_rows import dead_letters
from frazil.declaration import Pipeline
from frazil.declaration.options import Deletion, MetadataColumns
from frazil.declaration.write_modes import Changelog, Upsert, tombstones
from frazil.decode.decode import RecordDecoder, columns_of, with_bytes_as_read
from frazil.decode.decoding import DETAIL, REASON, ROW, SCHEMA_ID, UNAVAILABLE, is_delete
from frazil.decode.keys.key_column import KeyLanding, key_column
from frazil.decode.keys.row_key import RowKey
from frazil.ingest.batch import record_counts, rejected_keys, truncates
from frazil.ingest.batch.read import HEADERS, consumer_options, read
from frazil.ingest.batch.refused_records import Refused, refused
from frazil.ingest.batch.remembered import Keyless, Learned, LeftOut, Thoroughness, Truncated
from frazil.ingest.batch.route import metadata, route
from frazil.ingest.batch.staged_records import StagedRejected, StagedRows
from frazil.ingest.plan.plan import Plan
from frazil.ingest.schema.framed_keys import may_be_framed
from frazil.job.context import JobContext
from frazil.lake.sort_order import order
from frazil.lake.stage import PartitionLimits, Staged, TableWriter, stage
from frazil.schemas.types import Struct
from frazil.upsert.fold import Rules
from frazil.upsert.index_resolver import IndexResolver
from frazil.upsert.key_changes import UpsertBatch
from frazil.upsert.resolver import IS_DELETE, LEFT_OUT
from frazil.upsert.staged_changes import StagedChanges, stage_changes
from frazil.write.state_columns import changelog_values, rules, state_values

_UNRESOLVED = "_frazil_unresolved"


@dataclass(frozen=True, slots=True)
class Staging:
    """How the batches of one pipeline are staged, as long as its schemas stay as they are.

    `columns` are those of the values; `table` are all columns of the table.
    """

    pipeline: Pipeline
    job: JobContext
    decoding: RecordDecoder
    columns: tuple[str, ...]
    table: Struct
    key: KeyLanding | None = None
    row_key: RowKey | None = None
    thoroughness: Thoroughness = field(default_factory=Thoroughness)
    keyless: Keyless = field(default_factory=Keyless)
    left_out: LeftOut = field(default_factory=LeftOut)
    truncated: Truncated = field(default_factory=Truncated)
    index: IndexResolver | None = None
    limits: PartitionLimits = PartitionLimits()  # noqa: RUF009 # frozen

    def needs_rows(self, planned: Plan) -> bool:
        """Return whether a batch can only be staged when those before it are committed: what it writes depends on their rows."""
        return self._rules(planned).need_rows

    def _rules(self, planned: Plan) -> Rules:
        return rules(self.pipeline, keys_move=planned.keys_move, fills=self.left_out.is_met)

    def values(self) -> list[Column]:
        """Return the columns that a decoded record has in the table, without those of its place in Kafka."""
        if self.row_key is None:
            return columns_of(self.columns)
        if isinstance(self.pipeline.write, Changelog):
            return list(changelog_values(self.table, self.row_key, self.columns))
        return columns_of(self.columns, self.row_key.values())

    def unplaced(self) -> Column | None:
        """Return why a decoded record's row has no place in the table's partitions, null if it has; None if every row has."""
        key = F.col("key") if self.key is None else key_column(self.key)
        columns = {"_kafka_key": key, **{name: F.col(ROW)[name] for name in self.columns}}
        if self.pipeline.table.metadata_columns is MetadataColumns.STRUCT:
            columns["_kafka"] = F.struct(key.alias("key"))
        if self.row_key is not None:
            columns |= self.row_key.values()
        problem, write = self.limits.problem(columns), self.pipeline.write
        if problem is None or not isinstance(write, Upsert) or write.on_tombstone is Deletion.SOFT_DELETE:
            return problem
        return F.when(~is_delete(has_changes=self.decoding.has_changes), problem)  # a delete has no row

    def stage(self, planned: Plan, by_driver: Sequence[Record] = ()) -> StagedRows:
        """Stage the rows of a plan, and count its records as they are read.

        Raises `Learned` if changes leave values out for the first time.
        """
        rules_of_batch = self._rules(planned)
        thorough, at = self.decoding.thorough, datetime.fromtimestamp(self.job.clock(), UTC)
        decoding = thorough if self.thoroughness.is_needed else self.decoding
        observed = Observation()
        records = self._read(planned, by_driver)
        records = record_counts.observe_records(
            records, observed, planned.ranges, with_key_ids=may_be_framed(self.pipeline)
        )
        self.job.failpoint("stage.started")
        landed, table = decoding.rows(records, self.unplaced()), self.pipeline.table
        changes: StagedChanges | None = None
        if self.row_key is None or isinstance(self.pipeline.write, Changelog):
            files = stage(
                self.job.iceberg,
                table.identifier,
                route(landed, self.values(), self._metadata(at)),
                unique_id=self.job.new_id(),
                at=at.timestamp(),
                sort=order(table.sort_fields),
            )
        else:
            of_state = truncates.Landed.of(landed, self.pipeline, planned, self.truncated)
            changes = stage_changes(
                TableWriter(
                    self.job.iceberg,
                    table.identifier,
                    self.job.new_id,
                    self.pipeline.name,
                    tuple(order(table.sort_fields)),
                ),
                route(
                    of_state.behind,
                    self.values(),
                    [
                        *self._metadata(at),
                        *state_values(self.table, self.row_key),
                        is_delete(has_changes=decoding.has_changes).alias(IS_DELETE),
                        *([F.col(ROW)[UNAVAILABLE].alias(LEFT_OUT)] if decoding.has_changes else []),
                    ],
                ),
                self.row_key.names,
                UpsertBatch(at=at.timestamp(), records=planned.rows, rules=rules_of_batch, clears=of_state.clears),
                self.index,
            )
            changes = replace(changes, records=changes.records + of_state.before)
            files = changes.files
            if changes.left_out and not self.left_out.is_met:
                self.left_out.is_met = True
                raise Learned("changes leave values out", where=f"pipeline {self.pipeline.name}")
        self.job.failpoint("stage.written")
        read = record_counts.read(observed.get)
        key = self.row_key.names if self.row_key is not None else ()
        staged = StagedRows(planned, by_driver, decoding, thorough, files, read, at, key=key)
        if changes is None:
            return staged
        return replace(
            staged,
            changes=changes.changes,
            folded=changes.records,
            ties=changes.ties,
            repeated=changes.repeated,
            unresolved=changes.unresolved,
        )

    def stage_rejected(self, staged: StagedRows) -> StagedRejected:
        """Stage the dead letters of a batch, by a second job over the same range, and count them.

        Raises `Learned` if there are rows that only the thorough bodies decode.
        """
        observed = Observation()
        skipped = record_counts.skips(
            F.col(REASON),
            self.pipeline.on_error,
            tombstones(self.pipeline.write),
            truncates=truncates.deletes_all(self.pipeline, staged.plan),
        )
        records = self._read(staged.plan, staged.by_driver, headers=True)  # a replay needs headers
        unavailable = None
        if staged.unresolved:
            listed = self.job.spark.createDataFrame(sorted(staged.unresolved), "partition int, offset long")
            listed = listed.withColumn(_UNRESOLVED, F.lit(True))
            records = records.join(F.broadcast(listed), ["partition", "offset"], "left")
            unavailable = F.coalesce(F.col(_UNRESOLVED), F.lit(False))
        rejects = staged.thorough.rejected(records, unavailable, self.unplaced())
        rejects = record_counts.observe_rejected(rejects, observed, skipped)
        if staged.changes is None or self.row_key is None:
            letters = rejects.where(~skipped)
            files = self._stage_letters(staged, letters)
            found = StagedRejected(files=files, refused=self._refused(letters, files))
        else:
            with rejected_keys.kept(rejects, staged.thorough, self.row_key) as kept:
                letters = kept.where(~skipped)
                files = self._stage_letters(staged, letters)
                behind = record_counts.rejected(observed.get).last_truncate if staged.clears else None
                keys = rejected_keys.keys_of(kept, self.row_key, behind=behind)
                found = StagedRejected(files=files, keys=keys, refused=self._refused(letters, files))
        counted = record_counts.rejected(observed.get)
        if staged.decoding is not staged.thorough and counted.records != staged.read.records - staged.landed:
            self.thoroughness.is_needed = True
            raise Learned("records need a thorough decoder", where=f"pipeline {self.pipeline.name}")
        return replace(found, counted=counted)

    def _refused(self, letters: DataFrame, files: Staged) -> tuple[Refused, ...]:
        return refused(self.pipeline, letters) if files.rows else ()

    def _stage_letters(self, staged: StagedRows, rejects: DataFrame) -> Staged:
        letters = dead_letters(
            with_bytes_as_read(rejects),
            reason=REASON,
            detail=DETAIL,
            schema_id=SCHEMA_ID,
            pipeline=self.pipeline.name,
            run=self.job.run,
            at=staged.at,
        )
        files = stage(
            self.job.iceberg,
            self.pipeline.table.dead_letters,
            letters,
            unique_id=self.job.new_id(),
            at=self.job.clock(),
        )
        self.job.failpoint("stage.rejected")
        return files

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
