"""Guesses of what the bytes of a topic's records are, from a few of them. A guess may be wrong; nothing but people uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from frazil.clients.registry.schemas import SchemaType
from frazil.schemas.avro.schema_fingerprint import MAGIC
from frazil.schemas.wire_format import Frame, parse

Header = tuple[str, bytes | None]
LARGEST_ID = 2**31 - 1
_HEAD_BYTES = len(MAGIC) + 8


class Form(StrEnum):
    """What bytes look like. `FRAMED` is a frame whose schema is not known."""

    NULL = "null"
    AVRO = "avro"
    JSON_SCHEMA = "json_schema"
    PROTOBUF = "protobuf"
    FRAMED = "framed"
    SINGLE_OBJECT = "avro single object"
    CONNECT_JSON = "connect_json"
    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"
    MIXED = "mixed"


_OF_TYPE = {SchemaType.AVRO: Form.AVRO, SchemaType.JSON: Form.JSON_SCHEMA, SchemaType.PROTOBUF: Form.PROTOBUF}


@dataclass(frozen=True, slots=True)
class Guess:
    """The form that all bytes have, apart from nulls, and how it shows. `forms` are those of a mix."""

    form: Form
    why: str
    forms: tuple[Form, ...] = ()

    def __str__(self) -> str:
        """The form; of a mix all of them."""
        return " and ".join(self.forms) if self.form is Form.MIXED else str(self.form)


def guess(
    values: Iterable[tuple[bytes | None, tuple[Header, ...]]],
    type_of: Callable[[int], SchemaType | None],
    *,
    is_key: bool = False,
) -> Guess | None:
    """Return what values, or keys, look like; None without records. `type_of` is the registry's type of a schema id."""
    found: dict[Form, str] = {}
    for value, headers in values:
        form, why = _one(value, headers, type_of, is_key=is_key)
        found.setdefault(form, why)
    several = {form: why for form, why in found.items() if form is not Form.NULL}
    if len(several) > 1:
        return Guess(Form.MIXED, "the records differ", tuple(several))
    return next((Guess(form, why) for form, why in (several or found).items()), None)


def schema_ids(values: Iterable[tuple[bytes | None, tuple[Header, ...]]], *, is_key: bool = False) -> set[int]:
    """Return the schema ids of frames, as the registry is to be asked for them."""
    frames = (parse(value, headers, key=is_key) for value, headers in values)
    found = {frame.schema_id for frame in frames if isinstance(frame, Frame) and frame.schema_id is not None}
    return {number for number in found if 0 < number <= LARGEST_ID}


def form_of(value: bytes | None, headers: tuple[Header, ...], type_of: Callable[[int], SchemaType | None]) -> Form:
    """Return what one value looks like."""
    return _one(value, headers, type_of, is_key=False)[0]


def _one(
    value: bytes | None, headers: tuple[Header, ...], type_of: Callable[[int], SchemaType | None], *, is_key: bool
) -> tuple[Form, str]:
    if value is None:
        return Form.NULL, "no bytes"
    frame = parse(value, headers, key=is_key)
    if isinstance(frame, Frame):
        if frame.schema_id is None:
            return Form.FRAMED, f"a header with the schema's GUID {frame.guid}"
        known = type_of(frame.schema_id) if 0 < frame.schema_id <= LARGEST_ID else None
        if known is not None:
            return _OF_TYPE[known], f"schema id {frame.schema_id}, of which the registry has a schema"
        if 0 < frame.schema_id <= LARGEST_ID:
            return Form.FRAMED, f"schema id {frame.schema_id}, if it is one; the registry does not say"
    if value.startswith(MAGIC) and len(value) >= _HEAD_BYTES:
        return Form.SINGLE_OBJECT, "C3 01 and a fingerprint"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return Form.BYTES, "no UTF-8, no frame"
    return _text(text)


def _text(text: str) -> tuple[Form, str]:
    """Return the form of a text. A number alone is a text: JSON and CSV have it too."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        return Form.CONNECT_JSON, "a JSON object with schema and payload"
    if isinstance(value, dict | list):
        return Form.JSON, f"a JSON {'object' if isinstance(value, dict) else 'array'}"
    if isinstance(value, str):
        return Form.JSON, "a JSON string"
    if text.isprintable() or all(character.isprintable() or character in "\t\r\n" for character in text):
        return Form.TEXT, "UTF-8"
    return Form.BYTES, "control characters"
