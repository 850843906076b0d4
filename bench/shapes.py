"""The measured shapes of records: rows, format and schema."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bench import rows
from bench.rows import Row
from frazil.clients.registry.schemas import SchemaType
from frazil.declaration.formats import Avro, JsonSchema, Protobuf
from tests.support.debezium_events import envelope_schema


class Format(StrEnum):
    """The format of values; each is framed with a schema id, as a registry's clients do."""

    AVRO = "avro"
    JSON = "json"
    PROTOBUF = "protobuf"


_REGISTERED = {
    Format.AVRO: (SchemaType.AVRO, Avro.kind),
    Format.JSON: (SchemaType.JSON, JsonSchema.kind),
    Format.PROTOBUF: (SchemaType.PROTOBUF, Protobuf.kind),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of record. `ddl` is the row as Spark's DDL, as users write it for `from_json`."""

    name: str
    format: Format
    rows: Callable[[random.Random], Iterator[Row]]
    schema: str
    ddl: str
    says: str
    keyed: bool = False
    """Whether each record of a topic has another key; else they have few, as many as the pool has users."""
    changes: int = 0
    """How many rows of a source the records are changes of, as Debezium writes them; 0 for records without an envelope."""

    @property
    def type(self) -> SchemaType:
        """The schema's type in the registry."""
        return _REGISTERED[self.format][0]

    @property
    def value_format(self) -> str:
        """The format in a declaration."""
        return _REGISTERED[self.format][1]


AT = {"type": "long", "logicalType": "timestamp-millis"}


def _avro(name: str, fields: Mapping[str, Any]) -> str:
    listed = [{"name": "id", "type": "long"}, {"name": "at", "type": AT}]
    listed += [{"name": n, "type": t, **({"default": None} if isinstance(t, list) else {})} for n, t in fields.items()]
    return json.dumps({"type": "record", "name": name, "namespace": "bench", "fields": listed})


def _record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def _json(properties: Mapping[str, Any]) -> str:
    both = {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}, **properties}
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **_object(**both)})


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _row_of(schema: str) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(schema)["fields"]
    return fields


_INT, _DOUBLE, _STRING, _BOOLEAN = ({"type": t} for t in ("integer", "number", "string", "boolean"))
_LIGHT_DDL = "id BIGINT, at TIMESTAMP, user BIGINT, kind STRING, value DOUBLE, ok BOOLEAN"
_ORDER_DDL = (
    "id BIGINT, at TIMESTAMP, user STRUCT<id: BIGINT, country: STRING, tier: STRING>, status STRING, "
    "items ARRAY<STRUCT<sku: STRING, quantity: BIGINT, price: DOUBLE>>, "
    "shipping STRUCT<city: STRING, zip: STRING, express: BOOLEAN>, total DOUBLE, session STRING, coupon STRING"
)
_ORDER_AVRO = {
    "user": _record(
        "User", id="long", country="string", tier={"type": "enum", "name": "Tier", "symbols": list(rows.TIERS)}
    ),
    "status": {"type": "enum", "name": "Status", "symbols": list(rows.STATUSES)},
    "items": {"type": "array", "items": _record("Item", sku="string", quantity="int", price="double")},
    "shipping": _record("Shipping", city="string", zip="string", express="boolean"),
    "total": "double",
    "session": "string",
    "coupon": ["null", "string"],
}
_ORDER_JSON = {
    "user": _object(id=_INT, country=_STRING, tier=_STRING),
    "status": _STRING,
    "items": {"type": "array", "items": _object(sku=_STRING, quantity=_INT, price=_DOUBLE)},
    "shipping": _object(city=_STRING, zip=_STRING, express=_BOOLEAN),
    "total": _DOUBLE,
    "session": _STRING,
    "coupon": {"type": ["string", "null"]},
}
ORDER_PROTO = """syntax = "proto3";
package bench;
message Order {
  message User { int64 id = 1; string country = 2; Tier tier = 3; }
  message Item { string sku = 1; int32 quantity = 2; double price = 3; }
  message Shipping { string city = 1; string zip = 2; bool express = 3; }
  enum Tier { BASIC = 0; PLUS = 1; PRO = 2; }
  enum Status { NEW = 0; PAID = 1; PACKED = 2; SHIPPED = 3; DELIVERED = 4; RETURNED = 5; }
  int64 id = 1;
  int64 at = 2;
  User user = 3;
  Status status = 4;
  repeated Item items = 5;
  Shipping shipping = 6;
  double total = 7;
  string session = 8;
  optional string coupon = 9;
}
"""
_WIDE = {
    "small": ("int", "INT"),
    "large": ("long", "BIGINT"),
    "ratio": ("double", "DOUBLE"),
    "word": ("string", "STRING"),
    "account": ("string", "STRING"),
    "maybe": (["null", "int"], "INT"),
    "flag": ("boolean", "BOOLEAN"),
}
_WIDE_DDL = "id BIGINT, at TIMESTAMP, " + ", ".join(f"{n} {_WIDE[kind][1]}" for n, kind in rows.wide_columns())

SHAPES = {
    shape.name: shape
    for shape in (
        Shape(
            "light_json",
            Format.JSON,
            rows.light,
            _json({"user": _INT, "kind": _STRING, "value": _DOUBLE, "ok": _BOOLEAN}),
            _LIGHT_DDL,
            "light flat events, JSON",
        ),
        Shape(
            "light_avro",
            Format.AVRO,
            rows.light,
            _avro("Event", {"user": "long", "kind": "string", "value": "double", "ok": "boolean"}),
            _LIGHT_DDL,
            "light flat events, Avro",
        ),
        Shape("nested_json", Format.JSON, rows.orders, _json(_ORDER_JSON), _ORDER_DDL, "nested orders, JSON"),
        Shape("nested_avro", Format.AVRO, rows.orders, _avro("Order", _ORDER_AVRO), _ORDER_DDL, "nested orders, Avro"),
        Shape(
            "keyed_avro",
            Format.AVRO,
            rows.orders,
            _avro("Order", _ORDER_AVRO),
            _ORDER_DDL,
            "nested orders, each of another key, Avro",
            keyed=True,
        ),
        Shape(
            "changes_avro",
            Format.AVRO,
            rows.orders,
            json.dumps(envelope_schema(_row_of(_avro("Order", _ORDER_AVRO)), "bench.public.orders")),
            _ORDER_DDL,
            "changes of nested orders, Debezium's Avro",
            changes=100_000,
        ),
        Shape(
            "wide_avro",
            Format.AVRO,
            rows.wide,
            _avro("Wide", {name: _WIDE[kind][0] for name, kind in rows.wide_columns()}),
            _WIDE_DDL,
            "100 columns, Avro",
        ),
        Shape("nested_protobuf", Format.PROTOBUF, rows.orders, ORDER_PROTO, _ORDER_DDL, "nested orders, Protobuf"),
    )
}
