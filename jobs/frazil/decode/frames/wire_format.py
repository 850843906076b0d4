"""The rules of `schemas/wire_format.py` as Spark expressions: which bytes name a record's schema, and which are its body.

The *frame* here is the bytes that name the schema, in one form for the header and the value: `00` and the id, or `01` and the
GUID, and for Protobuf the message index after it. Equal frames mean one and the same schema and message type.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.schemas.wire_format import GUID_BYTES, ID_MAGIC, PREFIX_BYTES, VARINT_BYTES

DEPTH = 32
"""The deepest message index that is read; a deeper one is a bad one. Protoc allows some more, but real types are never so deep."""

_ALL = 2_147_483_647
_ID, _GUID = bytearray(b"\x00"), bytearray(b"\x01")
_INDEX_BYTES = VARINT_BYTES * (DEPTH + 1)


def _overlong(number: int) -> str:
    """Return a regular expression for a number below 128 as a varint, padded ones included."""
    return rf"(?:\x{number:02x}|\x{number | 0x80:02x}\x80{{0,{VARINT_BYTES - 2}}}\x00)"


def _not_negative() -> str:
    """Return a regular expression for a zigzag varint that is not negative: its first byte is even."""
    short, long = ("".join(rf"\x{byte:02x}" for byte in range(start, start + 0x80, 2)) for start in (0x00, 0x80))
    return rf"(?:[{short}]|[{long}][\x80-\xff]{{0,{VARINT_BYTES - 2}}}[\x00-\x7f])"


_INDEX = "^(?:" + "|".join(f"{_overlong(2 * n)}{_not_negative()}{{{n}}}" for n in range(DEPTH + 1)) + ")"


def header(headers: Column, name: str) -> Column:
    """Return the value of the last header of this name; null if there is none, or it is null."""
    keys, values = headers["key"], headers["value"]
    after = F.array_position(F.reverse(keys), name).cast("int") - 1
    return F.when(F.array_contains(keys, name), F.get(F.reverse(values), after))


def frame(value: Column, in_header: Column, *, protobuf: bool = False) -> Column:
    """Return the frame of a value, or of a key; null if it has none, for which `problem` is why."""
    named = F.coalesce(in_header, value)
    magic, length = F.substring(named, 1, 1), F.length(named)
    head = F.when((magic == F.lit(_ID)) & (length >= PREFIX_BYTES), F.lit(PREFIX_BYTES))
    head = head.when(in_header.isNotNull() & (magic == F.lit(_GUID)) & (length >= GUID_BYTES), F.lit(GUID_BYTES))
    if protobuf:
        index = F.substring(named, head + 1, F.lit(_INDEX_BYTES))
        found = F.length(F.regexp_extract(F.decode(index, "ISO-8859-1"), _INDEX, 0))
        is_first = F.substring(named, head + 1, F.lit(1)) == F.lit(_ID)  # nearly always; spares the expression
        head = head + F.when(is_first, F.lit(1)).when(found > 0, found)
    return F.when(value.isNotNull(), F.substring(named, F.lit(1), head))


def body(value: Column, in_header: Column, framed: Column) -> Column:
    """Return the bytes after the frame `framed`; the complete value if a header holds the frame."""
    return F.when(in_header.isNotNull(), value).otherwise(F.substring(value, F.length(framed) + 1, F.lit(_ALL)))


def schema_id(value: Column, in_header: Column) -> Column:
    """Return the schema id that the bytes name, whether or not the rest is a frame; null for a GUID, and for other bytes."""
    named = F.coalesce(in_header, value)
    number = F.conv(F.hex(F.substring(named, 2, 4)), 16, 10).cast("long")
    return F.when((F.length(named) >= PREFIX_BYTES) & (F.substring(named, 1, 1) == F.lit(_ID)), number)


def begins_as_registered(value: Column) -> Column:
    """Return whether bytes begin with what may be a registry's frame: byte 0 and a schema id."""
    return (F.length(value) >= PREFIX_BYTES) & (F.substring(value, 1, 1) == F.lit(bytearray([ID_MAGIC])))


def begins_with_small_id(value: Column) -> Column:
    """Return whether that is so and the id has at most 24 bits and is not 0, as registries count them.

    Many bodies begin with 0, such as change events without `before`, and to read each of them twice would take twice the time.
    """
    none = F.substring(value, 2, PREFIX_BYTES - 1) == F.lit(bytearray(PREFIX_BYTES - 1))
    return begins_as_registered(value) & (F.substring(value, 2, 1) == F.lit(bytearray([0]))) & ~none
