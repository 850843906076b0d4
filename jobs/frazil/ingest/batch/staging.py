"""Stage the records of a planned batch: read, decode and route them, and write rows and dead letters to files in no snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from frazil.clients.kafka_records import Record
from frazil.dead_letters.rejected_rows import dead_letters
from frazil.declaration import Pipeline
from frazil.declaration.options import MetadataColumns
from frazil.declaration.write_modes import tombstones
from frazil.decode.decoded_columns import REASON, ROW, SCHEMA_ID
from frazil.decode.keys.key_column import KeyLanding, key_column
from frazil.decode.keys.row_key import KEY_COLUMN
from frazil.decode.record_decoder import RecordDecoder, with_bytes_as_read
from frazil.ingest.batch import record_counts
from frazil.ingest.batch.read import HEADERS, consumer_options, is_in, read
from frazil.ingest.batch.refused_records import refused
from frazil.ingest.batch.staged_records import StagedRecords, StagedRejected
from frazil.ingest.plan.plan import Plan
from frazil.ingest.plan.ranges import ranges_of
from frazil.job.context import JobContext
from frazil.job.shared_reads import Stretch
from frazil.lake.stage import PartitionLimits, Staged, TableWriter, constant, order, stage
from frazil.schemas.metadata import COORDINATES, INGESTED_AT
from frazil.write.mode import Batch, RowLayout, WriteMode

_UNRESOLVED = "_frazil_unresolved"


@dataclass(frozen=True, slots=True)
class Staging:
    """The way in which the batches of one pipeline are staged, as long as its schemas stay as they are."""

    pipeline: Pipeline
    job: JobContext
    mode: WriteMode
    decoding: RecordDecoder
    layout: RowLayout
    key: KeyLanding | None = None
    limits: PartitionLimits = PartitionLimits()  # noqa: RUF009 # frozen

    def needs_rows(self, planned: Plan) -> bool:
        """Return whether a batch can only be staged when those before it are committed: what it writes depends on their rows."""
        return self.mode.needs_rows(keys_move=planned.keys_move, fills=planned.handling.fills)

    def deletes_all(self, planned: Plan) -> bool:
        """Return whether a truncate deletes all rows: that is declared, and one partition says which records are before it."""
        return self.mode.deletes_all and len(planned.end.at) == 1

    def unplaced(self) -> Column | None:
        """Return why a decoded record's row has no place in the table's partitions, null if it has; None if every row has."""
        key = F.col("key") if self.key is None else key_column(self.key)
        columns = {"_kafka_key": key, **{name: F.col(ROW)[name] for name in self.layout.columns}}
        if self.pipeline.table.metadata_columns is MetadataColumns.STRUCT:
            columns["_kafka"] = F.struct(key.alias("key"))
        if self.layout.key is not None:
            columns |= self.layout.key.values()
        problem = self.limits.problem(columns)
        return None if problem is None else self.mode.unplaced(problem, self.layout)

    def kafka_key(self) -> list[Column]:
        """Return the record's key as the column of the rows' key, where it is one; it is a metadata column of the rows."""
        return [key_column(self.key).alias(KEY_COLUMN)] if self.key and KEY_COLUMN in self.layout.key_names else []

    def stage(self, planned: Plan, by_driver: Sequence[Record] = ()) -> StagedRecords:
        """Stage the rows of a plan, and count its records as they are read."""
        thorough, at = self.decoding.thorough, datetime.fromtimestamp(self.job.clock(), UTC)
        decoding = thorough if planned.handling.thorough else self.decoding
        observed = Observation()
        records = self._read(planned, by_driver)
        records = record_counts.observe_records(
            records, observed, planned.ranges, with_key_ids=record_counts.may_be_framed(self.pipeline)
        )
        self.job.failpoint("stage.started")
        landed, table = decoding.rows(records, self.unplaced()), self.pipeline.table
        sort = tuple(order(table.sort_fields))
        writer = TableWriter(self.job.iceberg, table.identifier, self.job.new_id, self.pipeline.name, sort)
        batch = Batch(
            at=at,
            records=planned.rows,
            metadata=self._metadata(at),
            keys_move=planned.keys_move,
            fills=planned.handling.fills,
            truncated_at=planned.truncated_at if self.mode.deletes_all else None,
        )
        staged = self.mode.stage(writer, landed, self.layout, batch)
        self.job.failpoint("stage.written")
        read = record_counts.read(observed.get)
        return StagedRecords(planned, by_driver, decoding, thorough, staged, read, at, self.layout.key_names)

    def stage_rejected(self, staged: StagedRecords) -> StagedRejected:
        """Stage the dead letters of a batch, by a second job over the same range, and count them."""
        observed, key = Observation(), self.layout.key
        skipped = record_counts.skips(
            F.col(REASON),
            self.pipeline.on_error,
            tombstones(self.pipeline.write),
            truncates=self.deletes_all(staged.plan),
        )
        records = self._read(staged.plan, staged.by_driver, headers=True)  # a replay needs headers
        unavailable = None
        if staged.rows.unresolved:
            listed = self.job.spark.createDataFrame(sorted(staged.rows.unresolved), "partition int, offset long")
            listed = listed.withColumn(_UNRESOLVED, F.lit(True))
            records = records.join(F.broadcast(listed), ["partition", "offset"], "left")
            unavailable = F.coalesce(F.col(_UNRESOLVED), F.lit(False))
        rejects = staged.thorough.rejected(records, unavailable, self.unplaced())
        rejects = record_counts.observe_rejected(rejects, observed, skipped)
        with self.mode.kept(rejects, staged.thorough, key) as kept:
            letters = kept.where(~skipped)
            files = self._stage_letters(staged, letters)
            counted = record_counts.rejected(observed.get)
            keys = self.mode.rejected_keys(kept, key, counted.last_truncate if staged.rows.clears else None)
            found = refused(self.pipeline, letters) if files.rows else ()
        return StagedRejected(counted, files, keys, found)

    def _stage_letters(self, staged: StagedRecords, rejects: DataFrame) -> Staged:
        letters = dead_letters(
            with_bytes_as_read(rejects),
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
        topic, stretch = self.pipeline.topic, planned.stretch
        headers = headers or self.pipeline.headers or topic.value.has_schema or topic.key.has_schema

        def from_kafka(of: Stretch, *, headers: bool = True) -> DataFrame:
            options = consumer_options(self.pipeline, self.job.kafka)
            return read(
                self.job.spark,
                topic.name,
                ranges_of(of.start, of.end),
                options=options,
                isolation=self.pipeline.isolation.value,
                group=self.job.consumers.group(self.pipeline.name, options, stretch.leaders),
                headers=headers,
                by_driver=by_driver,
            )

        kept = None if by_driver else self.job.reads.records(self.pipeline.name, stretch, from_kafka)
        if kept is None:
            return from_kafka(stretch, headers=headers)
        records, there = kept
        if there != stretch:
            records = records.where(is_in(planned.ranges))
        return records if headers else records.withColumn("headers", F.lit(None).cast(HEADERS))

    def _metadata(self, at: datetime) -> list[Column]:
        is_struct = self.pipeline.table.metadata_columns is MetadataColumns.STRUCT
        key = F.col("key") if self.key is None else key_column(self.key)
        headers = F.col("headers") if self.pipeline.headers else F.lit(None).cast(HEADERS)
        return metadata(schema_id=SCHEMA_ID, struct=is_struct, ingested_at=at, key=key, headers=headers)


def metadata(
    *, schema_id: str, struct: bool, ingested_at: datetime, key: Column | None = None, headers: Column | None = None
) -> list[Column]:
    """Return the metadata columns of a row, in the declared layout; `schema_id` names a column of the decoded records.

    `key` and `headers` are the content of those columns, if it is not what Kafka holds.
    """
    found = {"schema_id": F.col(schema_id)}
    found |= {name: given for name, given in (("key", key), ("headers", headers)) if given is not None}
    coordinates = {f.name: found.get(f.name, F.col(f.name)) for f in COORDINATES}
    at = constant(F.lit(ingested_at).cast("timestamp")).alias(INGESTED_AT.name)
    if struct:
        return [F.struct(*(c.alias(name) for name, c in coordinates.items())).alias("_kafka"), at]
    return [*(c.alias(f"_kafka_{name}") for name, c in coordinates.items()), at]
