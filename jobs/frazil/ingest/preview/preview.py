"""Some records of a topic as the rows that a run would make of them, or with the reasons that it would give; nothing is written.

The schemas, the decoding and the columns are those of a run (`Evolution`, `Staging`): only the table is not evolved, or not made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, Row
from pyspark.sql import functions as F

from frazil.clients.kafka_records import Record
from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.declaration.engines import refuse_foreign
from frazil.declaration.write_modes import tombstones
from frazil.decode.decoded_columns import DETAIL, REASON, ROW, SCHEMA_ID, UNAVAILABLE, is_delete, is_truncate
from frazil.decode.keys.row_key import RowKey
from frazil.decode.shape.row_filter import is_filtered
from frazil.decode.writers.seen_frames import UnknownSchemas
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.envelopes.chosen_envelope import envelope
from frazil.ingest.batch import record_counts
from frazil.ingest.batch.read import read
from frazil.ingest.batch.refused_records import Refused
from frazil.ingest.batch.staging import Staging
from frazil.ingest.preview.newest_records import chosen_records
from frazil.ingest.reporting import many_files
from frazil.ingest.reporting.events import Event, Reporter
from frazil.ingest.schema.evolution import Evolution
from frazil.ingest.setup import existing_table, table_setup
from frazil.ingest.spark_errors import explained
from frazil.job.context import JobContext
from frazil.lake import tables
from frazil.lake.layout import differences
from frazil.lake.spark_session import infer_no_constraints
from frazil.lake.stage import PartitionLimits, partition_values
from frazil.schemas.evolution.schema_changes import applied, renames
from frazil.schemas.iceberg import FIELD_IDS, field_ids, kept_ids, row_type, schema_json
from frazil.schemas.reasons import MESSAGES, Reason
from frazil.schemas.sources import check_order, check_sources
from frazil.schemas.types import Struct

ATTEMPTS = 5
"""Attempts at decoding records that name schemas which were not looked up yet."""

_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedRow:
    """A record that would land: its place, its values as JSON has them, and what it does to the row of its key.

    `operation` is `write`, `delete` or `truncate`; empty in an append table. `left_out` are the columns whose value comes from the
    table's row. The row of a deleted key has the columns of the key only.
    """

    partition: int
    offset: int
    values: Mapping[str, Any]
    operation: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedReject:
    """A record that would be rejected or filtered, and the reason; `is_skipped` says that the declaration lets it go."""

    partition: int
    offset: int
    reason: str
    message: str
    schema_id: int | None
    is_skipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The rows and rejected records of a preview. `changes` is what a run would do to the table's columns before they land.

    `waiting` says what a pipeline waits for whose topic has no schema; then there are no rows. `notes` are versions of the schema
    that do not land, properties that land in no column, how the table differs from its declaration, and a warning about many small
    files.
    """

    columns: tuple[tuple[str, str], ...] = ()
    key: tuple[str, ...] = ()
    rows: tuple[PreviewedRow, ...] = ()
    rejected: tuple[PreviewedReject, ...] = ()
    table_exists: bool = False
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    waiting: str = ""


class UnwrittenEvolution(Evolution):
    """An `Evolution` whose table is a value: as it exists with the changes that it needs, or as it would be made."""

    def __init__(self, pipeline: Pipeline, job: JobContext, writers: WriterSchemas, report: Reporter) -> None:
        super().__init__(pipeline, job, writers, report)
        self.exists = job.iceberg.exists(pipeline.table.identifier)
        self.changes: tuple[str, ...] = ()
        self._renamed: Mapping[str, str] = {}

    def _evolved(self) -> Struct:
        table = self._pipeline.table
        if self.exists:
            self._source.check_masks(self._read_key)
            current = tables.columns(self._job.iceberg, table.identifier)
            actual = existing_table.layout_of(self._job.iceberg, self._pipeline)
            again = existing_table.columns_to_add(self._pipeline, actual, self.types[1])
            needed = (*again, *self._needed(applied(current, again)))
            self.changes, self._renamed = tuple(map(str, needed)), renames(needed)
            return applied(current, needed)
        row, key = self.types
        row_key, more = self.made_of()
        columns = table_setup.new_columns(self._pipeline, row, key, more)
        check_order(table.partition_fields, columns, table=table.identifier, field="partition_by")
        check_order(table.sort_fields, columns, table=table.identifier, field="sort_by")
        schema = schema_json(columns, key=row_key)
        ids = field_ids(dict(schema))
        check_sources(table.partition_fields, ids, table=table.identifier, field="partition_by")
        check_sources(table.sort_fields, ids, table=table.identifier, field="sort_by")
        return row_type(schema, kept_ids(columns, schema).get(FIELD_IDS))

    def _limits(self, there: Struct) -> PartitionLimits:
        if self.exists:
            return super()._limits(there)
        return PartitionLimits(partition_values(self._pipeline.table.partition_fields, there))

    def _has_records(self) -> bool:
        return True  # so that records without a key are rejected one by one

    def _made_for(self, key: RowKey) -> tuple[str, ...]:
        if not self.exists:
            return key.names
        return tuple(self._renamed.get(name, name) for name in super()._made_for(key))


def preview(
    pipeline: Pipeline, job: JobContext, registry: Registry | None, *, count: int, from_start: bool = False
) -> Preview:
    """Return what the newest `count` records of the topic, or the first ones, would become.

    Raises what a run raises before its first batch, such as `InvalidInput`, `WriteModeDiffers` and `ServiceUnavailable`.
    """
    refuse_foreign([pipeline])
    notes: list[str] = []

    def noted(event: Mapping[str, Any]) -> None:
        if event["event"] in (Event.SCHEMA_INCOMPATIBLE, Event.PROPERTIES_OMITTED):
            notes.append(str(event["message"]))

    report = Reporter(noted, pipeline.name, pipeline.topic.name, job.run, job.clock)
    writers = writer_schemas(pipeline.topic, registry, envelope=envelope(pipeline.envelope), route=pipeline.shape.route)
    evolution = UnwrittenEvolution(pipeline, job, writers, report)
    if pipeline.is_change_data:
        infer_no_constraints(job.spark)
    if evolution.exists:
        actual = existing_table.layout_of(job.iceberg, pipeline)
        notes += map(str, differences(pipeline, actual))
        existing_table.check_write_mode(pipeline, actual)
    with explained(f"pipeline {pipeline.name}", stopping=job.stopping, redact=job.redact):
        evolution.refresh()
        spans = job.kafka.offsets(pipeline.topic.name, pipeline.isolation)
        if not evolution.is_known:
            facts = evolution.waiting(spans)
            waiting = ". ".join(str(facts[key]) for key in ("message", "hint") if key in facts)
            return Preview(table_exists=evolution.exists, waiting=waiting)
        records = chosen_records(pipeline, job.kafka, spans, count=count, from_start=from_start)
        staging, landed, refused = _decoded(evolution, records)
    if many := many_files.of_preview(pipeline, [row.values for row in landed]):
        notes.append(many)
    shown = (*staging.layout.columns, *staging.layout.key_names)
    types = {field.name: str(field.type) for field in staging.layout.table.fields}
    names = [name for name in types if name in shown or (landed and name in landed[0].values)]
    return Preview(
        columns=tuple((name, types[name]) for name in names),
        key=staging.layout.key_names,
        rows=landed,
        rejected=refused,
        table_exists=evolution.exists,
        changes=evolution.changes,
        notes=tuple(notes),
    )


def _decoded(
    evolution: Evolution, records: Sequence[Record]
) -> tuple[Staging, tuple[PreviewedRow, ...], tuple[PreviewedReject, ...]]:
    """Decode the records, again while they name schemas that are looked up by then."""
    for attempt in range(ATTEMPTS):
        staging = evolution.staging()
        if not records:
            return staging, (), ()
        refused, counted = _refused(evolution, staging, records)
        try:
            evolution.learn(counted.values, counted.keys)
        except UnknownSchemas:
            if attempt < ATTEMPTS - 1:
                continue
        rows, filtered = _rows(staging, records)
        return staging, rows, (*refused, *filtered, *_elsewhere(records, (*rows, *refused, *filtered)))
    raise AssertionError("the last attempt returns")


def _refused(
    evolution: Evolution, staging: Staging, records: Sequence[Record]
) -> tuple[tuple[PreviewedReject, ...], record_counts.Rejected]:
    pipeline, thorough, observed = staging.pipeline, staging.decoding.thorough, Observation()
    skipped = record_counts.skips(F.col(REASON), pipeline.on_error, tombstones(pipeline.write))
    frame = thorough.own(_frame(staging, records))
    rejects = thorough.rejected(frame, unplaced=staging.unplaced())
    rejects = record_counts.observe_rejected(rejects, observed, skipped)
    of_place = {(record.partition, record.offset): record for record in records}
    found = rejects.select("partition", "offset", REASON, SCHEMA_ID, DETAIL, skipped.alias("skipped"))
    listed = tuple(
        PreviewedReject(
            partition=row["partition"],
            offset=row["offset"],
            reason=row[REASON],
            message=evolution.explain(Refused(*row[:5]), of_place[row["partition"], row["offset"]]),
            schema_id=row[SCHEMA_ID],
            is_skipped=bool(row["skipped"]),
        )
        for row in _collected(found, records)
    )
    return listed, record_counts.rejected(observed.get)


def _rows(staging: Staging, records: Sequence[Record]) -> tuple[tuple[PreviewedRow, ...], tuple[PreviewedReject, ...]]:
    """Return the rows of the records, and the records that are filtered without effect."""
    thorough, write = staging.decoding.thorough, staging.pipeline.write
    frame = thorough.own(_frame(staging, records))
    decoded = thorough.rows(frame, staging.unplaced())
    values = [*staging.mode.values(staging.layout), *staging.kafka_key()]
    deletes, dropped = is_delete(has_changes=thorough.has_changes), F.lit(False)
    if thorough.shape.filter is not None:
        deletes, dropped = deletes | is_filtered(), is_filtered() & staging.mode.dropped()
    operation = F.when(deletes, "delete").otherwise("write")
    left_out: Column = F.lit(None).cast("array<string>")
    if thorough.has_changes:
        operation = F.when(is_truncate(), "truncate").otherwise(operation)
        left_out = F.col(ROW)[UNAVAILABLE]
    text = F.to_json(F.struct(*values), _JSON).alias("json")
    marks = operation.alias("operation"), left_out.alias("left_out"), dropped.alias("dropped")
    found = _collected(decoded.select("partition", "offset", SCHEMA_ID, text, *marks), records)
    where = f"the record does not match where {staging.pipeline.shape.where}"
    return tuple(
        PreviewedRow(
            partition=row["partition"],
            offset=row["offset"],
            values=json.loads(row["json"]),
            operation=row["operation"] if write.has_key or thorough.has_changes else "",
            left_out=tuple(row["left_out"] or ()),
        )
        for row in found
        if not row["dropped"]
    ), tuple(
        PreviewedReject(
            partition=row["partition"],
            offset=row["offset"],
            reason="where",
            message=where,
            schema_id=row[SCHEMA_ID],
            is_skipped=True,
        )
        for row in found
        if row["dropped"]
    )


def _elsewhere(records: Sequence[Record], found: Sequence[PreviewedRow | PreviewedReject]) -> Iterator[PreviewedReject]:
    """Yield the records that are another table's: all without a row or a reason."""
    places = {(one.partition, one.offset) for one in found}
    for one in records:
        if (one.partition, one.offset) not in places:
            message = MESSAGES[Reason.ROUTE]
            place = {"partition": one.partition, "offset": one.offset}
            yield PreviewedReject(**place, reason=Reason.ROUTE.value, message=message, schema_id=None, is_skipped=True)


def _frame(staging: Staging, records: Sequence[Record]) -> DataFrame:
    """Return the records as Spark's source would give them."""
    topic, isolation = staging.pipeline.topic.name, staging.pipeline.isolation.value
    frame = read(
        staging.job.spark, topic, (), options={}, isolation=isolation, group="", headers=True, by_driver=records
    )
    return frame.coalesce(1)


def _collected(found: DataFrame, records: Sequence[Record]) -> list[Row]:
    """Return the results in the order of the records."""
    order = {(record.partition, record.offset): place for place, record in enumerate(records)}
    return sorted(found.collect(), key=lambda row: order[row["partition"], row["offset"]])
