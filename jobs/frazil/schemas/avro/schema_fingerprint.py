"""The fingerprint of an Avro schema, by which single-object encoding names it.

https://avro.apache.org/docs/1.12.0/specification/#parsing-canonical-form-for-schemas and #schema-fingerprints there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from frazil.schemas.avro.parser import parse
from frazil.schemas.avro.schema import Array, Enum, Fixed, Map, Named, NamedType, Node, Record, Simple, Union

MAGIC = b"\xc3\x01"
"""The bytes before a fingerprint."""
HEAD_BYTES = 10
"""The length of both."""
_EMPTY = 0xC15D213AA4D7A795


def fingerprint(schema_text: str) -> bytes:
    """Return the CRC-64-AVRO of the canonical form of a schema that `parse` reads, in the order of its bytes in a record."""
    value = _EMPTY
    for byte in canonical_form(schema_text).encode():
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "little")


def head(schema_text: str) -> bytes:
    """Return the bytes before the body of a record that single-object encoding says is of this schema."""
    return MAGIC + fingerprint(schema_text)


def canonical_form(schema_text: str) -> str:
    """Return the Parsing Canonical Form of a schema that `parse` reads: all that its encoding depends on."""
    schema = parse(schema_text)
    root = schema.root.fields[0].type if schema.is_single_value else Named(schema.root.name)
    return json.dumps(_form(root, schema.types, set()), separators=(",", ":"), ensure_ascii=False)


def _form(node: Node, types: Mapping[str, NamedType], defined: set[str]) -> Any:
    match node:
        case Simple(name):
            return name
        case Array(items):
            return {"type": "array", "items": _form(items, types, defined)}
        case Map(values):
            return {"type": "map", "values": _form(values, types, defined)}
        case Union(branches):
            return [_form(branch, types, defined) for branch in branches]
        case Named(name) if name in defined:
            return name
        case Named(name):
            defined.add(name)
            match types[name]:
                case Record(_, fields):
                    members = [{"name": f.name, "type": _form(f.type, types, defined)} for f in fields]
                    return {"name": name, "type": "record", "fields": members}
                case Enum(_, symbols):
                    return {"name": name, "type": "enum", "symbols": list(symbols)}
                case Fixed(_, size):
                    return {"name": name, "type": "fixed", "size": size}


def _row(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_EMPTY & -(byte & 1))
    return byte


_TABLE = [_row(byte) for byte in range(256)]
