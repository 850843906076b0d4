"""Row types as Iceberg's schema JSON, and back (https://iceberg.apache.org/spec/#appendix-c-json-serialization)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

FIELD_IDS = "frazil.field-ids"
"""Table property: the ids of columns that their names do not identify (`evolution/field_ids.py`), by Iceberg's field id."""

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_READ_AS = {
    "uuid": Kind.STRING,
    "time": Kind.LONG,
    "timestamp_ns": Kind.TIMESTAMP,
    "timestamptz_ns": Kind.TIMESTAMPTZ,
    "unknown": Kind.STRING,
}


def schema_json(row: Struct, *, key: Collection[str] = (), required: Collection[str] = ()) -> dict[str, Any]:
    """Return the schema of a new table, field ids given from 1 in the order of the columns.

    Columns are optional even if no version leaves them out: a later version may. Those that are named `required`
    are not, nor are the columns of the `key`, which are Iceberg's identifier fields.
    """
    ids = count(1)
    schema = {"schema-id": 0, **_struct_json(row, ids)}
    for column in schema["fields"]:
        column["required"] = column["name"] in {*key, *required}
    identifier = [column["id"] for column in schema["fields"] if column["name"] in key]
    return {**schema, "identifier-field-ids": identifier} if identifier else schema


def identifier_fields(schema: Mapping[str, Any], names: Mapping[int, str] | None = None) -> tuple[str, ...]:
    """Return the names of a table's identifier fields, in the order of their ids; `names` are other names than the schema's.

    A field inside a column, which only another engine makes one of them, is named by its id.
    """
    names = column_names(schema) if names is None else names
    return tuple(names.get(n, f"nested field {n}") for n in sorted(schema.get("identifier-field-ids", ())))


def column_names(schema: Mapping[str, Any]) -> dict[int, str]:
    """Return the names of a table's columns by field id."""
    return {column["id"]: column["name"] for column in schema["fields"]}


def row_type(schema: dict[str, Any], kept: str | None = None) -> Struct:
    """Return the row type of a table's schema JSON, without the field ids; `kept` is its property `FIELD_IDS`."""
    return _struct(schema, json.loads(kept) if kept else {})


def kept_ids(row: Struct, schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the property `FIELD_IDS` of a table with this schema; `row` has the same columns. Empty if they have no ids."""
    numbers = field_ids(dict(schema))
    known = {numbers[path]: field.ids for path, field in _fields(row, "") if field.ids and path in numbers}
    return {FIELD_IDS: json.dumps(known, separators=(",", ":"))} if known else {}


def _struct(of: Mapping[str, Any], known: Mapping[str, Sequence[str]]) -> Struct:
    return Struct(
        tuple(
            Field(
                f["name"],
                _type(f["type"], known),
                required=bool(f.get("required", False)),
                doc=f.get("doc", ""),
                ids=tuple(known.get(str(f["id"]), ())),
            )
            for f in of["fields"]
        )
    )


def _fields(of: Type, prefix: str) -> Iterator[tuple[str, Field]]:
    match of:
        case Struct(fields):
            for field in fields:
                yield prefix + field.name, field
                yield from _fields(field.type, f"{prefix}{field.name}.")
        case ListOf(element):
            yield from _fields(element, prefix + "element.")
        case MapOf(key, value):
            yield from _fields(key, prefix + "key.")
            yield from _fields(value, prefix + "value.")


def field_ids(schema: dict[str, Any]) -> dict[str, int]:
    """Return full column name -> field id of every field at any depth, by Iceberg's dotted names."""
    return dict(_ids(schema, ""))


def _struct_json(row: Struct, ids: Iterator[int]) -> dict[str, Any]:
    numbered = [(next(ids), f) for f in row.fields]  # Iceberg numbers the fields of one level before the next
    return {
        "type": "struct",
        "fields": [
            {"id": number, "name": f.name, "required": False, "type": _type_json(f.type, ids)}
            | ({"doc": f.doc} if f.doc else {})
            for number, f in numbered
        ],
    }


def _type_json(of: Type, ids: Iterator[int]) -> Any:
    match of:
        case Struct():
            return _struct_json(of, ids)
        case ListOf(element=element):
            number = next(ids)
            return {
                "type": "list",
                "element-id": number,
                "element": _type_json(element, ids),
                "element-required": False,
            }
        case MapOf(key=key, value=value):
            key_id, value_id = next(ids), next(ids)
            return {
                "type": "map",
                "key-id": key_id,
                "key": _type_json(key, ids),
                "value-id": value_id,
                "value": _type_json(value, ids),
                "value-required": False,
            }
        case _:
            return str(of)


def _type(of: Any, known: Mapping[str, Sequence[str]]) -> Type:
    if isinstance(of, str):
        if decimal := _DECIMAL.fullmatch(of):
            return Decimal(int(decimal[1]), int(decimal[2]))
        if of.startswith("fixed"):
            return Primitive(Kind.BINARY)
        return Primitive(_READ_AS.get(of) or Kind(of))
    match of["type"]:
        case "list":
            return ListOf(_type(of["element"], known), bool(of.get("element-required", False)))
        case "map":
            required = bool(of.get("value-required", False))
            return MapOf(_type(of["key"], known), _type(of["value"], known), required)
        case _:
            return _struct(of, known)


def _ids(of: Any, prefix: str) -> Iterator[tuple[str, int]]:
    if isinstance(of, str):
        return
    match of["type"]:
        case "list":
            yield prefix + "element", of["element-id"]
            yield from _ids(of["element"], prefix + "element.")
        case "map":
            yield prefix + "key", of["key-id"]
            yield from _ids(of["key"], prefix + "key.")
            yield prefix + "value", of["value-id"]
            yield from _ids(of["value"], prefix + "value.")
        case _:
            for f in of["fields"]:
                yield prefix + f["name"], f["id"]
                yield from _ids(f["type"], prefix + f["name"] + ".")
