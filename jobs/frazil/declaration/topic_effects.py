"""The effect of each changed field of a topic, see `change_effects`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from frazil.declaration.column_changes import other_readings
from frazil.declaration.field_effect import FieldEffect, Outcome, always
from frazil.declaration.options import KeyFormat

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


TOPIC_FIELDS: Mapping[str, FieldEffect] = MappingProxyType(
    {
        "topic.name": FieldEffect(
            Outcome.STOPS,
            "the table holds offsets of the old topic: the pipeline stops (TopicRecreated) until an operator has it land the new "
            "topic from its beginning; the remaining records of the old topic do not land",
            always,
        ),
        "topic.value_format": FieldEffect(
            Outcome.FROM_NOW_ON,
            "records that are not landed yet are read in the new format, and records in the old one are rejected. Existing columns "
            "stay; if the type of a column differs, the new versions are refused",
            always,
        ),
        "topic.key_format": FieldEffect(
            Outcome.STOPS,
            "the column of keys has the old format's type, and no column changes its type: nothing can land until the table is "
            "rebuilt. Between text and json the type is the same, and the pipeline continues",
            lambda before, after: {before, after} != {KeyFormat.TEXT, KeyFormat.JSON},
        ),
        "topic.columns": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a new column is added, and is null in existing rows; a column that is no longer declared stays, and is null in new "
            "rows; a type that the column does not widen to stops the pipeline; records without a column that becomes required are "
            "rejected",
            always,
            other_readings,
        ),
        "topic.unknown_fields": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with keep, the column _unknown is added, null in existing rows; without it stays, and is null in new rows",
            lambda before, after: after is None,
        ),
        "topic.key_columns": FieldEffect(
            Outcome.FROM_NOW_ON,
            "a new field is added to the column of keys, and is null in existing rows. If there were none or are none now, the "
            "column has another type, and nothing lands until the table is rebuilt. No table of current state changes its key",
            always,
            other_readings,
        ),
        "topic.subject_strategy": FieldEffect(
            Outcome.FROM_NOW_ON,
            "schemas are looked up under other subjects: types that exist only there add columns, and records of types that are "
            "no longer found are rejected",
            always,
        ),
        "topic.record_name": FieldEffect(
            Outcome.FROM_NOW_ON,
            f"records of this name land from now on, those of other names are rejected. With a Protobuf schema {_MESSAGE}",
            always,
        ),
        "topic.transactional": FieldEffect(
            Outcome.FROM_NOW_ON,
            "with true, gaps between offsets are accepted; with false, a gap drops the batch",
            lambda before, after: bool(after),
        ),
        "topic.schema": FieldEffect(Outcome.FROM_NOW_ON, _SCHEMA, _is_switched),
        "topic.key_schema": FieldEffect(
            Outcome.FROM_NOW_ON, f"{_SCHEMA}. No table of current state changes its key", _is_switched
        ),
        "topic.framing": FieldEffect(Outcome.FROM_NOW_ON, _FRAMING, always),
        "topic.key_framing": FieldEffect(Outcome.FROM_NOW_ON, _FRAMING, always),
        "topic.key_record_name": FieldEffect(
            Outcome.FROM_NOW_ON,
            f"keys of this message land from now on, and those of others are rejected. With a key_schema {_MESSAGE}",
            always,
        ),
    }
)
"""Path in a pipeline -> effect of a change."""
