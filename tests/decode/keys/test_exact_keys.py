"""Values of keys: two that differ in the source stay two, or their record is rejected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type

from frazil.decode.decoder import Body
from frazil.decode.json.json_decoder import json_body
from frazil.decode.protobuf.compiler import compile_proto
from frazil.decode.protobuf.projection import reading
from frazil.decode.protobuf.protobuf_decoder import decoded
from frazil.decode.spark_types import spark_struct
from frazil.decode.writers.record_type import declared_json
from frazil.schemas.protobuf import row_type
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.support.bodies import rows_of

REJECTED = "rejected"
STRING = Primitive(Kind.STRING)


def rows(spark: SparkSession, decoder: Body, *bodies: bytes) -> list[Any]:
    """What the first column holds in each body, or `REJECTED`."""
    return [REJECTED if row is None else row[0] for row in rows_of(spark, decoder, *bodies)]


def of_json(spark: SparkSession, column: str, *values: str) -> list[Any]:
    made = declared_json((column,), in_payload=False)
    return rows(spark, made.body(made.row.exact()), *(f'{{"x": {value}}}'.encode() for value in values))


@pytest.mark.spark
def test_a_string_of_a_key_is_a_string_of_json(spark: SparkSession) -> None:
    written = ('"1"', "1", "1.0", "1.00", "true", '["1"]', '{"a": 1}', "null", '""', '"null"', '"é\\u0000\\ud83d\\ude00?"', '"\\ud800"')  # fmt: skip
    landed = ["1", *[REJECTED] * 6, None, "", "null", "é\0😀?", REJECTED]
    assert of_json(spark, "x string", *written) == landed
    halves = (r'"\\ud83d\ude00"', r'"\\ud83d\ude01"')  # Java reads both as `\ud83d?`
    assert of_json(spark, "x string", *halves, r'"\\ud83d?"') == [REJECTED, REJECTED, r"\ud83d?"]


@pytest.mark.spark
def test_a_string_of_a_key_beside_json_text_and_integers_is_a_string(spark: SparkSession) -> None:
    target = Struct(
        (
            Field("x", STRING, is_exact=True),
            Field("j", STRING, as_json=True),
            Field("n", Primitive(Kind.LONG)),
            Field("lenient", STRING),
        )
    )
    long = "1" * 40
    bodies = (f'{{"x": {long}}}', f'{{"x": "{long}", "j": {long}, "n": 1.0, "lenient": 7}}', '{"x": 5, "n": 1.0}')
    assert rows(spark, json_body(target), *map(str.encode, bodies)) == [REJECTED, long, REJECTED]


@pytest.mark.spark
def test_a_key_that_is_one_value_is_a_string_of_json(spark: SparkSession) -> None:
    decoder = json_body(Struct((Field("k", STRING, source="value", is_exact=True),)), single_value=True)
    assert rows(spark, decoder, b'"1"', b"1", b"1.0", b"[]", b"null") == ["1", REJECTED, REJECTED, REJECTED, None]


@pytest.mark.spark
def test_a_key_in_a_struct_of_an_event_is_exact(spark: SparkSession) -> None:
    row = Struct((Field("id", STRING, is_exact=True), Field("name", STRING)))
    decoder = json_body(Struct((Field("after", row), Field("op", STRING))))
    bodies = (b'{"after": {"id": "1", "name": 2}}', b'{"after": {"id": 1}}', b'{"after": null}')
    assert rows(spark, decoder, *bodies) == [("1", "2"), REJECTED, None]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("column", "whole", "cut"),
    [
        ("x io.debezium.time.NanoTimestamp", ("-1000", "1000"), ("-1", "1001", "999")),
        ("x io.debezium.time.Timestamp", ("-1", "1709208000123"), ()),
        ("x io.debezium.time.MicroTimestamp", ("-1", "1709208000123456"), ()),
        (
            "x io.debezium.time.ZonedTimestamp",
            ('"1970-01-01T00:00:00.123456Z"', '"1970-01-01T00:00:00.1234560+00:00"'),
            ('"1970-01-01T00:00:00.1234561Z"', '"1970-01-01t00:00:00.0000000001z"'),
        ),
        ("x timestamptz", ('"1970-01-01T00:00:00.123456000Z"',), ('"1970-01-01T00:00:00.123456789Z"',)),
        ("x timestamp", ('"1970-01-01T00:00:00.1"',), ('"1970-01-01T00:00:00.0000001"',)),
    ],
)
def test_a_time_of_a_key_is_not_cut(
    spark: SparkSession, column: str, whole: tuple[str, ...], cut: tuple[str, ...]
) -> None:
    found = of_json(spark, column, *whole, *cut, "null")
    assert REJECTED not in found[: len(whole)]
    assert found[len(whole) :] == [*[REJECTED] * len(cut), None]


@pytest.mark.parametrize("is_closed", [True, False], ids=["key", "value"])
def test_a_message_with_fields_that_its_schema_does_not_know_is_no_key(is_closed: bool) -> None:
    text = 'syntax = "proto2"; import "google/protobuf/wrappers.proto"; enum E { Z = 0; }'
    schema = compile_proto(
        f"{text} message M {{ optional int32 x = 1; optional google.protobuf.Int32Value y = 2; optional E e = 3; }}"
    )
    target = row_type(schema, "M").exact()
    to = to_arrow_type(spark_struct(target).add("_decoded", "boolean"))
    known = (b"\x08\x07", b"\x08\x07\x12\x02\x08\x01", b"\x08\x07\x18\x05", b"")
    unknown = (b"\x08\x07\x20\x01", b"\x08\x07\x12\x04\x08\x01\x10\x02")
    read = replace(reading(schema, "M", target), is_closed=is_closed)
    found = decoded(pa.array([*known, *unknown]), pa.array([0] * 6, pa.int32()), [read], to).to_pylist()
    assert [row is not None for row in found] == [True] * 4 + [not is_closed] * 2
    only = decoded(pa.array(unknown), pa.array([0] * 2, pa.int32()), [read], to)
    assert only.null_count == (2 if is_closed else 0)


@pytest.mark.spark
def test_an_object_with_more_members_than_its_columns_is_no_key(spark: SparkSession) -> None:
    made = declared_json(("id long", "`a.b` string"), in_payload=False)
    of = made.body(made.row.exact(), is_closed=True)
    bodies = (
        b'{"id": 1, "a.b": "x"}',
        b' {"id": 1.0}\n',
        b'{"id": 1, "x": null}',
        b'{"id": 1, "id": 1}',
        b"7",
        b"{",
        b"{}",
    )
    assert rows(spark, of, *bodies) == [1, 1, REJECTED, REJECTED, REJECTED, REJECTED, None]


@pytest.mark.spark
def test_a_payload_with_more_members_than_its_columns_is_no_key(spark: SparkSession) -> None:
    made = declared_json(("id long",), in_payload=True)
    of = made.body(made.row.exact(), is_closed=True)
    bodies = ('{"schema": {"x": 1}, "payload": {"id": 1}}', '{"payload": {"id": 1, "x": 2}}', '{"payload": {"id": 1}, "payload": {"id": 2}}')  # fmt: skip
    assert rows(spark, of, *map(str.encode, bodies)) == [1, REJECTED, REJECTED]
