"""A Protobuf body by its wire format alone: its fields, and the byte at which it stops being Protobuf.

Without the message type, which needs a compiler: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from typing import Any

from frazil.dead_letters.diagnosis import Reader, Undecodable

SHOWN_BYTES = 64
_FIXED = {1: 8, 5: 4}


def protobuf_fields(body: bytes) -> list[dict[str, Any]]:
    """Return the fields in their order: number, wire type, and their value, numbers raw and bytes as text or hex.

    Raises `Undecodable`. A group, which only proto2 has, is two entries: its begin and its end.
    """
    fields: list[dict[str, Any]] = []
    groups: list[int] = []
    reader = Reader(body)
    while reader.at < len(body):
        begin, key = reader.at, reader.varint("")
        number, wire = key >> 3, key & 7
        path = str(number)
        if number == 0 or number >= 1 << 29:
            raise Undecodable(f"{number} is no field number", begin, path)
        value: Any
        match wire:
            case 0:
                value = reader.varint(path)
            case 1 | 5:
                value = reader.take(_FIXED[wire], path).hex()
            case 2:
                value = _shown(reader.take(reader.varint(path), path))
            case 3:
                groups.append(number)
                value = "group begins"
            case 4:
                if not groups or groups.pop() != number:
                    raise Undecodable("a group ends that did not begin", begin, path)
                value = "group ends"
            case _:
                raise Undecodable(f"{wire} is no wire type", begin, path)
        fields.append({"field": number, "wire_type": wire, "at": begin, "value": value})
    if groups:
        raise Undecodable("a group begins and does not end", len(body), str(groups[-1]))
    return fields


def _shown(value: bytes) -> str:
    part = value[:SHOWN_BYTES]
    try:
        shown = part.decode()
    except UnicodeDecodeError:
        shown = part.hex()
    return shown if len(value) <= SHOWN_BYTES else f"{shown}… ({len(value)} bytes)"
