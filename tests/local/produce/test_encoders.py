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
from frazil.local.produce.encoders import avro_encoder

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "n", "type": "int"}]}


def schema(kind: Any) -> str:
    return json.dumps({"type": "record", "name": "shop.R", "fields": [{"name": "f", "type": kind}]})


def encoded(text: str, record: str) -> bytes:
    return avro_encoder(Line("r.avsc", text)).encode(Line("x:1", record))


def read_back(kind: Any, value: str) -> Any:
    """The value after encoding it and decoding it with fastavro's reader."""
    text = schema(kind)
    body = encoded(text, f'{{"f": {value}}}')
    record: Any = fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(json.loads(text)), None)
    return record["f"]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("long", "9223372036854775807", 2**63 - 1),
        ("double", "5", 5.0),
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
        ("long", "9223372036854775808", "shop.R.f is <9223372036854775808> of type <class 'int'> expected long"),
        ("long", "true", "shop.R.f is <True>"),
        ("double", "1e999", "no double holds 1e999"),
        ({"type": "array", "items": INNER}, '[{"n": 1}, {"n": "x"}]', "n is <x> of type <class 'str'> expected int"),
        (["null", INNER], '{"n": 1, "m": 2}', "record contains more fields than the schema specifies: m"),
        (["null", "long", "string"], "1.5", "expected long; shop.R.f is <1.5>"),
        (DECIMAL, "1.234", "shop.R.f is <1.234>"),
        (DECIMAL, "100", "shop.R.f is <100>"),
        (DECIMAL, '"x"', "shop.R.f is <x>"),
        ({"type": "int", "logicalType": "date"}, '"28.2.2026"', "shop.R.f is <28.2.2026>"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            '"2026-02-28T10:00:00"',
            "'logicalType': 'timestamp-millis'",
        ),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_named_with_its_field(kind: Any, value: str, why: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        encoded(schema(kind), f'{{"f": {value}}}')
    assert str(wrong.value).startswith("x:1: ")
    assert why in str(wrong.value)


def test_a_missing_field_has_its_default() -> None:
    fields = [{"name": "a", "type": "long", "default": 7}, {"name": "b", "type": ["null", "long"], "default": None}]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    assert fastavro.schemaless_reader(io.BytesIO(encoded(text, "{}")), json.loads(text), None) == {"a": 7, "b": None}


@pytest.mark.parametrize("text", ["{", '"lon"', '{"type": "record", "name": "R"}', "[]", '{"type": "enum"}'])
def test_a_wrong_schema_is_named_with_its_file(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^r\.avsc: "):
        encoded(text, "{}")
