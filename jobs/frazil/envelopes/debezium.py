"""Debezium's change events: `before`, `after`, `op` and `source`, or flattened by `ExtractNewRecordState`.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events and
https://debezium.io/documentation/reference/stable/transformations/event-flattening.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.envelopes import BEFORE_COLUMN, OPERATION_COLUMN, SOURCE_COLUMN, Debezium, added_columns
from frazil.envelopes.envelope import Change, Operation, Unwrapped
from frazil.envelopes.rows_before import row_before
from frazil.envelopes.unavailable_values import unavailable
from frazil.errors import InvalidInput
from frazil.schemas.evolution.field_ids import is_union
from frazil.schemas.types import Field, Kind, Primitive, Struct

_AFTER, _BEFORE, _OP, _SOURCE, _TIME = "after", "before", "op", "source", "ts_ms"
_FLAT_OP, _FLAT_DELETED, _FLAT_TIME = "__op", "__deleted", "__source_ts_ms"
"""Fields that `ExtractNewRecordState` adds. All other fields that it adds are columns of the row."""
_TEXT, _LONG = Primitive(Kind.STRING), Primitive(Kind.LONG)
_OPERATIONS: Mapping[str, Operation] = {
    "r": Operation.WRITE,
    "c": Operation.WRITE,
    "u": Operation.WRITE,
    "d": Operation.DELETE,
    "t": Operation.TRUNCATE,
    "m": Operation.NOTHING,
}
_DECLARED_BY = {OPERATION_COLUMN: "operation_column", SOURCE_COLUMN: "source_column", BEFORE_COLUMN: "replica_identity"}
_MOST_MS = 253_402_300_799_999  # the end of the year 9999
_NO_ROWS = {
    "schema changes": {"ddl", "tableChanges"},
    "transactions": {"event_count", "data_collections"},
}
"""Topics of a connector that have no rows, by fields of their values."""
_HEARTBEAT = {"ts_ms"}


@dataclass(frozen=True, slots=True)
class DebeziumEvents:
    """The events of a connector, as they are declared."""

    declared: Debezium
    has_changes: ClassVar[bool] = True
    order: ClassVar[tuple[str, ...]] = ()

    def unwrapped(self, record: Struct) -> Unwrapped:
        """Return how records of this type are unwrapped: the type itself says whether they are flattened."""
        fields = {field.source: field for field in record.fields}
        if _is_struct(fields.get(_AFTER)) and _OP in fields and _is_struct(fields.get(_SOURCE)):
            return _Plain.of(fields, self.declared)
        what = next((what for what, names in _NO_ROWS.items() if names <= fields.keys()), None)
        if _is_struct(fields.get(_SOURCE)) and _is_struct(fields.get("message")) and _OP in fields:
            what = "logical decoding messages"
        elif fields.keys() == _HEARTBEAT:
            what = "heartbeats"
        if what is not None:
            raise InvalidInput(
                f"the topic has a connector's {what}, which are no changes of a table's rows",
                where=f"fields {', '.join(sorted(fields))}",
                do="Declare the topic of one table, like PREFIX.SCHEMA.TABLE, or remove envelope",
            )
        if _OP in fields and any(_is_struct(fields.get(name)) for name in (_BEFORE, _AFTER, _SOURCE)):
            raise InvalidInput(
                "the events have an operation and rows, and not the form that Debezium gives to those of a table",
                where=f"fields {', '.join(sorted(fields))}",
                do="Have the connector write after and source as records, as for PostgreSQL, or flatten the events",
            )
        return _Flat.of(fields, self.declared)

    def record(self, row: Struct) -> Struct:
        """Return the type of records whose rows are declared: flattened ones, if a field says what an event does.

        Each record of such a topic has that field: without it, another form of events would land as rows of nulls.
        """
        marks = {_FLAT_OP, _FLAT_DELETED}
        if any(field.source in marks for field in row.fields):
            return Struct(tuple(replace(field, required=field.source in marks) for field in row.fields))
        fields = (Field(_AFTER, row), Field(_OP, _TEXT), Field(_SOURCE, Struct((Field(_TIME, _LONG),))))
        return Struct((*fields, Field(_BEFORE, row)) if self.declared.has_before else fields)


@dataclass(frozen=True, slots=True)
class _Plain:
    """Events of `after`, `op` and `source`.

    `before` is decoded only if the replica identity is full: what it lacks is invented there.
    """

    row: Struct
    declared: Debezium

    @classmethod
    def of(cls, fields: Mapping[str, Field], declared: Debezium) -> _Plain:
        """Return how records with these fields are unwrapped. Raises `InvalidInput` if they lack what is declared."""
        added = [Field(OPERATION_COLUMN, _TEXT, doc="operation that made the row: r, c, u or d")]
        doc = "place of that change in the source"
        added.append(replace(fields[_SOURCE], name=SOURCE_COLUMN, source=SOURCE_COLUMN, doc=doc))
        if declared.has_before and not _is_struct(fields.get(_BEFORE)):
            raise InvalidInput(
                "the events do not have the row before a change",
                where="envelope.replica_identity",
                do="Have the connector write before, or remove replica_identity",
            )
        added.append(Field(BEFORE_COLUMN, Struct(_fields(fields.get(_BEFORE))), doc="the row before the change"))
        return cls(_with(_fields(fields[_AFTER]), added, declared), declared)

    def decoded(self, target: Struct) -> Struct:
        """Return `after` as far as the row is made of it, the operation, and of the source what lands and the time."""
        of_row, added = _parted(target, self.declared)
        kept = _fields(added.get(SOURCE_COLUMN))
        if all(field.source != _TIME for field in kept):
            kept = (*kept, Field(_TIME, _LONG))
        decoded = (Field(_AFTER, Struct(of_row)), Field(_OP, _TEXT), Field(_SOURCE, Struct(kept)))
        before = added.get(BEFORE_COLUMN)
        return Struct((*decoded, Field(_BEFORE, before.type)) if before is not None else decoded)

    def change(self, record: Column, target: Struct) -> Change:
        """Return the change that an event is; a write without a row is of an unknown operation.

        Where the row before is declared, an update or delete without it, or with a placeholder in it, lacks it.
        """
        of_row, added = _parted(target, self.declared)
        row, source = record[_AFTER], record[_SOURCE]
        about = {}
        if OPERATION_COLUMN in added:
            about[added[OPERATION_COLUMN].name] = record[_OP]
        kept = _fields(added.get(SOURCE_COLUMN))
        if kept:
            parts = F.struct(*(source[field.name].alias(field.name) for field in kept))
            about[added[SOURCE_COLUMN].name] = F.when(source.isNotNull(), parts)
        operation = _operation(record[_OP])
        is_empty = (operation == Operation.WRITE.value) & row.isNull()
        operation, before = F.when(is_empty, None).otherwise(operation), None
        if (column := added.get(BEFORE_COLUMN)) is not None:
            before, lacks = row_before(record[_OP], record[_BEFORE], _fields(column), self.declared.unavailable_value)
            operation = F.when(lacks & operation.isNotNull(), Operation.LACKS_BEFORE.value).otherwise(operation)
        time = next((field.name for field in kept if field.source == _TIME), _TIME)
        return Change(
            operation=operation,
            before=before,
            after={field.name: row[field.name] for field in of_row},
            kind=record[_OP],
            about=about,
            time=_instant(source[time]),
            unavailable=unavailable(row, of_row, self.declared.unavailable_value),
        )


@dataclass(frozen=True, slots=True)
class _Flat:
    """Events that are their rows. `marks` are the fields that say what an event does, if the connector adds them."""

    row: Struct
    declared: Debezium
    marks: tuple[Field, ...]

    @classmethod
    def of(cls, fields: Mapping[str, Field], declared: Debezium) -> _Flat:
        """Return how records with these fields are unwrapped. Raises `InvalidInput` if they lack what is declared."""
        lacking = {
            "source_column": declared.source_column,
            "operation_column": declared.operation_column,
            "replica_identity": declared.has_before,
        }
        if _FLAT_OP in fields:
            lacking.pop("operation_column")
        if wrong := next((name for name, is_wanted in lacking.items() if is_wanted), None):
            do = "Remove it: each field of the connector's add.fields is a column of its own"
            if wrong == "operation_column":
                do = "Add op to add.fields of the connector's ExtractNewRecordState, or remove it"
            elif wrong == "replica_identity":
                do = "Remove it, or have the connector write events that are not flattened"
            raise InvalidInput("flattened events do not have what the column holds", where=f"envelope.{wrong}", do=do)
        marks = tuple(fields[name] for name in (_FLAT_OP, _FLAT_DELETED) if name in fields)
        columns = tuple(field for field in fields.values() if field not in marks)
        added = [Field(OPERATION_COLUMN, _TEXT, doc="operation that made the row: r, c, u or d")]
        return cls(_with(columns, added, declared), declared, tuple(Field(m.source, m.type, m.required) for m in marks))

    def decoded(self, target: Struct) -> Struct:
        """Return the row, and the fields that say what an event does."""
        return Struct((*_parted(target, self.declared)[0], *self.marks))

    def change(self, record: Column, target: Struct) -> Change:
        """Return the change that an event is: a write, unless it is marked as another."""
        of_row, added = _parted(target, self.declared)
        marks = {field.source: record[field.name].cast("string") for field in self.marks}
        about = {}
        operation = F.lit(Operation.WRITE.value)
        if _FLAT_OP in marks:
            operation = F.when(marks[_FLAT_OP].isNull(), operation).otherwise(_operation(marks[_FLAT_OP]))
            if OPERATION_COLUMN in added:
                about[added[OPERATION_COLUMN].name] = marks[_FLAT_OP]
        if _FLAT_DELETED in marks:
            operation = F.when(marks[_FLAT_DELETED] == "true", Operation.DELETE.value).otherwise(operation)
        for field in self.marks:
            if field.required:
                operation = F.when(marks[field.source].isNotNull(), operation)
        time = next((field for field in of_row if field.source == _FLAT_TIME and field.type == _LONG), None)
        return Change(
            operation=operation,
            after={field.name: record[field.name] for field in of_row},
            kind=marks.get(_FLAT_OP),
            about=about,
            time=_instant(record[time.name]) if time is not None else None,
            unavailable=unavailable(record, of_row, self.declared.unavailable_value),
        )


def _is_struct(field: Field | None) -> bool:
    return field is not None and isinstance(field.type, Struct) and not is_union(field.type)


def _fields(of: Field | None) -> tuple[Field, ...]:
    return of.type.fields if of is not None and isinstance(of.type, Struct) else ()


def _with(columns: tuple[Field, ...], added: list[Field], declared: Debezium) -> Struct:
    """Return the row's columns and those of the added ones that are declared."""
    more = tuple(field for field in added if field.source in added_columns(declared))
    for field in columns:
        if field.source in {one.source for one in more}:
            raise InvalidInput(
                f"the source's table has a column {field.source} itself",
                where=f"column {field.source}",
                do=f"Remove {_DECLARED_BY[field.source]}, which adds another one of this name",
            )
    return Struct((*columns, *more))


def _parted(target: Struct, declared: Debezium) -> tuple[tuple[Field, ...], dict[str, Field]]:
    """Return the columns of the source's row, and those that the envelope adds, by source."""
    added = {field.source: field for field in target.fields if field.source in added_columns(declared)}
    return tuple(field for field in target.fields if field.source not in added), added


def _operation(code: Column) -> Column:
    found = F.lit(None).cast("string")
    for letter, operation in _OPERATIONS.items():
        found = F.when(code == letter, operation.value).otherwise(found)
    return found


def _instant(ms: Column) -> Column:
    return F.when(ms.between(0, _MOST_MS), F.timestamp_millis(ms))
