"""The effect of each changed field of a declaration on an existing table.

The table describes what the jobs do: which fields apply only when a table is created (`lake.tables.create`), which from the next
batch, and which during maintenance. A new field of a declaration needs a row: a test compares this with the dataclasses.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from frazil.declaration.durations import seconds_of
from frazil.declaration.field_effect import FieldEffect, Outcome, always
from frazil.declaration.options import Deletion, ErrorMode, Isolation, Tombstones, Truncation
from frazil.declaration.topic_effects import TOPIC_FIELDS

__all__ = ["FIELDS", "Outcome"]

_ONLY_AT_BIRTH = "it applies when a table is created, so an existing table does not change"
FIELDS: Mapping[str, FieldEffect] = MappingProxyType(
    {
        **TOPIC_FIELDS,
        "write": FieldEffect(
            Outcome.STOPS,
            "the table has the old write mode, and no table changes its mode: only a rebuilt table has the new one",
            always,
        ),
        "envelope": FieldEffect(
            Outcome.STOPS,
            "the table was made of records without it, or with another one, and no table changes that: only a rebuilt table has it",
            always,
        ),
        "envelope.operation_column": FieldEffect(
            Outcome.FROM_NOW_ON, "with true, the column `_op` is added; rows that are not changed again have null in it"
        ),
        "envelope.source_column": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with true, the column `_source` is added; rows that are not changed again have null in it",
        ),
        "envelope.replica_identity": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with full, the column `_before` is added, null in rows that landed before; updates and deletes without the row before "
            "them are rejected",
        ),
        "envelope.unavailable_value": FieldEffect(
            Outcome.FROM_NOW_ON,
            "records that are not landed yet hold the old placeholder or the new one: the other one lands as a value",
            always,
        ),
        "engine": FieldEffect(
            Outcome.LEFT,
            "the other engine creates a separate table and does not continue the old one; records may be in both tables or in none",
            always,
        ),
        "start": FieldEffect(
            Outcome.REBUILD,
            f"{_ONLY_AT_BIRTH}: it continues from its committed offsets. Only a rebuilt table starts there",
        ),
        "isolation": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with read_uncommitted, records of transactions that are later aborted land too, and stay",
            lambda before, after: after is Isolation.READ_UNCOMMITTED,
        ),
        "on_error": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with log, a record that cannot land is kept in the dead-letter table; with suspend the pipeline stops; with skip the "
            "record is only counted, and its bytes are not kept",
            lambda before, after: after is ErrorMode.SKIP,
        ),
        "max_rejected_percent": FieldEffect(
            Outcome.FROM_NOW_ON,
            "above this share of rejected records, a batch is not committed and the pipeline stops; with 100 it never stops",
            lambda before, after: (after or 50) > (before or 50),
        ),
        "write.on_tombstone": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a record without a value becomes a rejected record or a row of nulls, or, with skip, is only counted; in a table of "
            "current state it deletes the row, or marks it as deleted. Rows that are deleted or marked already stay so",
            lambda before, after: after in (Tombstones.SKIP, Deletion.DELETE),
        ),
        "write.on_truncate": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a truncate of the source's table stops the pipeline, or, with delete_all, deletes all rows of the table",
            lambda before, after: after is Truncation.DELETE_ALL,
        ),
        "write.remember_deletes": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with a shorter time the next batch forgets the keys that were deleted before it: an older record brings their rows "
            "back. A longer time counts for deletes that are not forgotten yet",
            lambda before, after: seconds_of(after) < seconds_of(before),
        ),
        "write.order_by": FieldEffect(
            Outcome.STOPS,
            "the table has the old order of records, and no table changes its order: the pipeline stops (WriteModeDiffers); only a "
            "rebuilt table has the new one",
            always,
        ),
        "write.key": FieldEffect(
            Outcome.STOPS,
            "the table has one row for each value of the old key, and no table changes its key: only a rebuilt table has the new "
            "one. If the columns are the same ones, the pipeline continues",
            lambda before, after: before is None or after is None or {*before} != {*after},
        ),
        "group": FieldEffect(
            Outcome.UPKEEP,
            "the jobs of the other group continue at the table's offsets, so no record is lost and none lands twice. Until the old "
            "jobs have the new document, both may try: one commits, the other is fenced",
        ),
        "headers": FieldEffect(
            Outcome.FROM_NOW_ON,
            "headers are kept, or their column stays null; existing rows are not filled",
            lambda before, after: not after,
        ),
        "kafka_options": FieldEffect(Outcome.FROM_NOW_ON, "the consumer's options; rows are the same"),
        "table.identifier": FieldEffect(
            Outcome.LEFT,
            "a new table is created and begins at the declared start; the old table stays, and no pipeline writes to it. Records "
            "may be in both tables, or in none if the start is later than the landed records",
            always,
        ),
        "table.partition_by": FieldEffect(
            Outcome.REBUILD,
            f"{_ONLY_AT_BIRTH}: its partition spec does not evolve by itself. ALTER TABLE … ADD PARTITION FIELD gives new "
            "files the new spec and leaves old files; a rebuilt table has it for all files",
        ),
        "table.sort_by": FieldEffect(
            Outcome.FROM_NOW_ON,
            "the next run sets the table's sort order: new files, and those that compaction writes, have it; others stay",
        ),
        "table.format_version": FieldEffect(Outcome.REBUILD, f"{_ONLY_AT_BIRTH}. Athena cannot read version 3"),
        "table.target_file_size_bytes": FieldEffect(
            Outcome.UPKEEP,
            "the next run sets the property of the table, and compaction treats files of this size as full",
        ),
        "table.metadata_columns": FieldEffect(
            Outcome.STOPS,
            "the existing table lacks the columns of the new layout, and they are not added: nothing can land until the table is "
            "rebuilt",
            always,
        ),
        "table.json_columns": FieldEffect(
            Outcome.STOPS,
            "existing columns that hold JSON keep their type, and records do not fit it any more: only a rebuilt table has the "
            "new type",
            always,
        ),
        "table.properties": FieldEffect(
            Outcome.FROM_NOW_ON,
            "the next run sets properties that are declared, and removes those that are no longer declared; existing files stay",
        ),
        "table.schema_evolution": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with freeze the table's schema does not change, with add_columns it gets new columns, with widen also wider types; "
            "records of a version that needs more are rejected. Existing columns stay",
        ),
        "table.keep_snapshots": FieldEffect(
            Outcome.UPKEEP,
            "the next expiry keeps this number of snapshots; queries of earlier states are no longer possible",
        ),
        "table.keep_days": FieldEffect(
            Outcome.UPKEEP,
            "the next expiry keeps younger snapshots; queries of earlier states are no longer possible",
        ),
        "engine.limits.target_seconds": FieldEffect(
            Outcome.UPKEEP, "the commit interval changes: batches become longer or shorter"
        ),
        "engine.limits.first_rows": FieldEffect(Outcome.UPKEEP, "the size of a run's first batch"),
        "engine.limits.max_rows": FieldEffect(Outcome.UPKEEP, "the maximum of records of a batch"),
        "engine.limits.max_bytes": FieldEffect(Outcome.UPKEEP, "the maximum of bytes of a batch"),
    }
)
"""Path in a pipeline -> effect of a change. `name` is not among them: another name is another pipeline."""
