"""Bytes of records show their format, or two that they may have; a guess never raises."""

from __future__ import annotations

import random

import pytest

from frazil.clients.registry.schemas import SchemaType
from frazil.schemas.wire_format import VALUE_HEADER, guid_header, prefixed
from frazil.status.topic_listing import Form, guess, schema_ids

TYPES = {1: SchemaType.AVRO, 2: SchemaType.JSON, 3: SchemaType.PROTOBUF}
HEADER = ((VALUE_HEADER, guid_header("00000000-0000-0000-0000-000000000001")),)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, Form.NULL),
        (b"", Form.TEXT),
        (prefixed(1, b"\x02"), Form.AVRO),
        (prefixed(2, b"{}"), Form.JSON_SCHEMA),
        (prefixed(3, b"\x08\x01", (0,)), Form.PROTOBUF),
        (prefixed(4, b"\x02"), Form.FRAMED),
        (b"\0\xff\xff\xff\xff\x01", Form.BYTES),
        (b"\xc3\x01" + b"\x80" * 8, Form.SINGLE_OBJECT),
        (b"\xc3\x01" + b"\x80" * 7, Form.BYTES),
        (b' {"a": 1}\n', Form.JSON),
        (b"[1]", Form.JSON),
        (b'"a"', Form.JSON),
        (b'{"schema": null, "payload": {"a": 1}}', Form.CONNECT_JSON),
        (b'{"schema": 1, "payload": 2, "x": 3}', Form.JSON),
        (b"17", Form.TEXT),
        (b"{", Form.TEXT),
        ("Čeněk, 1\r\n".encode(), Form.TEXT),
        (b"\x08\x96\x01", Form.BYTES),
        (b"a\x00b", Form.BYTES),
        (b"[" * 100_000, Form.TEXT),
    ],
    ids=repr,
)
def test_bytes_show_their_format(value: bytes | None, form: Form) -> None:
    found = guess([(value, ())], TYPES.get)
    assert found == (form,)


def test_a_header_names_the_schema_too() -> None:
    found = guess([(b"\x02", HEADER)], TYPES.get)
    assert found == (Form.FRAMED,)
    assert schema_ids([(b"\x02", HEADER), (prefixed(7, b""), ()), (b"\0\xff\xff\xff\xff", ())]) == {7}


def test_records_that_differ_are_a_mix_and_nulls_are_none() -> None:
    assert guess([(b"{}", ()), (None, ()), (b"[]", ())], TYPES.get) == (Form.JSON,)
    assert guess([(b"{}", ()), (b"x", ())], TYPES.get) == (Form.JSON, Form.TEXT)
    assert guess([], TYPES.get) == ()


def test_no_bytes_raise() -> None:
    seeded = random.Random(7)
    for _ in range(3000):
        value = bytes(seeded.choice(b'\0\x01\xc3{}[]"1a\xff') for _ in range(seeded.randrange(12)))
        assert len(guess([(value, ())], TYPES.get)) == 1
