"""A declaration as JSON: the fields of its dataclasses, by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


def to_json(value: Any) -> Any:
    """Return the JSON value of a declared value.

    A dataclass is an object of all its fields, defaults too, so that a document means the same when a default changes;
    a field that is None is omitted. A dataclass that is one of several says which by its `kind`, as `type`.
    """
    if is_dataclass(value) and not isinstance(value, type):
        kind = getattr(value, "kind", None)
        members = {field.name: getattr(value, field.name) for field in fields(value)}
        tag = {} if kind is None else {"type": kind}
        return tag | {name: to_json(member) for name, member in members.items() if member is not None}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): to_json(member) for key, member in value.items()}
    if isinstance(value, tuple):
        return [to_json(member) for member in value]
    return value


def canonical(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of a document: sorted keys, no spaces, UTF-8, no newline. Raises TypeError on a float."""
    _refuse_floats(document)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def digest(written: bytes) -> str:
    """Return the name of a document: the SHA-256 of its canonical bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(written).hexdigest()


def _refuse_floats(value: Any) -> None:
    if isinstance(value, float):
        raise TypeError(f"a document holds no floats, their text is not one: {value!r}")
    if isinstance(value, Mapping):
        for member in value.values():
            _refuse_floats(member)
    elif isinstance(value, list | tuple):
        for member in value:
            _refuse_floats(member)
