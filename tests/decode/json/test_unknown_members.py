"""Fields of a record that are no column are JSON text in `_unknown`; a record whose fields cannot be kept so is rejected."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.decode.writers.record_type import declared_json
from frazil.schemas.declared_columns import UNKNOWN
from tests.support.bodies import rows_of

pytestmark = pytest.mark.spark

REJECTED = "rejected"


def unknown(spark: SparkSession, columns: tuple[str, ...], *bodies: bytes | str | None) -> list[Any]:
    made = declared_json(columns, in_payload=False, keeps_unknown=True)
    return [REJECTED if row is None else row[UNKNOWN] for row in rows_of(spark, made.body(made.row), *bodies)]


CASES: list[tuple[str | bytes | None, Any]] = [
    ('{"id": 1}', None),
    ("{}", None),
    ('{"id": 1, "a": "x"}', '{"a":"x"}'),
    ('{"b": 1.50, "id": 1, "a": {"c": [1, null, "é"]}}', '{"b":1.5,"a":{"c":[1,null,"é"]}}'),
    ('{"id": 1, "a": null}', '{"a":null}'),
    ('{"ID": 7}', '{"ID":7}'),
    ('{"id": 1, "_unknown": 5, "": 1, "a b.c": 2}', '{"_unknown":5,"":1,"a b.c":2}'),
    ('{"n": 1234567890123456789012345678901234567890123}', '{"n":1234567890123456789012345678901234567890123}'),
    ('{"n": 0.12345678901234567891}', '{"n":0.12345678901234567891}'),
    ('{"at": {"x": 1}, "to": {"city": "B", "zip": 1}}', '{"at":{"x":1}}'),
    ('{"n": 1e999}', REJECTED),
    ('{"s": "\\ud800"}', REJECTED),
    ('{"o": {"a": 1, "a": 2}}', REJECTED),
    ('{"id": "x", "a": 1}', REJECTED),
    ('{"id": 1, "a": 1} {}', REJECTED),
    ('{"id": 1, "d": NaN}', None),
    ('{"id": 1, "d": NaN, "a": 5}', REJECTED),
    ('{"id": 1, "f": Infinity}', REJECTED),
    ("[1]", REJECTED),
    (b'{"a": "\xff"}', REJECTED),
    (None, REJECTED),
]


def test_what_is_no_column_is_json_text(spark: SparkSession) -> None:
    columns = ("id long", "to struct<city: string>", "d double")
    found = unknown(spark, columns, *(body for body, _ in CASES))
    assert list(zip([body for body, _ in CASES], found, strict=True)) == CASES


def test_a_number_that_json_does_not_have_is_no_text_in_a_column_of_json(spark: SparkSession) -> None:
    bodies = ('{"js": NaN}', '{"js": {"x": -Infinity}}', '{"js": "NaN"}', '{"js": {"x": "NaN"}, "id": 1}')
    assert unknown(spark, ("id long", "js json"), *bodies) == [REJECTED, REJECTED, None, None]


@pytest.mark.long
def test_integers_written_as_fractions_and_columns_of_a_connector_keep_unknown_fields_too(spark: SparkSession) -> None:
    columns = ("id long", "at org.apache.kafka.connect.data.Timestamp", "raw json")
    bodies = ('{"id": 1.0, "z": 1}', '{"id": 1, "at": 1000, "z": 1}', '{"id": 1, "raw": {"a": 1}}')
    assert unknown(spark, columns, *bodies) == ['{"z":1}', '{"z":1}', None]
