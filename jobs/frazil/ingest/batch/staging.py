"""Stage the records of a planned batch: read, decode and route them, and write rows and dead letters to files in no snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.clients.kafka_records import Record
from frazil.dead_letters.encrypted_bytes import encryption
from frazil.dead_letters.rejected_rows import dead_letter
from frazil.declaration import Bytes, Header, Pipeline
from frazil.declaration.options import MetadataColumns
from frazil.declaration.write_modes import tombstones
from frazil.decode.decoded_columns import DETAIL, REASON, ROW, SCHEMA_ID
from frazil.decode.keys.key_column import KeyLanding, key_column
from frazil.decode.keys.row_key import KEY_COLUMN
from frazil.decode.record_decoder import RecordDecoder
from frazil.ingest.batch import record_counts
from frazil.ingest.batch.kafka_rows import kafka_rows
from frazil.ingest.batch.read import HEADERS, SEPARATE_RANGES, as_records, consumer_options, is_in, read
from frazil.ingest.batch.record_counts import Shaped, observe_elsewhere
from frazil.ingest.batch.refused_records import refused
from frazil.ingest.batch.routed_read import OwnPart, RoutedRead, routed_read
from frazil.ingest.batch.staged_records import StagedRecords, StagedRejected
from frazil.ingest.plan.plan import Plan
from frazil.ingest.plan.ranges import ranges_of
from frazil.job.context import JobContext
from frazil.job.shared_reads import Stretch
from frazil.lake.prepared_plan import Build, Observed, PreparedPlans, Run, is_small, planned_anew
from frazil.lake.stage import Moment, PartitionLimits, Staged, TableWriter, order, stage
from frazil.schemas.metadata import COORDINATES, INGESTED_AT, ORDER
from frazil.write.mode import Batch, RowLayout, WriteMode

_UNRESOLVED, _LETTER = "_frazil_unresolved", "_frazil_letter"
_READ, _ELSEWHERE, _SHAPED, _REJECTED = "read", "elsewhere", "shaped", "rejected"


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
    plans: PreparedPlans = field(default_factory=PreparedPlans, compare=False)

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
            if (order := self.layout.key.order) is not None:
                columns[ORDER] = order.value(self.layout.key.values())
        problem = self.limits.problem(columns)
        return None if problem is None else self.mode.unplaced(problem, self.layout)

    def kafka_key(self) -> list[Column]:
        """Return the record's key as the column of the rows' key, where it is one; it is a metadata column of the rows."""
        return [key_column(self.key).alias(KEY_COLUMN)] if self.key and KEY_COLUMN in self.layout.key_names else []

    def stage(self, planned: Plan, by_driver: Sequence[Record] = ()) -> StagedRecords:
        """Stage the rows of a plan, and count its records as they are read."""
        thorough, at = self.decoding.thorough, datetime.fromtimestamp(self.job.clock(), UTC)
        decoding = thorough if planned.handling.thorough else self.decoding
        table, sort = self.pipeline.table, tuple(order(self.pipeline.table.sort_fields))
        new_id, moment = self.job.new_id, self._moment()
        writer = TableWriter(self.job.iceberg, table.identifier, new_id, self.pipeline.name, sort, moment)
        batch = Batch(
            at=at,
            records=planned.rows,
            keys_move=planned.keys_move,
            fills=planned.handling.fills,
            truncated_at=planned.truncated_at if self.mode.deletes_all else None,
        )
        divided = self._divided(planned, by_driver)
        is_prepared = divided is None and _may_be_prepared(planned, by_driver) and batch.truncated_at is None
        ends = None if is_prepared else planned.ranges
        are_framed = record_counts.may_be_framed(self.pipeline)

        def rows(records: DataFrame, observed: Observed) -> DataFrame:
            bodies = not self.pipeline.shape.is_masked  # a hash without a key would say what is masked
            records = decoding.routed(records)
            if divided is not None:
                records = record_counts.observe_own(records, observed(_READ))
            else:
                records = record_counts.observe_records(
                    records,
                    observed(_READ),
                    ends,
                    with_key_ids=are_framed,
                    with_bodies=bodies,
                    is_routed=decoding.shape.route is not None,
                )
            landed = decoding.rows(records, self.unplaced(), lambda made: observe_elsewhere(made, observed(_ELSEWHERE)))
            if decoding.shape.is_observed:
                landed = record_counts.observe_shaped(landed, observed(_SHAPED), decoding.shape, self.mode.dropped())
            return self.mode.planned(landed, self.layout, self._metadata(), batch, observed)

        self.job.failpoint("stage.started")
        depends_on = "rows", planned.handling.thorough, batch.keys_move, batch.fills
        run = self._run(planned, by_driver, rows, depends_on if is_prepared else None, divided=divided)
        staged = self.mode.stage(writer, run, self.layout, batch)
        self.job.failpoint("stage.written")
        read = record_counts.read(run.observed(_READ)) if divided is None else divided.read(run.observed(_READ))
        shaped = record_counts.shaped(run.observed(_SHAPED)) if decoding.shape.is_observed else Shaped()
        route = decoding.shape.route
        later = record_counts.elsewhere(run.observed(_ELSEWHERE)) if route is not None and route.path else {}
        elsewhere = Counter(read.elsewhere) + Counter(later)
        key = self.layout.key_names
        return StagedRecords(planned, by_driver, decoding, thorough, staged, read, at, key, shaped, elsewhere)

    def stage_rejected(self, staged: StagedRecords) -> StagedRejected:
        """Stage the dead letters of a batch, by a second job over the same range, and count them."""
        key, truncates, unresolved = self.layout.key, self.deletes_all(staged.plan), staged.rows.unresolved
        skipped = record_counts.skips(
            F.col(REASON), self.pipeline.on_error, tombstones(self.pipeline.write), truncates=truncates
        )

        kept_as = encryption(self.pipeline, self.job.secret)

        def rejects(records: DataFrame, observed: Observed) -> DataFrame:
            records, unavailable = records if kept_as is None else kept_as.prepared(records), None
            if unresolved:
                listed = records.sparkSession.createDataFrame(sorted(unresolved), "partition int, offset long")
                listed = listed.withColumn(_UNRESOLVED, F.lit(True))
                records = records.join(F.broadcast(listed), ["partition", "offset"], "left")
                unavailable = F.coalesce(F.col(_UNRESOLVED), F.lit(False))
            records = staged.thorough.own(records)
            found = staged.thorough.rejected(records, unavailable, self.unplaced())
            found = record_counts.observe_rejected(found, observed(_REJECTED), skipped)
            is_masked = self.pipeline.shape.is_masked
            name, run_id = self.pipeline.name, self.job.run
            letter = dead_letter(found, pipeline=name, run=run_id, is_masked=is_masked, encryption=kept_as)
            letter = F.when(~skipped, letter)
            of_keys = self.mode.of_rejected(staged.thorough, key)
            return found.select(letter.alias(_LETTER), "partition", "offset", REASON, SCHEMA_ID, DETAIL, *of_keys)

        is_prepared = _may_be_prepared(staged.plan, staged.by_driver) and not unresolved
        depends_on = ("rejected", truncates) if is_prepared else None
        divided = self._divided(staged.plan, staged.by_driver) if depends_on is None else None
        run = self._run(staged.plan, staged.by_driver, rejects, depends_on, headers=True, divided=divided)
        with self.mode.kept(run.rows) as kept:
            letters = kept.where(F.col(_LETTER).isNotNull())
            files = self._stage_letters(letters, staged.at)
            counted = record_counts.rejected(run.observed(_REJECTED))
            keys = self.mode.rejected_keys(kept, key, counted.last_truncate if staged.rows.clears else None)
            found = refused(self.pipeline, letters) if files.rows else ()
        return StagedRejected(counted, files, keys, found)

    def _stage_letters(self, letters: DataFrame, at: datetime) -> Staged:
        files = stage(
            self.job.iceberg,
            self.pipeline.table.dead_letters,
            letters.select(f"{_LETTER}.*"),
            unique_id=self.job.new_id(),
            at=at.timestamp(),
            moment=Moment("rejected_at"),
        )
        self.job.failpoint("stage.rejected")
        return files

    def _run(
        self,
        planned: Plan,
        by_driver: Sequence[Record],
        build: Build,
        depends_on: Hashable | None,
        *,
        headers: bool = False,
        divided: OwnPart | None = None,
    ) -> Run:
        """Return what `build` makes of the batch's records; with `headers` they have them.

        The plan is that of an earlier batch with the same `depends_on`; with None the batch is planned by itself. `divided` are the
        records, if they were read and divided.
        """
        if divided is not None:
            return planned_anew(divided.records, build)
        topic, stretch = self.pipeline.topic, planned.stretch
        route = self.pipeline.shape.route
        of_route = route is not None and isinstance(route.by, Header)
        headers = headers or self.pipeline.headers or of_route or topic.value.has_schema or topic.key.has_schema
        options = consumer_options(self.pipeline, self.job.kafka)
        group = self.job.consumers.group(self.pipeline.name, options, stretch.topic_id, stretch.leaders)
        isolation = self.pipeline.isolation.value
        if depends_on is not None:
            spark = self.job.small_batches.session(self.job.spark)
            consumer = {**options, "kafka.group.id": group, "kafka.isolation.level": isolation}
            rows = kafka_rows(spark, topic.name, planned.ranges, consumer, headers=headers)
            return self.plans.run(spark, depends_on, rows, lambda found, observed: build(as_records(found), observed))

        if by_driver or self.decoding.shape.is_divided:
            kept = None
        else:
            kept = self.job.reads.records(
                self.pipeline.name, stretch, lambda of: self._from_kafka(of).persist(StorageLevel.DISK_ONLY)
            )
        if kept is None:
            return planned_anew(self._from_kafka(stretch, headers=headers, by_driver=by_driver), build)
        records, there = kept
        if there != stretch:
            records = records.where(is_in(planned.ranges))
        return planned_anew(records if headers else records.withColumn("headers", F.lit(None).cast(HEADERS)), build)

    def _from_kafka(self, of: Stretch, *, headers: bool = True, by_driver: Sequence[Record] = ()) -> DataFrame:
        options = consumer_options(self.pipeline, self.job.kafka)
        return read(
            self.job.spark,
            self.pipeline.topic.name,
            ranges_of(of.start, of.end),
            options=options,
            isolation=self.pipeline.isolation.value,
            group=self.job.consumers.group(self.pipeline.name, options, of.topic_id, of.leaders),
            headers=headers,
            by_driver=by_driver,
        )

    def _divided(self, planned: Plan, by_driver: Sequence[Record]) -> OwnPart | None:
        """Return the table's part of the batch's records, if other tables of a routed topic read the same ones."""
        if by_driver or self.pipeline.shape.is_masked or not self.decoding.shape.is_divided:
            return None
        are_bytes, stretch = isinstance(self.pipeline.topic.key, Bytes), planned.stretch  # for all tables

        def keep(of: Stretch) -> RoutedRead:
            return routed_read(self._from_kafka(of), self.decoding, ranges_of(of.start, of.end), with_key_ids=are_bytes)

        kept = self.job.reads.records(self.pipeline.name, stretch, keep)
        if kept is None or kept[1] != stretch:
            return None
        divided: RoutedRead = kept[0]  # as all pipelines of one source keep it
        return divided.own(self.decoding)

    def _moment(self) -> Moment | None:
        is_struct = self.pipeline.table.metadata_columns is MetadataColumns.STRUCT
        return Moment(INGESTED_AT.name, "_kafka.partition" if is_struct else "_kafka_partition")

    def _metadata(self) -> list[Column]:
        is_struct = self.pipeline.table.metadata_columns is MetadataColumns.STRUCT
        key = F.col("key") if self.key is None else key_column(self.key)
        headers = F.col("headers") if self.pipeline.headers else F.lit(None).cast(HEADERS)
        return metadata(schema_id=SCHEMA_ID, struct=is_struct, key=key, headers=headers)


def _may_be_prepared(planned: Plan, by_driver: Sequence[Record]) -> bool:
    """Return whether a batch may run the plan of an earlier one: it is small, and Spark reads all of it."""
    return not by_driver and is_small(planned.rows) and len(planned.ranges) <= SEPARATE_RANGES


def metadata(*, schema_id: str, struct: bool, key: Column | None = None, headers: Column | None = None) -> list[Column]:
    """Return the metadata columns of a row, but for its moment, in the declared layout; `schema_id` is a column of the records.

    `key` and `headers` are the content of those columns, if it is not what Kafka holds.
    """
    found = {"schema_id": F.col(schema_id)}
    found |= {name: given for name, given in (("key", key), ("headers", headers)) if given is not None}
    coordinates = {f.name: found.get(f.name, F.col(f.name)) for f in COORDINATES}
    if struct:
        return [F.struct(*(c.alias(name) for name, c in coordinates.items())).alias("_kafka")]
    return [c.alias(f"_kafka_{name}") for name, c in coordinates.items()]
