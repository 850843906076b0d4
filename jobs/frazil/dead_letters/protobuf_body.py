"""A Protobuf body by its wire format alone: its fields, and the byte at which it stops being Protobuf.

Without the message type, which needs a compiler: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from typing import Any

from frazil.dead_letters.diagnosis import Undecodable

VARINT_BYTES = 10
SHOWN_BYTES = 64
_FIXED = {1: 8, 5: 4}


def protobuf_fields(body: bytes) -> list[dict[str, Any]]:
    """Return the fields in their order: number, wire type, and their value, numbers raw and bytes as text or hex.

    Raises `Undecodable`. A group, which only proto2 has, is two entries: its begin and its end.
    """
    fields: list[dict[str, Any]] = []
    at = 0
    while at < len(body):
        begin = at
        key, at = _varint(body, at, "")
        number, wire = key >> 3, key & 7
        path = f"field {number}"
        if number == 0 or number >= 1 << 29:
            raise Undecodable(f"{number} is no field number", begin, path)
        value: Any = None
        match wire:
            case 0:
                value, at = _varint(body, at, path)
            case 1 | 5:
                value, at = _taken(body, at, _FIXED[wire], path)
                value = value.hex()
            case 2:
                length, at = _varint(body, at, path)
                value, at = _taken(body, at, length, path)
                value = _shown(value)
            case 3 | 4:
                value = "group begins" if wire == 3 else "group ends"
            case _:
                raise Undecodable(f"{wire} is no wire type", begin, path)
        fields.append({"field": number, "wire_type": wire, "at": begin, "value": value})
    return fields


def _varint(body: bytes, at: int, path: str) -> tuple[int, int]:
    number = 0
    for position in range(at, at + VARINT_BYTES):
        if position >= len(body):
            raise Undecodable("it ends inside a number", at, path)
        number |= (body[position] & 0x7F) << (7 * (position - at))
        if not body[position] & 0x80:
            return number, position + 1
    raise Undecodable(f"a number of more than {VARINT_BYTES} bytes", at, path)


def _taken(body: bytes, at: int, count: int, path: str) -> tuple[bytes, int]:
    if count > len(body) - at:
        raise Undecodable(f"it ends where {count} bytes are due and {len(body) - at} are left", at, path)
    return body[at : at + count], at + count


def _shown(value: bytes) -> str:
    part = value[:SHOWN_BYTES]
    try:
        shown = part.decode()
    except UnicodeDecodeError:
        shown = part.hex()
    return shown if len(value) <= SHOWN_BYTES else f"{shown}… ({len(value)} bytes)"
