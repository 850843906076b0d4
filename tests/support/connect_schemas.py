"""Schemas of Kafka Connect, as its JsonConverter writes them, and what Confluent's converter makes of them in JSON Schema.

`confluent` follows `JsonSchemaData.rawSchemaFromConnectSchema`
(https://github.com/confluentinc/schema-registry/blob/master/json-schema-converter/src/main/java/io/confluent/connect/json/JsonSchemaData.java).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.schemas.connect.connect_types import DECIMAL, NAMED, VARIABLE_SCALE_DECIMAL

NUMBERS = {"float": "float32", "double": "float64"}


def field(name: str, of: str, semantic: str | None = None, *, optional: bool = True, **more: Any) -> dict[str, Any]:
    """Return a field of a struct; `semantic` is the name of its type."""
    named = {"name": semantic, "version": 1} if semantic else {}
    return {"type": of, "optional": optional, **named, **more, "field": name}


def struct(name: str, fields: Sequence[Mapping[str, Any]], *, optional: bool = False, **more: Any) -> dict[str, Any]:
    """Return a struct."""
    return {"type": "struct", "fields": [*fields], "optional": optional, "name": name, **more}


def decimal(name: str, precision: int, scale: int, *, optional: bool = True) -> dict[str, Any]:
    """Return a field with a decimal of a fixed scale."""
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return field(name, "bytes", "org.apache.kafka.connect.data.Decimal", optional=optional, parameters=parameters)


SOURCE = (
    *(field(name, "string", optional=False) for name in ("version", "connector", "name")),
    field("ts_ms", "int64", optional=False),
    field("snapshot", "string", "io.debezium.data.Enum", parameters={"allowed": "first,true,last,false"}, default="false"),
    field("db", "string", optional=False),
    field("sequence", "string"),
    *(field(name, "int64") for name in ("ts_us", "ts_ns")),
    *(field(name, "string", optional=False) for name in ("schema", "table")),
    *(field(name, "int64") for name in ("txId", "lsn", "xmin")),
)  # fmt: skip


def envelope_struct(columns: Sequence[Mapping[str, Any]], table: str = "shop.public.orders") -> dict[str, Any]:
    """Return the schema of a table's events."""
    row = struct(f"{table}.Value", columns, optional=True)
    source = struct("io.debezium.connector.postgresql.Source", SOURCE)
    times = (field(name, "int64") for name in ("ts_ms", "ts_us", "ts_ns"))
    fields = ({**row, "field": "before"}, {**row, "field": "after"}, {**source, "field": "source"})
    return struct(f"{table}.Envelope", (*fields, field("op", "string", optional=False), *times), version=2)


def confluent(schema: Mapping[str, Any], index: int | None = None) -> dict[str, Any]:
    """Return the JSON Schema of a Connect schema; properties come in no order of their own."""
    made: dict[str, Any]
    match kind := schema["type"]:
        case "struct":
            fields = sorted(enumerate(schema["fields"]), key=lambda one: hash_of(one[1]["field"]))
            properties = {each["field"]: confluent(each, place) for place, each in fields}
            made = {"type": "object", "properties": properties}
        case "array":
            made = {"type": "array", "items": confluent(schema["items"])}
        case "map":
            made = {"type": "object", "additionalProperties": confluent(schema["values"]), "connect.type": "map"}
        case "bytes":
            made = {"type": "string", "connect.type": "bytes"}
        case "float" | "double":
            made = {"type": "number", "connect.type": NUMBERS[kind]}
        case "string" | "boolean":
            made = {"type": kind}
        case _:
            made = {"type": "integer", "connect.type": kind}
    names = {"name": "title", "version": "connect.version", "doc": "description", "default": "default"}
    made |= {names[name]: value for name, value in schema.items() if name in names}
    if "parameters" in schema:
        made["connect.parameters"] = schema["parameters"]
    if schema.get("optional"):
        made = {"oneOf": [{"type": "null"}, made]}
    return made if index is None else {**made, "connect.index": index}


def connect_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Connect schema whose JSON Schema this is: the reverse of `confluent`."""
    if "oneOf" in schema:
        (inner,) = (each for each in schema["oneOf"] if each != {"type": "null"})
        return {**connect_of(inner), "optional": True}
    made: dict[str, Any] = {"optional": False}
    names = {"title": "name", "connect.version": "version", "description": "doc", "connect.parameters": "parameters"}
    made |= {names[name]: value for name, value in schema.items() if name in names}
    hint = schema.get("connect.type")
    match schema["type"]:
        case "object" if "properties" in schema:
            fields = sorted(schema["properties"].items(), key=lambda one: one[1].get("connect.index", 0))
            return {**made, "type": "struct", "fields": [{**connect_of(of), "field": name} for name, of in fields]}
        case "object":
            text = {"type": "string", "optional": False}
            return {**made, "type": "map", "keys": text, "values": connect_of(schema["additionalProperties"])}
        case "array":
            return {**made, "type": "array", "items": connect_of(schema["items"])}
        case "number" if hint != "bytes":
            return {**made, "type": "float" if hint == "float32" else "double"}
        case "integer":
            return {**made, "type": hint or "int64"}
        case kind:
            return {**made, "type": hint or kind}


def declared(columns: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the same columns as a declaration has them."""
    return tuple(f"{each['field']} {_declared(each)}" for each in columns)


def _declared(of: Mapping[str, Any]) -> str:
    if of.get("name") in (*NAMED, VARIABLE_SCALE_DECIMAL):
        return str(of["name"])
    if of.get("name") == DECIMAL:
        return f"decimal({of['parameters']['connect.decimal.precision']}, {of['parameters']['scale']})"
    match kind := of["type"]:
        case "array":
            return f"list<{_declared(of['items'])}>"
        case "map":
            return f"map<string, {_declared(of['values'])}>"
        case "struct":
            return f"struct<{', '.join(each['field'] + ': ' + _declared(each) for each in of['fields'])}>"
        case "int8" | "int16" | "int32":
            return "int"
        case "int64":
            return "long"
        case "bytes":
            return "binary"
    return str(kind)


def hash_of(name: str) -> int:
    """Return the hash of a text in Java, by which a small map has its members."""
    found = 0
    for letter in name:
        found = (31 * found + ord(letter)) & 0xFFFF_FFFF
    return (found ^ (found >> 16)) & 0xF
