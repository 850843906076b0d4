"""JSON values become what an Avro schema says, or one sentence says which field does not fit."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from frazil.errors import InvalidInput
from frazil.inference.record_file import Line
from frazil.local.produce.avro_values import AvroValues, DoesNotFitError

INNER = {"type": "record", "name": "Inner", "fields": [{"name": "n", "type": "int"}]}


def schema(kind: Any) -> str:
    return json.dumps({"type": "record", "name": "shop.R", "fields": [{"name": "f", "type": kind}]})


def read_back(kind: Any, value: str) -> Any:
    """The value after encoding it and decoding it with fastavro's reader."""
    text = schema(kind)
    body = AvroValues(text, "r.avsc").encoded(Line("x:1", f'{{"f": {value}}}').value)
    record: Any = fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(json.loads(text)), None)
    return record["f"]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("null", "null", None),
        ("boolean", "true", True),
        ("int", "-2147483648", -(2**31)),
        ("long", "9223372036854775807", 2**63 - 1),
        ("double", "5", 5.0),
        ("float", "0.5", 0.5),
        ("string", '"é"', "é"),
        ("bytes", '"\\u00ff\\u0000"', b"\xff\0"),
        ({"type": "fixed", "name": "F", "size": 2}, '"ab"', b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, '"B"', "B"),
        ({"type": "array", "items": "long"}, "[1, 2]", [1, 2]),
        ({"type": "map", "values": ["null", "long"]}, '{"a": 1, "b": null}', {"a": 1, "b": None}),
        (["null", INNER], '{"n": 1}', {"n": 1}),
        (["null", INNER], "null", None),
        (
            {"type": "array", "items": ["string", INNER, "shop.R"]},
            '["a", {"n": 1}, {"f": []}]',
            ["a", {"n": 1}, {"f": []}],
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, "1234.50", Decimal("1234.50")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 2}, '"0.25"', Decimal("0.25")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 2}, "0", Decimal("0.00")),
        ({"type": "int", "logicalType": "date"}, '"2026-02-28"', date(2026, 2, 28)),
        ({"type": "int", "logicalType": "date"}, "1", date(1970, 1, 2)),
        ({"type": "int", "logicalType": "time-millis"}, '"10:00:01.5"', time(10, 0, 1, 500_000)),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            '"2026-02-28T10:00:00.000001+01:00"',
            datetime(2026, 2, 28, 9, 0, 0, 1, UTC),
        ),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, '"2026-02-28T10:00:00"', datetime(2026, 2, 28, 10)),
    ],
    ids=str,
)
def test_a_value_is_encoded_as_its_type_says(kind: Any, value: str, expected: Any) -> None:
    assert read_back(kind, value) == expected


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("long", "9223372036854775808", "the field f is no long: 9223372036854775808"),
        ("int", "2147483648", "the field f is no int"),
        ("long", "1.5", "the field f is no long: 1.5"),
        ("long", "true", "the field f is no long: True"),
        ("double", '"1"', "the field f is no double: '1'"),
        ("double", "1e999", "the field f is no double: "),
        ("double", "9007199254740993", "the field f is no double: 9007199254740993 (no double holds it)"),
        ("string", "1", "the field f is no string: 1"),
        ("string", "null", "the field f is no string: None"),
        ("bytes", '"€"', "the field f is no bytes: '€'"),
        ({"type": "fixed", "name": "F", "size": 2}, '"a"', "the field f is no fixed: 'a'"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, '"C"', "the field f is no enum of A, B: 'C'"),
        ({"type": "array", "items": INNER}, '[{"n": 1}, {"n": "x"}]', "the field f[1].n is no int: 'x'"),
        (["null", INNER], '{"n": 1, "m": 2}', "the field f has a field 'm', which the schema does not have"),
        (["null", INNER], "{}", "the field f.n is no int: None"),
        (["null", "long", "string"], "1.5", "the field f is no long: 1.5; the field f is no string: 1.5"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "1.234",
            "the field f is no decimal: 1",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "100",
            "the field f is no decimal: 1",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            '"x"',
            "the field f is no decimal: 'x'",
        ),
        (
            {"type": "int", "logicalType": "date"},
            '"28.2.2026"',
            "the field f is no date: '28.2.2026' (Invalid isoformat string",
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            '"2026-02-28T10:00:00"',
            "the field f is no timestamp-millis: '2026-02-28T10:00:00' (it needs a UTC offset, like Z)",
        ),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_named_with_its_field(kind: Any, value: str, why: str) -> None:
    values = AvroValues(schema(kind), "r.avsc")
    with pytest.raises(DoesNotFitError) as wrong:
        values.encoded(Line("x:1", f'{{"f": {value}}}').value)
    assert str(wrong.value).startswith(why)


def test_a_missing_field_has_its_default_or_null() -> None:
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "a", "type": "long", "default": 7}, {"name": "b", "type": ["null", "long"]}],
        }
    )
    body = AvroValues(text, "r.avsc").encoded({})
    assert fastavro.schemaless_reader(io.BytesIO(body), json.loads(text), None) == {"a": 7, "b": None}


@pytest.mark.parametrize("text", ["{", '"lon"', '{"type": "record", "name": "R"}', "[]", '{"type": "enum"}'])
def test_a_wrong_schema_is_named_with_its_file(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^r\.avsc: "):
        AvroValues(text, "r.avsc")
