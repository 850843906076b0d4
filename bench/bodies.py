"""The fast generation of a shape's records: 20,000 distinct bodies are encoded once, each record gets its own id and time.

A body's fields `id` and `at` are the first in every format, so that a record consists of its own head and a
tail from the pool. Ids are therefore distinct; the other columns have the distinct values of 20,000 rows.
"""

from __future__ import annotations

import io
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import fastavro

from bench.shapes import Format, Shape

POOL = 20_000
BEGIN_MS = 1_793_534_400_000  # 2026-11-01T12:00:00Z; record i is i milliseconds later

Head = Callable[[int], bytes]


def pool(shape: Shape, *, seed: int, size: int = POOL) -> tuple[Head, list[bytes], list[bytes]]:
    """Return the function of record i's head (after the frame), the tails and the keys."""
    listed = drawn(shape, seed=seed, size=size)
    if shape.changes:
        return _change_head, _changes(shape, listed), [_key(row) for row in listed]
    tails = {Format.AVRO: _avro, Format.JSON: _json, Format.PROTOBUF: _protobuf}[shape.format](shape, listed)
    return HEADS[shape.format], tails, [_key(row) for row in listed]


def drawn(shape: Shape, *, seed: int, size: int) -> list[dict[str, Any]]:
    """Return the rows of the tails, without id and time."""
    made = shape.rows(random.Random(f"{seed} {shape.name}"))
    return [next(made) for _ in range(size)]


def _key(row: dict[str, Any]) -> bytes:
    user = row.get("user", row.get("c04_account"))
    return f"u{user['id'] if isinstance(user, dict) else user}".encode()


def varint(number: int) -> bytes:
    """Encode a number as Avro (after zigzag) and Protobuf do."""
    if number > 0x3FFF:  # what is above the lowest 14 bits seldom changes from one record to the next
        return _LOWEST[number & 0x3FFF] + _high(number >> 14)
    return bytes((number & 0x7F | 0x80, number >> 7)) if number > 0x7F else bytes((number,))


@lru_cache(maxsize=64)
def _high(number: int) -> bytes:
    return varint(number)


_LOWEST = [bytes((low & 0x7F | 0x80, low >> 7 | 0x80)) for low in range(0x4000)]


def _avro_head(number: int) -> bytes:
    return varint(number << 1) + varint((BEGIN_MS + number) << 1)


def _change_head(number: int) -> bytes:
    return b"\0\2" + _avro_head(number)  # no row before, and one after


def _json_head(number: int) -> bytes:
    second, millisecond = divmod(BEGIN_MS + number, 1000)
    return b'{"id":%d,"at":"%s.%03dZ",' % (number, _second(second), millisecond)


@lru_cache(maxsize=64)
def _second(second: int) -> bytes:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()


HEADS: dict[Format, Head] = {
    Format.AVRO: _avro_head,
    Format.JSON: _json_head,
    Format.PROTOBUF: lambda number: b"\x08" + varint(number) + b"\x10" + varint(BEGIN_MS + number),
}


def _json(shape: Shape, listed: Sequence[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row, separators=(",", ":")).encode()[1:] for row in listed]


def _avro(shape: Shape, listed: Sequence[dict[str, Any]]) -> list[bytes]:
    schema = json.loads(shape.schema)
    rest = fastavro.parse_schema({**schema, "fields": schema["fields"][2:]})
    tails = []
    for row in listed:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, rest, row)
        tails.append(buffer.getvalue())
    return tails


def _changes(shape: Shape, listed: Sequence[dict[str, Any]]) -> list[bytes]:
    """Return what follows `id` and `at` of the row in an event: the other columns, the source block, the operation and its times."""
    fields = json.loads(shape.schema)["fields"]
    row = next(kind for kind in fields[0]["type"] if kind != "null")
    rest = {"type": "record", "name": "Rest", "fields": [*row["fields"][2:], *fields[2:]]}
    source = {"version": "3.6.0.Final", "connector": "postgresql", "name": "bench", "snapshot": "false", "db": "bench"}
    source |= {"schema": "public", "table": "orders", "sequence": '["24023128","24023128"]'}
    parsed, tails = fastavro.parse_schema(rest), []
    for number, values in enumerate(listed):
        at = BEGIN_MS + number
        place = {
            **source,
            "ts_ms": at,
            "ts_us": at * 1000,
            "ts_ns": at * 1_000_000,
            "txId": number,
            "lsn": number * 152,
        }
        event = {**values, "source": place, "op": "u", "ts_ms": at, "ts_us": at * 1000, "ts_ns": at * 1_000_000}
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, event)
        tails.append(buffer.getvalue())
    return tails


def _protobuf(shape: Shape, listed: Sequence[dict[str, Any]]) -> list[bytes]:
    message = _message(shape.schema)
    return [message(**{k: v for k, v in row.items() if v is not None}).SerializeToString() for row in listed]


def _message(text: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "order.proto").write_text(text)
        out = Path(folder) / "set"
        assert protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={out}", "order.proto"]) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    known = descriptor_pool.DescriptorPool()
    known.Add(files.file[0])
    return message_factory.GetMessageClass(known.FindMessageTypeByName("bench.Order"))
