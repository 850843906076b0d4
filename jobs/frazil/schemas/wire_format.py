"""The wire format: how a record names the schema that wrote it.

Two places can hold it, and the header wins, as in Confluent's own clients (their "dual" deserializer is the default):

| where | bytes | what |
|---|---|---|
| header `__value_schema_id` | `01` + 16 bytes | the schema's GUID, big-endian; the complete value is the body |
| the same header | `00` + 4 bytes | the schema's id, unsigned big-endian; the complete value is the body |
| first bytes of the value | `00` + 4 bytes | the schema's id, unsigned big-endian; the rest is the body |

For a key the header is `__key_schema_id`. For Protobuf the id or GUID is followed, in the same place, by the *message
index*: a zigzag varint *n* and *n* zigzag varints, the path to the message type inside its file; *n* = 0 is short for
the path (0), the file's first message.

The rules in the order they apply. The data path has them as Spark expressions; both must agree,
`tests/schemas/frames.json` holds the cases that prove it.

1. The value is null: `NULL_VALUE` (a tombstone; what it means is the declaration's choice), whatever the headers say.
2. The *last* header of the name counts, as Kafka's `lastHeader` does; one with a null value counts as absent.
3. In the header: no bytes, or fewer than the first byte calls for, are `HEADER_TOO_SHORT`; a first byte other than 0 or
   1 is `HEADER_WRONG_MAGIC`. Bytes beyond the id, GUID or message index are ignored, as the clients do.
4. In the value: no bytes are `EMPTY`; a first byte other than 0 is `WRONG_MAGIC`, however short the value; 1 to 4 bytes
   that begin with 0 are `TOO_SHORT`. Five bytes are a frame with an empty body, which is a valid record of an Avro
   schema without fields. A GUID in the value (first byte 1) is `WRONG_MAGIC`: no client writes it.
5. Protobuf only: bytes that end inside the message index are `TRUNCATED_MESSAGE_INDEX`; a count or an index that is
   negative, a varint of more than five bytes, or a count above 1,000 are `BAD_MESSAGE_INDEX`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

VALUE_HEADER = "__value_schema_id"
"""The header that names a value's schema."""

KEY_HEADER = "__key_schema_id"
"""The header that names a key's schema."""

ID_MAGIC = 0
GUID_MAGIC = 1

PREFIX_BYTES = 5
"""The length of the frame in a value, without a message index."""

GUID_BYTES = 17
"""The length of the frame in a header that holds a GUID, without a message index."""

MESSAGE_INDEX_LIMIT = 1_000
"""The deepest path to a nested message type that is read; Confluent's clients allow 100,000, protoc nests about 100."""

VARINT_BYTES = 5
"""The longest varint of a 32-bit number."""


class FrameProblem(StrEnum):
    """Why bytes are not a frame. The header's problems are apart from the value's: another producer setting causes
    them.
    """

    NULL_VALUE = "null_value"
    EMPTY = "empty"
    TOO_SHORT = "too_short"
    WRONG_MAGIC = "wrong_magic"
    HEADER_TOO_SHORT = "header_too_short"
    HEADER_WRONG_MAGIC = "header_wrong_magic"
    TRUNCATED_MESSAGE_INDEX = "truncated_message_index"
    BAD_MESSAGE_INDEX = "bad_message_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The schema that a record names, and its body: exactly one of `schema_id` and `guid` is set.

    `guid` is in its usual text form, lower case with dashes. `message_index` is the path to a Protobuf message type,
    and empty for other formats.
    """

    schema_id: int | None = None
    guid: str | None = None
    message_index: tuple[int, ...] = ()
    body: bytes = b""


def parse(
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    *,
    protobuf: bool = False,
    key: bool = False,
) -> Frame | FrameProblem:
    """Read the frame of a value (or a key, with `key`), by the rules above. Bytes never raise: a problem is a value."""
    if value is None:
        return FrameProblem.NULL_VALUE
    name = KEY_HEADER if key else VALUE_HEADER
    header = next((held for known, held in reversed(headers) if known == name), None)
    in_header, named = header is not None, value if header is None else header
    if not named:
        return FrameProblem.HEADER_TOO_SHORT if in_header else FrameProblem.EMPTY
    if named[0] != ID_MAGIC and not (in_header and named[0] == GUID_MAGIC):
        return FrameProblem.HEADER_WRONG_MAGIC if in_header else FrameProblem.WRONG_MAGIC
    end = PREFIX_BYTES if named[0] == ID_MAGIC else GUID_BYTES
    if len(named) < end:
        return FrameProblem.HEADER_TOO_SHORT if in_header else FrameProblem.TOO_SHORT
    index = message_index(named, end) if protobuf else ((), end)
    if isinstance(index, FrameProblem):
        return index
    path, after = index
    body = value if in_header else value[after:]
    if named[0] == ID_MAGIC:
        return Frame(schema_id=int.from_bytes(named[1:end], "big"), message_index=path, body=body)
    return Frame(guid=str(uuid.UUID(bytes=named[1:end])), message_index=path, body=body)


def prefixed(schema_id: int, body: bytes, path: Sequence[int] | None = None) -> bytes:
    """Return the value that holds `body` framed by an id; with `path`, a Protobuf message index, as Confluent's clients do."""
    return bytes([ID_MAGIC]) + schema_id.to_bytes(4, "big") + _index_bytes(path) + body


def guid_header(guid: str, path: Sequence[int] | None = None) -> bytes:
    """Return the header's value that names a schema by its GUID; with `path`, a Protobuf message index."""
    return bytes([GUID_MAGIC]) + uuid.UUID(guid).bytes + _index_bytes(path)


def message_index(data: bytes, start: int) -> tuple[tuple[int, ...], int] | FrameProblem:
    """Return the message index that begins at `start`, and where the bytes after it begin."""
    count = _varint(data, start)
    if isinstance(count, FrameProblem):
        return count
    length, end = count
    if length == 0:
        return (0,), end
    if not 0 < length <= MESSAGE_INDEX_LIMIT:
        return FrameProblem.BAD_MESSAGE_INDEX
    path: list[int] = []
    for _ in range(length):
        step = _varint(data, end)
        if isinstance(step, FrameProblem):
            return step
        number, end = step
        if number < 0:
            return FrameProblem.BAD_MESSAGE_INDEX
        path.append(number)
    return tuple(path), end


def is_padded(index: bytes) -> bool:
    """Return whether a number of a message index is written in more bytes than it needs, so that its path has many spellings."""
    return any(byte & 0x80 and not after for byte, after in pairwise(index))


def _varint(data: bytes, start: int) -> tuple[int, int] | FrameProblem:
    """Return a zigzag varint at `start`, and where the bytes after it begin."""
    number = 0
    for position in range(start, start + VARINT_BYTES):
        if position >= len(data):
            return FrameProblem.TRUNCATED_MESSAGE_INDEX
        number |= (data[position] & 0x7F) << (7 * (position - start))
        if not data[position] & 0x80:
            return (number >> 1) ^ -(number & 1), position + 1
    return FrameProblem.BAD_MESSAGE_INDEX


def _index_bytes(path: Sequence[int] | None) -> bytes:
    """Return a message index in bytes; none for no path."""
    if path is None:
        return b""
    if tuple(path) == (0,):
        return b"\0"
    return b"".join(varint(number << 1) for number in (len(path), *path))  # zigzag


def varint(number: int) -> bytes:
    """Return a number that is not negative as a varint."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
