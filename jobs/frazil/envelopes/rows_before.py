"""The row before a change: which events lack it, and which may have invented it.

PostgreSQL sends the key of a deleted row alone, and nothing of an updated one, unless its replica identity is full. Debezium then
writes null for columns that may be null, and the zero of their type for others: text, numbers, times and lists that are empty or 0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.envelopes.unavailable_values import unavailable
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

_ZEROS = {
    Kind.BOOLEAN: False,
    Kind.BINARY: bytearray(b""),
    Kind.DATE: date(1970, 1, 1),
    Kind.TIMESTAMPTZ: datetime(1970, 1, 1, tzinfo=UTC),
}
_NUMBERS = frozenset({Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE})


def row_before(operation: Column, row: Column, fields: Sequence[Field], placeholder: str) -> tuple[Column, Column]:
    """Return the row before an update or delete, and whether an event that is one lacks it, or a value of it."""
    has_one = operation.isin("u", "d")
    lacks = reduce(Column.__or__, unavailable(row, fields, placeholder).values(), row.isNull())
    return F.when(has_one, row), F.coalesce(has_one & lacks, F.lit(False))


def may_be_invented(row: Column, of: Struct, key: Collection[str]) -> Column:
    """Return whether a row has nothing but its key that the connector may not have invented; false if it has the key alone."""
    others = [_is_zero(row[field.name], field.type) for field in of.fields if field.name not in key]
    return F.coalesce(reduce(Column.__and__, others), F.lit(False)) if others else F.lit(False)


def _is_zero(value: Column, of: Type) -> Column:
    """Return whether a value is null, or the zero of its type."""
    match of:
        case Primitive(Kind.STRING):
            is_zero = value.isin("", "{}")  # `{}` is that of JSON
        case Primitive(Kind.TIMESTAMP):
            is_zero = value == F.lit("1970-01-01").cast("timestamp_ntz")
        case Primitive(kind) if kind in _ZEROS:
            is_zero = value == F.lit(_ZEROS[kind])
        case Decimal():
            is_zero = value == 0
        case Primitive(kind) if kind in _NUMBERS:
            is_zero = value == 0
        case ListOf() | MapOf():
            is_zero = F.size(value) == 0
        case _:
            is_zero = F.lit(False)
    return value.isNull() | is_zero
