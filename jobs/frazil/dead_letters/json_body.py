"""A JSON document compared with the columns that it should fill: the first field that does not fit, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import MAX_EMAX, InvalidOperation
from decimal import Decimal as Number
from typing import Any

from frazil.dead_letters.diagnosis import Undecodable, json_value
from frazil.declaration import Pipeline
from frazil.errors import UnreadableSchema
from frazil.schemas.connect import connect_schema
from frazil.schemas.connect.connect_types import Held, Notation, NumberOrBytes
from frazil.schemas.declared_columns import declared_type
from frazil.schemas.json import json_schema
from frazil.schemas.json.written_times import PAST_MICROSECONDS, WRITTEN, is_written
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

Written = tuple[str, Mapping[str, str]]
"""The text of a schema, and the texts of those that it uses, by name."""
SHOWN = 60
"""Characters of a value that are shown."""
_NO_TEXT = re.compile(r"[\ud800-\udfff]")
_BITS = {Kind.INT: 31, Kind.LONG: 63}
_INFINITE = {Kind.FLOAT: 2**128 - 2**103, Kind.DOUBLE: 2**1024 - 2**970}
"""The least number that is rounded to infinity."""
_WORDS = {
    bool: "a boolean",
    int: "the number",
    Number: "the number",
    str: "the text",
    list: "a list",
    dict: "an object",
}
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "+INF", "INF", "-INF")


def json_of(pipeline: Pipeline, body: bytes, registered: Written | None, *, is_key: bool) -> Type | None:
    """Return the type of a JSON value, or key, by what describes it; None if nothing does. Only declared columns are required.

    `registered` are the text and the references of its schema in a registry.
    """
    found, is_row = _json_of(pipeline, body, registered, is_key=is_key), not pipeline.is_change_data and not is_key
    if type(found) is not Struct or (is_row and pipeline.topic.value.columns):
        return found
    return Struct(tuple(replace(field, required=False) for field in found.fields))


def _json_of(pipeline: Pipeline, body: bytes, registered: Written | None, *, is_key: bool) -> Type | None:
    from frazil.envelopes.chosen_envelope import envelope  # imports Spark

    of, unwraps = pipeline.topic.side(is_key=is_key), pipeline.is_change_data
    of_values = None if is_key else envelope(pipeline.envelope)
    try:
        if of.columns:
            row = _exact(pipeline, declared_type(of.columns), is_key=is_key)
            return row if of_values is None else of_values.record(row)
        if of.schema:
            registered = of.schema[-1].content, {}
        if registered is not None:
            schema = json_schema.parse(*registered)
            row = _exact(pipeline, json_schema.row_type(schema, connect_types=unwraps), is_key=is_key)
            return row.fields[0].type if json_schema.is_single_value(schema) else row
        if of.has_schemas_inside and isinstance(document := json.loads(body), dict):
            inside = connect_schema.parse(json.dumps(document.get("schema")))
            return inside.row.fields[0].type if inside.is_single_value else inside.row
    except (UnreadableSchema, ValueError, RecursionError):
        return None
    return None


def _exact(pipeline: Pipeline, row: Struct, *, is_key: bool) -> Struct:
    """Return the type with the fields of the key, and of the order, that no column may change."""
    write = pipeline.write
    if not write.has_key:
        return row
    return row.exact() if is_key else row.exact({*(write.key or ()), *write.order_columns})


def fitting_json(body: bytes, of: Type, *, in_payload: bool = False) -> Any:
    """Return the document of a body. Raises `Undecodable` if it is not JSON, or not a value of the type.

    With `in_payload` the value is the member `payload` of the document.
    """
    found = json_value(body)
    exact = json.loads(body, parse_float=_number, parse_constant=str)
    try:
        if in_payload and not (isinstance(exact, dict) and "payload" in exact):
            raise Undecodable("it has no member payload")
        value = exact["payload"] if in_payload else exact
        if value is None:
            raise Undecodable("JSON's null is not a value")
        _check(value, of, "")
    except Undecodable as problem:
        problem.document = found
        raise
    return found


def _number(text: str) -> Number:
    """Return a number; one whose exponent no decimal has gets the highest, or the lowest, exponent."""
    try:
        return Number(text)
    except InvalidOperation:
        return Number(f"{'-' * text.startswith('-')}1E{'-' * ('-' in text[1:])}{MAX_EMAX}")


def _check(value: Any, of: Type, path: str) -> None:
    """Raise `Undecodable` where a value does not fit; null fits."""
    match of:
        case _ if value is None:
            return
        case Struct() | MapOf() if not isinstance(value, dict):
            raise _misfit(value, "an object", path)
        case ListOf() if not isinstance(value, list):
            raise _misfit(value, "a list", path)
        case Struct(fields):
            for field in fields:
                _check_field(value, field, f"{path}.{field.source}" if path else field.source)
        case ListOf(element):
            for number, item in enumerate(value):
                _check(item, element, f"{path}[{number}]")
        case MapOf(_, inner):
            for key, item in value.items():
                _check(item, inner, f"{path}{{{key}}}")
        case Held(kind) if not _fits(value, Primitive(kind)):
            raise _misfit(value, f"a value of type {kind}", path)
        case NumberOrBytes() if isinstance(value, str) and not _is_base64(value):
            raise _misfit(value, "a number, or bytes in base64", path)
        case _ if type(of) in (Primitive, Decimal) and not _fits(value, of):
            raise _misfit(value, "bytes in base64" if of == Primitive(Kind.BINARY) else f"a value of type {of}", path)


def _check_field(struct: dict[str, Any], field: Field, path: str) -> None:
    value = struct.get(field.source)
    if value is None and field.required and path == field.source:
        raise Undecodable("the required column is null, or the record does not have it", path=path)
    if value is None or field.as_json:
        return
    _check(value, field.type, path)
    if field.is_exact and field.type == Primitive(Kind.STRING) and not isinstance(value, str):
        raise _misfit(value, "a text, as the key and the order need", path)
    is_nanoseconds = isinstance(field.type, Held) and field.type.notation is Notation.NANOSECONDS
    if field.is_exact and ((is_nanoseconds and value % 1000) or _is_cut(value, field.type)):
        raise _misfit(value, "a time without a part of a microsecond, as the key and the order need", path)


def _is_cut(value: Any, of: Type) -> bool:
    is_time = isinstance(of, Held) or (isinstance(of, Primitive) and of.kind in WRITTEN)
    return is_time and isinstance(value, str) and re.search(PAST_MICROSECONDS, value) is not None


def _fits(value: Any, of: Type) -> bool:
    is_number = isinstance(value, int | Number) and not isinstance(value, bool)
    match of:
        case Primitive(Kind.BOOLEAN):
            return isinstance(value, bool)
        case Primitive(Kind.INT | Kind.LONG as kind):
            return is_number and -(2 ** _BITS[kind]) <= value < 2 ** _BITS[kind] and _shortest(value)[1] >= 0
        case Primitive(Kind.FLOAT | Kind.DOUBLE as kind):
            most = _INFINITE[kind]
            return value in _NO_NUMBERS if isinstance(value, str) else is_number and -most < value < most
        case Primitive(Kind.BINARY):
            return isinstance(value, str) and _is_base64(value)
        case Primitive(Kind.STRING):
            return not isinstance(value, str) or not _NO_TEXT.search(value)  # other values are their text
        case Primitive(kind) if kind in WRITTEN:
            return isinstance(value, str) and is_written(value, kind)
        case Decimal(precision, scale):
            return is_number and _is_decimal(Number(value), precision, scale)
    return True


def _is_decimal(number: Number, precision: int, scale: int) -> bool:
    """Return whether a number has no more digits than the type, before and after the point."""
    digits, exponent = _shortest(number)
    return -exponent <= scale and len(digits) + exponent <= precision - scale


def _shortest(number: int | Number) -> tuple[str, int]:
    """Return the digits of a number without zeros at their end, and their exponent. Methods of decimals round to 28 digits."""
    _, digits, exponent = Number(number).as_tuple()
    assert isinstance(exponent, int)
    shortest = "".join(map(str, digits)).rstrip("0")
    return shortest, exponent + len(digits) - len(shortest) if shortest else 0


def _is_base64(value: str) -> bool:
    """Return whether Spark reads a text as base64: without white space, padded, whatever comes after the padding."""
    octets, padding, _ = re.sub(r"[\x00-\x20]", "", value).partition("=")
    is_complete = len(octets) % 4 == 0 or (len(octets) % 4 > 1 and bool(padding))
    return is_complete and re.fullmatch("[A-Za-z0-9+/]*", octets) is not None


def _misfit(value: Any, wanted: str, path: str) -> Undecodable:
    shown = str(value) if isinstance(value, Number) else json.dumps(value, default=str)
    return Undecodable(
        f"{_WORDS[type(value)]} is not {wanted}", path=path, value=shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    )
