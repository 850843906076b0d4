"""JSON of Kafka Connect and Debezium: what values mean, against Python's own reading."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.decode.connect_json.connect_decoder import connect_body
from frazil.decode.writers.record_type import declared_json
from frazil.schemas.connect.connect_types import NAMED, Held, Notation, held, meaning
from frazil.schemas.types import Decimal as DecimalType
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.support.bodies import rows_of

pytestmark = pytest.mark.spark
LONG = Primitive(Kind.LONG)


def rows(spark: SparkSession, written: Struct, bodies: list[Any], *, in_payload: bool = False) -> list[Any]:
    """What each body lands as; None if it is rejected."""
    target = Struct(tuple(Field(f.name, meaning(f.type)) for f in written.fields))
    decoder = connect_body(held(target, written), target, in_payload=in_payload)
    found = rows_of(spark, decoder, *map(json.dumps, bodies))
    return [row and row.asDict(recursive=True) for row in found]


@pytest.mark.long
def test_bytes_of_no_number_and_no_digits_reject_the_record(spark: SparkSession) -> None:
    written = Struct((Field("x", Held(Kind.BINARY, Notation.UNSCALED, DecimalType(9, 2))),))
    assert rows(spark, written, [{"x": ""}, {"x": "%"}, {"x": 1.5}, {"x": None}, {}])[:3] == [None] * 3
    assert [row["x"] for row in rows(spark, written, [{"x": None}, {}]) if row] == [None, None]


@pytest.mark.parametrize(("name", "unit"), [("Timestamp", 1000), ("MicroTimestamp", 1), ("NanoTimestamp", 0)])
def test_a_number_is_the_time_that_its_unit_says(spark: SparkSession, name: str, unit: int, seed: int) -> None:
    dice, epoch = Random(seed), datetime(1970, 1, 1)
    numbers = [*(dice.randrange(-(2**bits), 2**bits) for bits in range(1, 64) for _ in range(4)), 2**63 - 1, -(2**63)]
    found = rows(spark, Struct((Field("at", NAMED[f"io.debezium.time.{name}"]),)), [{"at": n} for n in numbers])
    for number, row in zip(numbers, found, strict=True):
        try:
            wanted = epoch + timedelta(microseconds=number * unit if unit else number // 1000)
        except OverflowError:
            wanted = None
        assert (row and row["at"]) == wanted, number


def test_a_payload_is_the_row_and_nothing_else_is(spark: SparkSession) -> None:
    written = Struct((Field("id", LONG), Field("payload", Primitive(Kind.STRING))))
    bodies = [
        {"payload": {"id": 1.0, "payload": "p"}, "schema": {"id": 7}},
        {"id": 2, "payload": "p"},
        {"payload": None},
        {},
        [],
    ]
    found = rows(spark, written, bodies, in_payload=True)
    assert (found[0]["id"], found[0]["payload"]) == (1, "p")
    assert found[1:] == [None] * 4


def test_a_column_that_is_not_declared_is_null_whatever_the_record_has(spark: SparkSession) -> None:
    of = declared_json(["a long", "s struct<x: long>"], in_payload=False)
    inner = Struct((Field("x", LONG), Field("y", LONG)))
    decoder = of.body(Struct((Field("a", LONG), Field("s", inner), Field("b", LONG))))
    body = b'{"a": 1, "b": "no number", "s": {"x": 2, "y": [3]}}'
    (row,) = rows_of(spark, decoder, body)
    assert row is not None
    assert row.asDict(recursive=True) == {"a": 1, "s": {"x": 2, "y": None}, "b": None, "_decoded": True}
