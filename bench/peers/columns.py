"""The columns of a shape: of the table that a peer lands into, and of Flink's source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.shapes import Format, Shape
from frazil.schemas import avro
from frazil.schemas.json import documents as json_documents
from frazil.schemas.json import json_schema
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Field, Kind, ListOf, Primitive, Struct, Type

COORDINATES = ("topic", "partition", "offset", "timestamp")
"""The metadata columns that each peer can write."""
FLINK_TYPES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INT: "INT",
    Kind.LONG: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.STRING: "STRING",
    Kind.TIMESTAMPTZ: "TIMESTAMP_LTZ(3)",
}


def row(shape: Shape) -> Struct:
    """Return the row type of a shape's records."""
    if shape.format is Format.AVRO:
        return avro.row_type(avro.parse(shape.schema))
    return json_schema.row_type(json_documents.parse(shape.schema))


def table_row(shape: Shape, *, coordinates: bool) -> Struct:
    """Return the row type of a peer's table: the record's columns, and those of its `coordinates`."""
    wanted = {f"_kafka_{name}" for name in COORDINATES} if coordinates else set()
    return Struct((*row(shape).fields, *(f for f in metadata_fields(struct=False) if f.name in wanted)))


def source_columns(shape: Shape, *, has_deletes: bool = False) -> list[str]:
    """Return the columns of Flink's source, each with its type.

    With Avro an instant is a number: Flink's format `avro-confluent` reads microseconds as milliseconds. If a record without a value
    deletes a row, every column may be null.
    """
    fields = _optional(row(shape)).fields if has_deletes else row(shape).fields
    return [f"`{field.name}` {_of_field(field, shape)}" for field in fields]


def _optional(of: Struct) -> Struct:
    """Return a row type whose fields may be null. To Flink's SQL, those of a row that may be null may be so too."""
    types = ((field, _optional(field.type) if isinstance(field.type, Struct) else field.type) for field in of.fields)
    return Struct(tuple(replace(field, type=type_, required=False) for field, type_ in types))


def selected(shape: Shape) -> Iterator[str]:
    """Yield an expression for each column of the table, in its order."""
    for field in row(shape).fields:
        is_number = shape.format is Format.AVRO and field.type == Primitive(Kind.TIMESTAMPTZ)
        yield f"TO_TIMESTAMP_LTZ(`{field.name}`, 3)" if is_number else f"`{field.name}`"


def _of_field(field: Field, shape: Shape) -> str:
    is_number = shape.format is Format.AVRO and field.type == Primitive(Kind.TIMESTAMPTZ)
    return _type(Primitive(Kind.LONG) if is_number else field.type, required=field.required)


def _type(of: Type, *, required: bool) -> str:
    null = " NOT NULL" if required else ""
    match of:
        case Primitive(kind=kind):
            return FLINK_TYPES[kind] + null
        case ListOf(element=element, element_required=element_required):
            return f"ARRAY<{_type(element, required=element_required)}>{null}"
        case Struct(fields=fields):
            members = ", ".join(f"`{f.name}` {_type(f.type, required=f.required)}" for f in fields)
            return f"ROW<{members}>{null}"
        case _:
            raise ValueError(f"no shape has a column of {of}")
