"""The key of a row in an upsert table: its columns, what they hold, and which records have no valid key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.envelopes import BEFORE_COLUMN, Envelope, added_columns
from frazil.declaration.formats import Bytes, Format, Text
from frazil.decode.decoded_columns import KEY, ROW, is_delete
from frazil.decode.frames.wire_format import begins_as_registered
from frazil.decode.keys.key_column import KeyLanding, key_problem
from frazil.decode.keys.row_order import RowOrder
from frazil.decode.spark_types import spark_type
from frazil.errors import InvalidInput
from frazil.schemas.evolution.merge import same_field
from frazil.schemas.key_fields import fields_of_key, named
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Struct

KEY_COLUMN = "_kafka_key"
"""The key's column in a table whose record keys are one value, not a record of fields."""


@dataclass(frozen=True, slots=True)
class RowKey:
    """The columns that identify a row.

    `columns` are the table's, by name. `fields` says which field of the record's decoded key each one is; `None` is the key itself.
    `shared` are those that the value has, too; a value in which they are null says nothing of the key. With `is_of_value` the value
    decides, and the record's key only for a record without one, and for a delete whose value has none of them; `fields` are none
    then if the record's key lacks one of them.
    `has_changes` is that of the values' `Side`. `before` are those that the row before a change has, with their names there: it
    is of this key.
    `plain` is the format of the record's key if the key is the row's and no schema describes it.
    """

    columns: tuple[Field, ...]
    fields: Mapping[str, str | None]
    shared: frozenset[str] = frozenset()
    landing: KeyLanding | None = None
    is_of_value: bool = False
    order: RowOrder | None = None
    has_changes: bool = False
    before: tuple[tuple[str, str], ...] = ()
    plain: Format | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def in_row_before(self, target: Struct, envelope: Envelope | None) -> tuple[tuple[str, str], ...]:
        """Return the columns of the key with their names in the row before a change, if the envelope says that events have one.

        The names may differ: each of both rows has its own, where names of the source are alike or reserved.
        """
        added = added_columns(envelope)
        images = (f.type for f in target.fields if f.source == BEFORE_COLUMN and f.source in added)
        columns = [column for column in target.fields if column.name in self.names]
        pairs = (
            (column, same_field(column, of.fields)) for of in images if isinstance(of, Struct) for column in columns
        )
        return tuple(sorted((column.name, held.name) for column, held in pairs if held is not None))

    @property
    def _is_named_by_record(self) -> Column:
        """Return whether a record deletes a row that only the record's key can name."""
        deletes = is_delete(has_changes=self.has_changes)
        if not self.has_changes:
            return deletes
        return deletes & reduce(Column.__and__, (F.col(ROW)[name].isNull() for name in self.names))

    def values(self) -> dict[str, Column]:
        """Return what the columns hold: what the value has, else what the record's key has, also for a record without a value."""
        return {column.name: self._of(column) for column in self.columns}

    def of_rejected(self, has_row: Column, has_key: Column) -> dict[str, Column]:
        """Return what the columns of a rejected record's row would hold, null where that cannot be read.

        `has_row` and `has_key` say whether its value and its key were decoded.
        """
        found = {}
        for column in self.columns:
            of_value = [F.when(has_row, self._of(column))] if self.is_of_value else []
            of_record = [F.when(has_key, self._of_record(column))] if self.fields else []
            found[column.name] = F.coalesce(*of_value, *of_record)
        return found

    def verdict(self) -> Column:
        """Return why a record has no row in spite of a decoded key and value, its order included; null if it has one."""
        reason = self._reason_of_value() if self.is_of_value else self._reason_of_record()
        if self.order is None:
            return reason
        return F.coalesce(reason, F.when(self.order.is_missing(self.values()), Reason.ORDER_MISSING.value))

    def names_schema(self) -> Column:
        """Return whether the record's key names a schema for certain, though none describes it: two versions of one key are two.

        Text that begins with byte 0 and an id does. Bytes may begin so and be a number.
        """
        if not isinstance(self.plain, Text):
            return F.lit(False)
        return F.coalesce(begins_as_registered(F.col("key")), F.lit(False))

    def _reason_of_value(self) -> Column:
        has_null = reduce(Column.__or__, (value.isNull() for value in self.values().values()))
        by_record = self._is_named_by_record
        if not self.fields:
            return F.when(by_record, Reason.TOMBSTONE_NAMES_NO_ROW.value).when(has_null, Reason.KEY_NULL.value)
        held = [self._of_record(column) for column in self.columns]
        # A version of the record's key that lacks a field leaves it null, and says nothing of the row.
        is_named = reduce(Column.__and__, (value.isNotNull() for value in held))
        differs = [F.col(ROW)[c.name] != value for c, value in zip(self.columns, held, strict=True)]
        reason = F.when(by_record & F.col("key").isNull(), Reason.KEY_MISSING.value).when(
            has_null, Reason.KEY_NULL.value
        )
        differ = ~by_record & is_named & reduce(Column.__or__, differs)
        return reason.when(differ, Reason.KEY_MISMATCH.value)

    def _reason_of_record(self) -> Column:
        found = self.values()
        has_null = reduce(Column.__or__, (value.isNull() for value in found.values()))
        reason = F.when(F.col("key").isNull(), Reason.KEY_MISSING.value).when(has_null, Reason.KEY_NULL.value)
        if self.shared:
            differs = reduce(Column.__or__, (F.col(ROW)[name] != found[name] for name in sorted(self.shared)))
            reason = reason.when(differs, Reason.KEY_MISMATCH.value)
        if self.before:
            row = F.col(ROW)[BEFORE_COLUMN]
            same = reduce(Column.__and__, (row[held].eqNullSafe(found[name]) for name, held in self.before))
            reason = reason.when(row.isNotNull() & ~same, Reason.BEFORE_MISSING.value)
        return reason

    def _of(self, column: Field) -> Column:
        if not self.is_of_value:
            return self._of_record(column)
        held = F.col(ROW)[column.name]
        return F.when(self._is_named_by_record, self._of_record(column)).otherwise(held) if self.fields else held

    def _of_record(self, column: Field) -> Column:
        name = self.fields[column.name]
        if self.landing is None:
            held = F.col("key")
        else:
            held = F.col(KEY)[name if name is not None else self.landing.target.fields[0].name]
        return held.cast(spark_type(column.type))


_OF_RECORD = "Choose write=Append(), or give the topic's records another key"
_OF_VALUE = "Name other columns with Upsert(key=…), or choose write=Append()"


def plain_key(of: Format) -> Format | None:
    """Return the format of keys of one value that no schema describes; None for others."""
    return of if isinstance(of, Bytes | Text) else None


def row_key(
    target: Struct, values: Struct, key: Field, fields: Struct | None, landing: KeyLanding | None = None
) -> RowKey:
    """Return the key of rows of type `target`, if it is that of the records.

    `values` is the merged type of the values, `key` the column of the record's key, and `fields` its fields if it is a record.
    Each of them is a column of the target, in whose order they come: schemas may list fields in any order, and hashes depend on
    it. Raises `InvalidInput` if a column cannot be part of a key.
    """
    if fields is None:
        _check(key, do=_OF_RECORD, has_own_scale=key.has_own_scale)
        return RowKey((Field(KEY_COLUMN, key.type),), {KEY_COLUMN: None}, landing=landing)
    columns = {field.name: column for field in fields.fields if (column := same_field(field, target.fields))}
    if not columns:
        raise InvalidInput(
            "the record's key has no fields, so all records have one key", where="key", do="Choose write=Append()"
        )
    for field in fields.fields:
        if field.name in columns:
            _check(columns[field.name], do=_OF_RECORD, has_own_scale=field.has_own_scale)
    shared = {column.name for column in columns.values() if same_field(column, values.fields)}
    sources = {column.name: _decoded(field, landing) for field in fields.fields if (column := columns.get(field.name))}
    ordered = tuple(column for column in target.fields if column.name in sources)
    return RowKey(ordered, sources, frozenset(shared), landing)


def value_key(
    target: Struct, values: Struct, names: Sequence[str], fields: Struct | None, landing: KeyLanding | None = None
) -> RowKey:
    """Return the key of rows of type `target`, if it is these columns of the values; arguments are as in `row_key`.

    Raises `InvalidInput` as `row_key` and `named` do.
    """
    columns = {field.name: same_field(field, target.fields) or field for field in named(names, values)}
    for field in named(names, values):
        _check(columns[field.name], do=_OF_VALUE, has_own_scale=field.has_own_scale)
    found = fields_of_key(named(names, values), fields)
    sources = {columns[name].name: _decoded(field, landing) for name, field in found.items()}
    # A column that the table lacks comes too, so that the caller can name it.
    ordered = tuple(dict.fromkeys(c for c in (*target.fields, *columns.values()) if c in columns.values()))
    return RowKey(ordered, sources, frozenset(column.name for column in ordered), landing, is_of_value=True)


def _decoded(field: Field, landing: KeyLanding | None) -> str:
    """Return the name of the key's field when it is decoded: one that may not be renamed keeps its earlier name."""
    return (same_field(field, landing.target.fields) or field).name if landing is not None else field.name


def _check(column: Field, *, do: str, has_own_scale: bool) -> None:
    """Raise `InvalidInput` if a column cannot be part of a key: two values that look equal may not be."""
    if what := key_problem(replace(column, has_own_scale=has_own_scale)):
        raise InvalidInput(f"{column.name} {what}", where=f"key column {column.name}", do=do)
