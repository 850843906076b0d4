"""The fingerprint of an Avro schema, by which single-object encoding names it.

https://avro.apache.org/docs/1.12.0/specification/#parsing-canonical-form-for-schemas and #schema-fingerprints there.
"""

from __future__ import annotations

import json
from typing import Any

from frazil.schemas.avro.schema import PRIMITIVES

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
    text = schema_text.strip()
    tree = text if text in PRIMITIVES else json.loads(text)
    return json.dumps(_Form().of(tree, ""), separators=(",", ":"), ensure_ascii=False)


def _row(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_EMPTY & -(byte & 1))
    return byte


_TABLE = [_row(byte) for byte in range(256)]


class _Form:
    """One walk over a schema; the names that are defined so far say which type a short name means."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def of(self, tree: Any, namespace: str) -> Any:
        if isinstance(tree, str):
            return self._reference(tree, namespace)
        if isinstance(tree, list):
            return [self.of(branch, namespace) for branch in tree]
        kind = tree["type"]
        match kind:
            case "array":
                return {"type": kind, "items": self.of(tree["items"], namespace)}
            case "map":
                return {"type": kind, "values": self.of(tree["values"], namespace)}
            case "record" | "error":
                full, inside = self._name(tree, namespace)
                fields = [{"name": f["name"], "type": self.of(f["type"], inside)} for f in tree["fields"]]
                return {"name": full, "type": "record", "fields": fields}
            case "enum":
                return {"name": self._name(tree, namespace)[0], "type": kind, "symbols": tree["symbols"]}
            case "fixed":
                return {"name": self._name(tree, namespace)[0], "type": kind, "size": tree["size"]}
        return self.of(kind, namespace)

    def _name(self, tree: dict[str, Any], namespace: str) -> tuple[str, str]:
        name = str(tree["name"])
        if "." in name:
            namespace, _, name = name.rpartition(".")
        elif isinstance(tree.get("namespace"), str):
            namespace = tree["namespace"]
        full = f"{namespace}.{name}" if namespace else name
        self._names.add(full)
        return full, namespace

    def _reference(self, name: str, namespace: str) -> str:
        if name in PRIMITIVES:
            return name
        full = f"{namespace}.{name}" if namespace and "." not in name else name
        return (full if full in self._names else name).lstrip(".")
