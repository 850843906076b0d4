"""An Avro body in pure Python agrees with what wrote it, and tells byte and field where it stops."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.dead_letters.avro_body import MOST_VALUES, avro_value
from frazil.dead_letters.diagnosis import Undecodable, attempt
from frazil.errors import UnreadableSchema
from frazil.schemas import avro as avro_schemas
from tests.support import shop

ROW: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": "int"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "ratio", "type": "double"},
        {"name": "is_new", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}}},
        {"name": "tags", "type": {"type": "map", "values": "float"}},
    ],
}  # fmt: skip
VALUE = {
    "id": -5,
    "small": 7,
    "name": "grüße",
    "ratio": 0.25,
    "is_new": True,
    "raw": b"\x01\x02",
    "kind": "B",
    "hash": b"\xab\xcd",
    "lines": [{"sku": "a"}, {"sku": "b"}],
    "tags": {"x": 1.5},
}


def of(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}


def decoded(body: bytes, schema: dict[str, Any]) -> Any:
    return avro_value(body, avro_schemas.parse(json.dumps(schema), {}))


def problem(body: bytes, kind: Any) -> tuple[str, int | None, str]:
    with pytest.raises(Undecodable) as raised:
        decoded(body, of(kind))
    return raised.value.what, raised.value.at, raised.value.path


def test_every_type_is_read_as_it_was_written() -> None:
    assert decoded(shop.avro(ROW, VALUE), ROW) == {**VALUE, "raw": "0102", "hash": "abcd"}


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_long_is_read(number: int) -> None:
    assert decoded(shop.avro(of("long"), {"f": number}), of("long")) == {"f": number}


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        (b"", "long", ("it ends inside a number", 0, "f")),
        (b"\xff" * 11, "long", ("a number of more than 10 bytes", 0, "f")),
        (b"\x80\x80\x80\x80\x10", "int", ("2147483648 does not fit an int", 0, "f")),
        (b"\x02", "boolean", ("byte 0x02 is no boolean", 0, "f")),
        (b"\x01", "string", ("a length of -1", 0, "f")),
        (b"\x0aab", "string", ("it ends where 5 bytes are due and 2 are left", 1, "f")),
        (b"\x04a\xff", "string", ("a string that is no UTF-8: invalid start byte", 2, "f")),
        (b"\x06", ["null", "long"], ("branch 3 of a union of 2", 0, "f")),
        (b"\x04", {"type": "enum", "name": "K", "symbols": ["A"]}, ("symbol 2 of an enum of 1", 0, "f")),
        (b"\x02\x09", {"type": "array", "items": "string"}, ("a length of -5", 1, "f[0]")),
        (b"\x02\x02k\x07", {"type": "map", "values": "string"}, ("a length of -4", 3, "f{k}")),
        (b"\x02\x00\x00", "long", ("2 bytes follow the value", 1, "")),
    ],
)
def test_where_it_stops_being_its_schemas_is_told(body: bytes, kind: Any, told: tuple[str, int, str]) -> None:
    assert problem(body, kind) == told


def test_an_array_in_blocks_with_their_sizes_is_read() -> None:
    # -2 items, of 2 bytes; then 1 item; then the end
    assert decoded(b"\x03\x04\x02\x04\x02\x06\x00", of({"type": "array", "items": "long"})) == {"f": [1, 2, 3]}


def test_garbage_that_asks_for_endless_items_ends_soon() -> None:
    block = b"\x80\x89\x7a" + bytes(1_000_000)  # 1,000,000 times false
    what, at, path = problem(block * 2, {"type": "array", "items": "boolean"})
    assert what.startswith(f"it has more than {MOST_VALUES:,} values")
    assert path.startswith("f[")
    what, at, path = problem(b"\x80\x89\x7a" + bytes(9), {"type": "array", "items": "boolean"})
    assert (what, at, path) == ("a block of 1,000,000 items, and 9 bytes are left", 0, "f")


def test_a_value_nested_deeper_than_python_goes_is_told() -> None:
    tree = {"type": "record", "name": "T", "fields": [{"name": "t", "type": ["null", "T"]}]}
    parsed = avro_schemas.parse(json.dumps(tree), {})
    assert attempt(b"\x02" * 100_000 + b"\x00", lambda body: avro_value(body, parsed)).what == "it is nested too deeply"


@given(st.binary(max_size=60))
def test_no_bytes_make_it_raise_anything_else(body: bytes) -> None:
    parsed = avro_schemas.parse(json.dumps(ROW), {})
    found = attempt(body, lambda data: avro_value(data, parsed))
    assert found.at is None or 0 <= found.at <= len(body)


def test_a_long_array_is_not_taken_for_the_fault_behind_it() -> None:
    count = MOST_VALUES + 1
    length = bytes((2 * count >> 7 * place & 0x7F) | (0x80 if place < 2 else 0) for place in range(3))
    what, _, path = problem(length + b"\x00" * count + b"\x00", {"type": "array", "items": "int"})
    assert (what.endswith("what is wrong behind here was not looked for"), path) == (True, f"f[{MOST_VALUES - 2}]")


@pytest.mark.parametrize(
    "item",
    [
        {"type": "record", "name": "E", "fields": []},
        {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]},
        {"type": "fixed", "name": "E", "size": 0},
        "null",
    ],
)
def test_no_schema_that_is_read_has_items_of_no_bytes(item: object) -> None:
    with pytest.raises(UnreadableSchema):
        avro_schemas.parse(json.dumps(of({"type": "array", "items": item})), {})
