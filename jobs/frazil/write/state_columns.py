"""The columns that a write mode adds to those of a row: its order, when it was deleted, and what a change of a changelog did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.declaration.envelopes import BEFORE_COLUMN, added_columns
from frazil.declaration.options import Deletion
from frazil.declaration.write_modes import (
    Append,
    Changelog,
    Upsert,
    WriteMode,
    declared_key,
    order_by,
    remembered_seconds,
)
from frazil.decode import decoding
from frazil.decode.decode import columns_of
from frazil.decode.decoding import ROW, is_delete, is_truncate
from frazil.decode.keys.row_key import RowKey
from frazil.decode.keys.row_order import row_order
from frazil.decode.spark_types import spark_type
from frazil.envelopes.rows_before import may_be_invented
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.merge import incompatible
from frazil.schemas.evolution.schema_changes import Change, changes
from frazil.schemas.metadata import CHANGED_AT, DELETED_AT, OF_CHANGELOGS, OF_STATES, OP, ORDER, UNAVAILABLE
from frazil.schemas.types import Field, ListOf, MapOf, Primitive, Struct
from frazil.upsert.fold import Rules

_DOC = "order of the row among the records of its key"
_WRITE, _DELETE, _TRUNCATE = "w", "d", "t"  # of `_op`, beside the kinds of a write that a source names


def rules(pipeline: Pipeline, *, keys_move: bool = False, fills: bool = False) -> Rules:
    """Return how the changes of a batch take effect.

    `keys_move` says that records of a key may be in several partitions, `fills` that some leave values out.
    """
    write = pipeline.write
    if not isinstance(write, Upsert):
        return Rules()
    ordered, soft = bool(write.order_by), write.on_tombstone is Deletion.SOFT_DELETE
    return Rules(
        ordered=ordered,
        soft=soft,
        moved=keys_move and not ordered,
        fills=fills,
        about=added_columns(pipeline.envelope),
        remember_us=remembered_seconds(write) * 1_000_000,
    )


def state_fields(pipeline: Pipeline, row: Struct) -> tuple[Field, ...]:
    """Return the columns of a table with rows of this type. Raises `InvalidInput` if the row has a column of such a name."""
    write, fields = pipeline.write, list[Field]()
    if isinstance(write, Append):
        return ()
    check_columns(pipeline, row)
    if (order := row_order(write.order_by, row)) is not None:
        fields.append(Field(ORDER, order.type, doc=_DOC))
    match write:
        case Upsert(on_tombstone=Deletion.SOFT_DELETE):
            fields.append(DELETED_AT)
        case Changelog():
            fields += [OP, CHANGED_AT, *([UNAVAILABLE] if pipeline.envelope is not None else [])]
    return tuple(fields)


def check_columns(pipeline: Pipeline, row: Struct) -> None:
    """Raise `InvalidInput` if a row of a table with a key has a column of a name that is taken there."""
    write = pipeline.write
    for field in row.fields:
        if field.name in _names(write):
            tables = "changelogs" if isinstance(write, Changelog) else "tables of current state"
            raise InvalidInput(
                f"the column {field.name} is Frazil's own in {tables}",
                where=f"column {field.name}",
                do="Rename the field, or choose write=Append()",
            )


def unfit(pipeline: Pipeline, row: Struct) -> IncompatibleSchema | None:
    """Return why rows of this version, whose names are the source's, are of no table with a key; None if they are.

    A later version must not end the pipeline: its records are dead letters.
    """
    taken = _names(pipeline.write)
    by = (*(declared_key(pipeline.write) or ()), *order_by(pipeline.write))
    for field in row.fields if taken else ():
        name = folded(field.source)
        if name in taken:
            return incompatible((field.source,), f"the column {name} is Frazil's own in tables with a key")
        if name in by and field.has_own_scale:
            return incompatible((field.source,), "numbers that each have a scale of their own are no key and no order")
    return None


def without_state_fields(write: WriteMode, table: Struct) -> Struct:
    """Return a table as far as its rows decide on it."""
    return Struct(tuple(field for field in table.fields if field.name not in _names(write)))


def state_changes(pipeline: Pipeline, table: Struct, row: Struct) -> tuple[Change, ...]:
    """Return how these columns of an existing table follow: soft deletes may be declared later, and the order may widen."""
    wanted = Struct(state_fields(pipeline, row))
    there = Struct(tuple(field for field in table.fields if field.name in _names(pipeline.write)))
    return tuple(change for change in changes(there, wanted) if wanted.fields)


def _names(write: WriteMode) -> tuple[str, ...]:
    return OF_CHANGELOGS if isinstance(write, Changelog) else OF_STATES if isinstance(write, Upsert) else ()


def state_values(table: Struct, key: RowKey) -> Iterator[Column]:
    """Yield what a record gives these columns of the table.

    A record that deletes its row has the time of its change in the source, if that is known; else it gets its own when folded.
    """
    columns = {field.name: field.type for field in table.fields}
    if key.order is not None:
        yield key.order.value(key.values()).cast(spark_type(columns[ORDER])).alias(ORDER)
    if DELETED_AT.name in columns:
        at = F.when(is_delete(has_changes=True), F.col(ROW)[decoding.CHANGED_AT]) if key.has_changes else F.lit(None)
        yield at.cast(spark_type(DELETED_AT.type)).alias(DELETED_AT.name)


def changelog_values(table: Struct, key: RowKey, columns: Sequence[str]) -> Iterator[Column]:
    """Yield what a record gives a changelog's `columns` of the value, and those that the write mode adds.

    A value that the source left out is null, and `_unavailable` names its column: a placeholder is no value of the row. The row
    before a delete is null if all that it has beside the key may be invented.
    """
    types = {field.name: field.type for field in table.fields}
    row, left_out = F.col(ROW), F.col(ROW)[decoding.UNAVAILABLE] if key.has_changes else None
    for name, value in zip(columns, columns_of(columns, key.values()), strict=True):
        if left_out is not None and isinstance(types[name], ListOf | MapOf | Primitive) and name not in key.names:
            is_known = left_out.isNull() | ~F.array_contains(left_out, name)
            value = F.when(is_known, value).alias(name)
        if name == BEFORE_COLUMN and key.before and isinstance(image := types[name], Struct):
            is_invented = is_delete(has_changes=True) & may_be_invented(
                row[name], image, [held for _, held in key.before]
            )
            value = F.when(~is_invented, value).alias(name)
        yield value
    if key.order is not None:
        yield key.order.value(key.values()).cast(spark_type(types[ORDER])).alias(ORDER)
    kind, at = F.lit(_WRITE), F.col("timestamp")
    if left_out is not None:
        kind = F.when(is_truncate(), _TRUNCATE).otherwise(F.coalesce(row[decoding.WRITE_KIND], kind))
        at = F.coalesce(row[decoding.CHANGED_AT], at)
        yield left_out.alias(UNAVAILABLE.name)
    yield F.when(is_delete(has_changes=key.has_changes), _DELETE).otherwise(kind).alias(OP.name)
    yield F.coalesce(at, F.timestamp_seconds(F.lit(0))).alias(CHANGED_AT.name)
