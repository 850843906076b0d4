"""Protobuf as JSON text (https://protobuf.dev/programming-guides/json/), by the official library, value by value."""

from __future__ import annotations

import base64
import json
import math
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf.json_format import Error as JsonError
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from frazil.decode.protobuf.official import pool_of
from frazil.decode.protobuf.projection import Column


def json_text(occurrences: pa.Array, column: Column, schema: bytes) -> pa.Array:
    """Return the JSON text of a field of messages: `occurrences` has the bytes of each of its occurrences in a record.

    The field is read as part of its own message, so that Protobuf's rules hold for what occurs several times. Null if a field that
    is no list and no map does not occur. Raises `ValueError` if the bytes are no such messages, or JSON has no text for them.
    """
    message, name = column.source
    described = pool_of(schema).FindMessageTypeByName(message)
    field, kind = described.fields_by_name[name], GetMessageClass(described)
    tag = _varint(field.number << 3 | 2)

    def text(bodies: list[bytes] | None) -> str | None:
        if not bodies and not field.is_repeated:
            return None
        around = kind.FromString(b"".join(tag + _varint(len(body)) + body for body in bodies or ()))
        made = MessageToDict(around, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        return _text(made[name])

    try:
        return pa.array([text(bodies) for bodies in occurrences.to_pylist()], pa.string())
    except (DecodeError, JsonError, TypeError) as problem:  # TypeError: an `Any` of a type that is not known
        raise ValueError(str(problem)) from problem


def json_list(lists: pa.Array, *, is_wide: bool) -> pa.Array:
    """Return the JSON text of lists of scalars; `is_wide` says that they are integers of 64 bits."""
    return pa.array([_text([_scalar(v, is_wide=is_wide) for v in values]) for values in lists.to_pylist()], pa.string())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _scalar(value: Any, *, is_wide: bool) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if is_wide:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


@lru_cache(maxsize=1024)
def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
