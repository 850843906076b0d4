"""A Protobuf body by its wire format alone."""

from __future__ import annotations

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from frazil.dead_letters.diagnosis import Undecodable
from frazil.dead_letters.protobuf_body import protobuf_fields


def test_what_protobuf_writes_is_told_field_by_field() -> None:
    body = Timestamp(seconds=1_700_000_000, nanos=5).SerializeToString()
    assert protobuf_fields(body) == [
        {"field": 1, "wire_type": 0, "at": 0, "value": 1_700_000_000},
        {"field": 2, "wire_type": 0, "at": 6, "value": 5},
    ]


def test_bytes_are_shown_as_text_or_hex_and_long_ones_cut() -> None:
    told = protobuf_fields(b"\x0a\x02hi\x12\x02\xff\xfe\x1a\x64" + b"x" * 100)
    assert [f["value"] for f in told] == ["hi", "fffe", "x" * 64 + "… (100 bytes)"]


def test_a_nested_message_is_its_bytes() -> None:
    message = Struct()
    message.update({"a": 1.5})
    (field,) = protobuf_fields(message.SerializeToString())
    assert (field["field"], field["wire_type"]) == (1, 2)


@pytest.mark.parametrize(
    ("body", "what", "at", "path"),
    [
        (b"\x08", "it ends inside a number", 1, "1"),
        (b"\x08\x80", "it ends inside a number", 1, "1"),
        (b"\x08" + b"\xff" * 11, "a number of more than 10 bytes", 1, "1"),
        (b"\x00", "0 is no field number", 0, "0"),
        (b"\x0b\x10\x01", "a group begins and does not end", 3, "1"),
        (b"\x0b\x14", "a group ends that did not begin", 1, "2"),
        (b"\x0c", "a group ends that did not begin", 0, "1"),
        (b"\x0f", "7 is no wire type", 0, "1"),
        (b"\x08\x01\x12\x05ab", "it ends where 5 bytes are due and 2 are left", 4, "2"),
        (b"\x0d\x01", "it ends where 4 bytes are due and 1 are left", 1, "1"),
    ],
)
def test_where_it_stops_being_protobuf_is_told(body: bytes, what: str, at: int, path: str) -> None:
    with pytest.raises(Undecodable) as raised:
        protobuf_fields(body)
    assert (raised.value.what, raised.value.at, raised.value.path) == (what, at, path)
