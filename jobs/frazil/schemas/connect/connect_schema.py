"""The schema that Kafka Connect's JsonConverter writes next to each payload (`schemas.enable`), as a row type.

https://github.com/apache/kafka/blob/4.1.1/connect/json/src/main/java/org/apache/kafka/connect/json/JsonConverter.java
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frazil.errors import UnreadableSchema
from frazil.schemas.connect.connect_types import (
    DECIMAL,
    NUMBER,
    VARIABLE_SCALE_DECIMAL,
    Number,
    NumberOrBytes,
    connect_decimal,
    named,
    with_unit,
)
from frazil.schemas.json.json_schema import NESTING, VALUE_COLUMN
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type, inside

_TEXT = Primitive(Kind.STRING)
_KINDS: Mapping[str, Kind] = {
    "boolean": Kind.BOOLEAN,
    **dict.fromkeys(("int8", "int16", "int32"), Kind.INT),
    "int64": Kind.LONG,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "string": Kind.STRING,
    "bytes": Kind.BINARY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectSchema:
    """A schema of Kafka Connect.

    `row` is the type of its records as JSON holds them (`connect_types`); a record that is no struct has the one column `value`.
    `is_nullable` says that a record may be null.
    """

    name: str
    row: Struct
    is_single_value: bool
    is_nullable: bool


FIELD_LIMIT = 10_000
"""As for Avro and Protobuf: any producer writes a schema into its records, and each field would be a column for good."""


def parse(text: str) -> ConnectSchema:
    """Return the schema of a text in JSON. Raises `UnreadableSchema`, with the path of the place."""
    try:
        schema = json.loads(text)
        # Half a surrogate pair is no text that a catalog or Spark takes.
        json.dumps(schema, ensure_ascii=False).encode()
        of = _type(schema, "the schema", 0)
        if of is not None and _fields(of) > FIELD_LIMIT:
            raise UnreadableSchema(f"the schema in the record has more than {FIELD_LIMIT} fields")
    except (ValueError, RecursionError) as error:
        raise UnreadableSchema(f"the schema in the record is no JSON that is read: {error}") from None
    doc, is_nullable = _doc(schema), _is_optional(schema)
    is_single_value = not isinstance(of, Struct) or isinstance(of, Number)
    if isinstance(of, Struct) and not is_single_value:
        row = of
    else:
        row = Struct((Field(VALUE_COLUMN, of or _TEXT, required=not is_nullable, doc=doc, as_json=of is None),))
    name = schema.get("name")
    return ConnectSchema(
        name=name if isinstance(name, str) else "", row=row, is_single_value=is_single_value, is_nullable=is_nullable
    )


def _type(schema: Any, where: str, depth: int) -> Type | None:
    """Return the type of what a schema describes; None if only JSON text holds it."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    name = schema.get("name") if kind is not None else None
    match kind:
        case "struct" | "array" | "map" if depth == NESTING:
            return None
        case "struct" if name == VARIABLE_SCALE_DECIMAL:
            return NUMBER
        case "struct":
            return _struct(schema, where, depth + 1)
        case "array":
            element = _type(_part(schema, "items", where), f"{where}.items", depth + 1)
            return None if element is None else ListOf(element, not _is_optional(schema["items"]))
        case "map":
            value = _type(_part(schema, "values", where), f"{where}.values", depth + 1)
            if value is None or _part(schema, "keys", where).get("type") != "string":  # then it is an array of pairs
                return None
            return MapOf(_TEXT, value, not _is_optional(schema["values"]))
        case "bytes" if name == DECIMAL:
            try:
                decimal = connect_decimal(schema.get("parameters"))
            except ValueError as problem:
                raise UnreadableSchema(str(problem), where=where) from None
            assert isinstance(decimal.means, Decimal)
            return NumberOrBytes(decimal.means.precision, decimal.means.scale, decimal.zeros)
        case str() if kind in _KINDS:
            of = Primitive(_KINDS[kind])
            return named(name, of) or with_unit(name, of)
    raise UnreadableSchema(f"{where} has the type {kind!r}, which Kafka Connect does not have")


def _struct(schema: Mapping[str, Any], where: str, depth: int) -> Type | None:
    fields, listed = [], schema.get("fields")
    if not isinstance(listed, list) or not all(isinstance(f, dict) and isinstance(f.get("field"), str) for f in listed):
        raise UnreadableSchema(f"{where} is a struct whose fields have no names")
    for field in listed:
        name = field["field"]
        of = _type(field, f"{where}.{name}", depth)
        required = not _is_optional(field)
        fields.append(Field(name, of or _TEXT, required=required, doc=_doc(field), as_json=of is None))
    return Struct(tuple(fields)) if fields else None


def _fields(of: Type) -> int:
    return (len(of.fields) if isinstance(of, Struct) else 0) + sum(map(_fields, inside(of)))


def _part(schema: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    part = schema.get(name)
    if not isinstance(part, dict):
        raise UnreadableSchema(f"{where} has no {name}")
    return part


def _is_optional(schema: Mapping[str, Any]) -> bool:
    return schema.get("optional") is True


def _doc(schema: Mapping[str, Any]) -> str:
    doc = schema.get("doc")
    return doc.strip() if isinstance(doc, str) else ""
