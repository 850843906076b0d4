"""The row type of declared columns. A type that a connector names is held as it is in JSON."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.declaration.checks.column_notation import JSON, Column, ColumnType, columns
from frazil.schemas.connect.connect_types import NAMED, NUMBER, VARIABLE_SCALE_DECIMAL
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

UNKNOWN = "_unknown"
"""Its name. A property of this name is one of the unknown fields."""
_FIELD = Field(
    UNKNOWN, Primitive(Kind.STRING), doc="the fields of the record that are no column, as JSON", as_json=True
)


def with_unknown(row: Struct, *, keeps: bool) -> Struct:
    """Return the row type, with the column of unknown fields at its end if they are kept."""
    return Struct((*row.fields, _FIELD), origins=row.origins) if keeps else row


def declared_type(texts: Iterable[str]) -> Struct:
    """Return the type of records with these columns, in their order, as JSON holds them (`connect_types`)."""
    return Struct(tuple(map(_field, columns(texts))))


def _field(declared: Column) -> Field:
    if declared.type.name == JSON:
        return Field(declared.name, Primitive(Kind.STRING), required=declared.required, as_json=True)
    return Field(declared.name, _type(declared.type), required=declared.required)


def _type(declared: ColumnType) -> Type:
    match declared.name:
        case "decimal":
            return Decimal(*declared.numbers)
        case "list":
            return ListOf(_type(declared.inner[0].type))
        case "map":
            return MapOf(Primitive(Kind.STRING), _type(declared.inner[0].type))
        case "struct":
            return Struct(tuple(map(_field, declared.inner)))
        case name if name == VARIABLE_SCALE_DECIMAL:
            return NUMBER
        case name if name in NAMED:
            return NAMED[name]
        case name:
            return Primitive(Kind(name))
