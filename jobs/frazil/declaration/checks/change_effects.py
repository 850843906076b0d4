"""The effect of each changed field of a declaration on an existing table.

The table describes what the jobs do: which fields apply only when a table is created (`lake.tables.create`), which from the next
batch, and which during maintenance. A new field of a declaration needs a row: a test compares this with the dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from frazil.declaration.checks.column_notation import NAMED, ColumnType, columns
from frazil.declaration.checks.constraints import seconds_of
from frazil.declaration.formats import Json, Text
from frazil.declaration.options import Deletion, ErrorMode, Isolation, Tombstones, Truncation


class Outcome(StrEnum):
    """The effect of a change on rows, as a review prints it.

    `STOPS`: the pipeline stops until an operator decides. `LEFT`: the table stays, and Frazil no longer writes to it.
    `REBUILD`: an existing table does not follow; only a rebuilt table has the change. `FROM_NOW_ON`: rows that land later have
    the change, existing rows stay as they are. `MADE`: a missing table is created.
    """

    STOPS = "stops"
    LEFT = "left behind"
    REBUILD = "needs a rebuild"
    FROM_NOW_ON = "from now on"
    MADE = "new"
    UPKEEP = "no row changes"


def _always(before: Any, after: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class FieldEffect:
    """The effect of one changed field; `is_dangerous` judges the old and the new value, `more` says what these alone show."""

    outcome: Outcome
    what: str
    is_dangerous: Callable[[Any, Any], bool] = lambda before, after: False
    more: Callable[[Any, Any], str] = lambda before, after: ""

    def said(self, before: Any, after: Any) -> str:
        """Return the effect in words."""
        return "; ".join(filter(None, (self.what, self.more(before, after))))


def other_readings(before: Iterable[str] | None, after: Iterable[str] | None) -> str:
    """Return in words which columns hold their values in another way than before, such as milliseconds; empty if none does."""
    old = {column.name: column.type for column in columns(before or ())}
    found = [
        f"{column.name}{path} was {was} and is read as {now}"
        for column in columns(after or ())
        if column.name in old
        for path, was, now in _read_otherwise(old[column.name], column.type)
    ]
    if not found:
        return ""
    means = "records that are not landed yet are read so, whatever their producer meant, and existing rows keep their values"
    return f"{'; '.join(found)}: {means}"


def _read_otherwise(old: ColumnType, new: ColumnType) -> Iterator[tuple[str, str, str]]:
    """Yield the path and both names of types, one of which a connector names; plain types that differ are seen by the table."""
    if old.name != new.name:
        if old.name in NAMED or new.name in NAMED:
            yield "", old.name, new.name
        return
    there = {(part.name or place): part.type for place, part in enumerate(old.inner)}
    for place, part in enumerate(new.inner):
        key = part.name or place
        if key in there:
            for path, was, now in _read_otherwise(there[key], part.type):
                yield f".{part.name or 'element'}{path}", was, now


_SCHEMA = (
    "a new field is added as a column, and is null in existing rows; a column that the schema has no more stays, and is null in "
    "new rows; a type that the column does not widen to is refused. Between a registry and a declared schema, records that are "
    "not landed yet are read in the other form, and those that have not its frame, or have one, are rejected"
)
_MESSAGE = (
    "records that are not landed yet are read as another message: fields of one number get the values of the other's"
)
_FRAMING = (
    "records that are not landed yet are read with, or without, a fingerprint before the body, and those of the other form are "
    "rejected"
)


def _is_switched(before: Any, after: Any) -> bool:
    return before is None or after is None


_ONLY_AT_BIRTH = "it applies when a table is created, so an existing table does not change"
FIELDS: Mapping[str, FieldEffect] = MappingProxyType(
    {
        "topic.name": FieldEffect(
            Outcome.STOPS,
            "the table holds offsets of the old topic: the pipeline stops (TopicRecreated) until an operator has it land the new "
            "topic from its beginning; the remaining records of the old topic do not land",
            _always,
        ),
        "topic.value": FieldEffect(
            Outcome.FROM_NOW_ON,
            "records that are not landed yet are read in the new format, and records in the old one are rejected. Existing columns "
            "stay; if the type of a column differs, the new versions are refused",
            _always,
        ),
        "topic.key": FieldEffect(
            Outcome.STOPS,
            "the column of keys has the old format's type, and no column changes its type: nothing can land until the table is "
            "rebuilt. Between text and json the type is the same, and the pipeline continues",
            lambda before, after: {before, after} != {Text(), Json()},
        ),
        "topic.value.columns": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a new column is added, and is null in existing rows; a column that is no longer declared stays, and is null in new "
            "rows; a type that the column does not widen to stops the pipeline; records without a column that becomes required are "
            "rejected",
            _always,
            other_readings,
        ),
        "topic.value.unknown_fields": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with keep, the column _unknown is added, null in existing rows; without it stays, and is null in new rows",
            lambda before, after: after is None,
        ),
        "topic.key.columns": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a new field is added to the column of keys, and is null in existing rows. If there were none or are none now, the "
            "column has another type, and nothing lands until the table is rebuilt. No upsert table changes its key",
            _always,
            other_readings,
        ),
        "topic.value.subject_strategy": FieldEffect(
            Outcome.FROM_NOW_ON,
            "schemas are looked up under other subjects: types that exist only there add columns, and records of types that are "
            "no longer found are rejected",
            _always,
        ),
        "topic.value.record_name": FieldEffect(
            Outcome.FROM_NOW_ON,
            f"records of this name land from now on, those of other names are rejected. With a Protobuf schema {_MESSAGE}",
            _always,
        ),
        "topic.transactional": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with true, gaps between offsets are accepted; with false, a gap drops the batch",
            lambda before, after: bool(after),
        ),
        "topic.value.schema": FieldEffect(Outcome.FROM_NOW_ON, _SCHEMA, _is_switched),
        "topic.key.schema": FieldEffect(
            Outcome.FROM_NOW_ON, f"{_SCHEMA}. No upsert table changes its key", _is_switched
        ),
        "topic.value.framing": FieldEffect(Outcome.FROM_NOW_ON, _FRAMING, _always),
        "topic.key.framing": FieldEffect(Outcome.FROM_NOW_ON, _FRAMING, _always),
        "topic.key.record_name": FieldEffect(
            Outcome.FROM_NOW_ON,
            f"keys of this message land from now on, and those of others are rejected. With a schema {_MESSAGE}",
            _always,
        ),
        "write": FieldEffect(
            Outcome.STOPS,
            "the table has the old write mode, and no table changes its mode: only a rebuilt table has the new one",
            _always,
        ),
        "envelope": FieldEffect(
            Outcome.STOPS,
            "the table was made of records without it, or with another one, and no table changes that: only a rebuilt table has it",
            _always,
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
            _always,
        ),
        "engine": FieldEffect(
            Outcome.LEFT,
            "the other engine creates a separate table and does not continue the old one; records may be in both tables or in none",
            _always,
        ),
        "start": FieldEffect(
            Outcome.REBUILD,
            f"{_ONLY_AT_BIRTH}: it continues from its committed offsets. Only a rebuilt table starts there",
        ),
        "kafka.isolation": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with read_uncommitted, records of transactions that are later aborted land too, and stay",
            lambda before, after: after is Isolation.READ_UNCOMMITTED,
        ),
        "on_error": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with dead_letter, a record that cannot land is kept in the dead-letter table; with suspend the pipeline stops; with "
            "skip the record is only counted, and its bytes are not kept",
            lambda before, after: after is ErrorMode.SKIP,
        ),
        "max_rejected_percent": FieldEffect(
            Outcome.FROM_NOW_ON,
            "above this share of rejected records, a batch is not committed and the pipeline stops; with 100 it never stops",
            lambda before, after: (after or 50) > (before or 50),
        ),
        "write.on_tombstone": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a record without a value becomes a rejected record or a row of nulls, or, with skip, is only counted; in an upsert "
            "table it deletes the row, or marks it as deleted. Rows that are deleted or marked already stay so",
            lambda before, after: after in (Tombstones.SKIP, Deletion.DELETE),
        ),
        "write.on_truncate": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a truncate of the source's table stops the pipeline, or, with delete_all, deletes all rows of the table",
            lambda before, after: after is Truncation.DELETE_ALL,
        ),
        "write.order_by.remember_deletes": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with a shorter time the next batch forgets the keys that were deleted before it: an older record brings their rows "
            "back. A longer time counts for deletes that are not forgotten yet",
            lambda before, after: seconds_of(after) < seconds_of(before),
        ),
        "write.order_by": FieldEffect(
            Outcome.STOPS,
            "the table has the old order of records, and no table changes its order: the pipeline stops (WriteModeDiffers); only a "
            "rebuilt table has the new one",
            _always,
        ),
        "write.order_by.columns": FieldEffect(
            Outcome.STOPS,
            "the table has the old order of records, and no table changes its order: only a rebuilt table has the new one",
            _always,
        ),
        "write.key": FieldEffect(
            Outcome.STOPS,
            "the table has one row for each value of the old key, and no table changes its key: only a rebuilt table has the new "
            "one. If the columns are the same ones, the pipeline continues",
            lambda before, after: before is None or after is None or {*before} != {*after},
        ),
        "engine.group": FieldEffect(
            Outcome.UPKEEP,
            "the jobs of the other group continue at the table's offsets, so no record is lost and none lands twice. Until the old "
            "jobs have the new document, both may try: one commits, the other is fenced",
        ),
        **dict.fromkeys(
            (
                f"shape.route{part}"
                for part in ("", ".by", ".by.path", ".by.name", ".types", ".new_types", ".rest", ".tombstones")
            ),
            FieldEffect(
                Outcome.FROM_NOW_ON,
                "the route holds for records from now on; rows that landed stay where they are. A new table begins at its start: "
                "records before the change may be in two tables, or with another start than the earliest in none. A type moves "
                "between tables without such records if both have read the same offsets before",
            ),
        ),
        **dict.fromkeys(
            ("shape.route.others", "shape.route.undecodable", "shape.route.hides_bytes"),
            FieldEffect(Outcome.FROM_NOW_ON, "the route of another table changed; rows of this one are the same"),
        ),
        "shape.where": FieldEffect(
            Outcome.FROM_NOW_ON,
            "the condition holds for records from now on; existing rows stay until their key has a record",
        ),
        "shape.select": FieldEffect(
            Outcome.FROM_NOW_ON,
            "new columns are added, and those that are selected no more stay and are null in new rows; existing rows stay until "
            "their key has a record. If it makes a column of the key of something else, keys get two rows: name another table",
        ),
        "shape.mask": FieldEffect(
            Outcome.STOPS,
            "the rows that landed stay as they are: `frazil accept … mask-from-now-on` takes the new masks for later records",
        ),
        "shape.dead_letters": FieldEffect(
            Outcome.FROM_NOW_ON, "later dead letters have their bytes so; existing ones stay as they are"
        ),
        **dict.fromkeys(
            (f"shape.event_time{part}" for part in ("", ".column", ".oldest", ".newest", ".lateness")),
            FieldEffect(Outcome.FROM_NOW_ON, "the bounds hold for records from now on; rows that landed stay"),
        ),
        "headers": FieldEffect(
            Outcome.FROM_NOW_ON,
            "headers are kept, or their column stays null; existing rows are not filled",
            lambda before, after: not after,
        ),
        "kafka.options": FieldEffect(Outcome.FROM_NOW_ON, "the consumer's options; rows are the same"),
        "table.identifier": FieldEffect(
            Outcome.LEFT,
            "a new table is created and begins at the declared start; the old table stays, and no pipeline writes to it. Records "
            "may be in both tables, or in none if the start is later than the landed records",
            _always,
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
            _always,
        ),
        "table.json_columns": FieldEffect(
            Outcome.STOPS,
            "existing columns that hold JSON keep their type, and records do not fit it any more: only a rebuilt table has the "
            "new type",
            _always,
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
        "table.snapshots.newest": FieldEffect(
            Outcome.UPKEEP,
            "the next expiry keeps this number of snapshots; queries of earlier states are no longer possible",
        ),
        "table.snapshots.days": FieldEffect(
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
