"""Only JSON without a schema elsewhere is sampled; other records are named with the format to declare."""

from __future__ import annotations

import pytest

from frazil.clients.kafka_records import Record
from frazil.clients.registry.schemas import SchemaType
from frazil.errors import InvalidInput
from frazil.schemas.wire_format import prefixed
from frazil.status.topic_listing import json_lines

TYPES = {1: SchemaType.AVRO, 2: SchemaType.JSON, 3: SchemaType.PROTOBUF}
OBJECT = b'{"a": 1}'


def record(value: bytes | None, offset: int = 0) -> Record:
    return Record(2, offset, None, value, 0, 0, ())


def test_values_are_lines_with_their_place_and_tombstones_are_left_out() -> None:
    found = json_lines("orders", [record(OBJECT, 7), record(None, 8), record(b"\xff{", 9)])
    assert [(line.place, line.text) for line in found] == [
        ("partition 2, offset 7", '{"a": 1}'),
        ("partition 2, offset 9", "\ufffd{"),
    ]
    assert json_lines("orders", []) == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (prefixed(1, b"\x02"), 'values are avro, and only json is sampled. Declare value="avro"'),
        (prefixed(2, OBJECT), 'values are json_schema, and only json is sampled. Declare value="json_schema"'),
        (prefixed(3, b"\x08\x01", (0,)), 'Declare value="protobuf"'),
        (prefixed(9, b"\x02"), "values are framed"),
        (b"\xc3\x01" + b"\x80" * 8, 'framing="single_object"'),
        (b'{"schema": {}, "payload": {}}', 'Declare value="connect_json"'),
        (b"a text", 'values are text, and only json is sampled. Declare value="text"'),
        (b"\xff\xff", 'values are bytes, and only json is sampled. Declare value="bytes"'),
    ],
)
def test_another_format_is_refused_with_its_name(value: bytes, why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        json_lines("orders", [record(value)], TYPES.get)
    assert why in str(refused.value)


def test_a_mix_with_framed_records_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"values are json and avro, and only json is sampled"):
        json_lines("orders", [record(OBJECT), record(prefixed(1, b"\x02")), record(OBJECT)], TYPES.get)
