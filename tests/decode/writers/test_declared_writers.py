"""Records that a declared schema describes: each is the row that its producer wrote, or has a reason that names the remedy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.declaration import Avro, Debezium, Framing, Topic
from frazil.decode.avro.plain_avro import END
from frazil.decode.decoded_columns import REASON, ROW, SCHEMA_ID, UNKNOWN
from frazil.decode.record_decoder import RecordDecoder
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.envelopes.debezium import DebeziumEvents
from frazil.errors import IncompatibleSchema, InvalidInput, UnreadableSchema
from frazil.schemas.avro.schema_fingerprint import head
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.types import Struct
from frazil.schemas.wire_format import VALUE_HEADER, prefixed
from tests.support.declared_schemas import avsc, descriptors, json_file, single_object
from tests.support.proto import protobuf
from tests.support.shop import avro
from tests.support.topics import topic_of

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
LATER = {**ORDER, "fields": [*ORDER["fields"], {"name": "price", "type": "double", "default": 0.5}]}
INTS = {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "int"} for n in range(4)]}
INTS["fields"].append({"name": "text", "type": "string"})  # type: ignore[attr-defined]
PROTO = (
    'syntax = "proto3"; package shop; message Other { int32 x = 1; } message Order { int32 id = 1; string note = 2; }'
)
JSON = {"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}, "required": ["id"]}


def writers(*, keys: bool = False, **topic: Any) -> WriterSchemas:
    return writer_schemas(topic_of("orders", **{"value_format": "avro", **topic}), None, keys=keys)


def decoder(of: WriterSchemas) -> RecordDecoder:
    target = landing(Struct(()), of.versions).target
    return RecordDecoder(values=of.decoder(target, {}))


def records(spark: SparkSession, values: Sequence[bytes | None], headers: Sequence[str] = ()) -> DataFrame:
    given = [(value, [(name, b"\0\0\0\0\7") for name in headers] or None, n) for n, value in enumerate(values)]
    return spark.createDataFrame(
        given, "value binary, headers array<struct<key:string,value:binary>>, offset long"
    ).coalesce(1)


def landed(spark: SparkSession, how: RecordDecoder, *values: bytes | None, headers: Sequence[str] = ()) -> list[Any]:
    """By offset, the row's values or the reason."""
    given = records(spark, values, headers)
    found: dict[int, Any] = {
        row["offset"]: tuple(row[ROW])[:-1] for row in how.rows(given).select("offset", ROW, SCHEMA_ID).collect()
    }
    away = how.rejected(given).select("offset", REASON, UNKNOWN, SCHEMA_ID).collect()
    assert {(row[2], row[3]) for row in away} <= {(None, None)}  # nothing is asked of a registry
    found |= {row["offset"]: row[REASON] for row in away}
    assert sorted(found) == list(range(len(values)))
    return [found[n] for n in range(len(values))]


def test_no_end_of_the_mark_is_its_beginning() -> None:
    assert not [n for n in range(1, len(END)) if END[:n] == END[-n:]]


@pytest.mark.spark
def test_a_plain_avro_body_is_a_row_if_it_fills_its_bytes(spark: SparkSession) -> None:
    how = decoder(writers(schema=(avsc(ORDER),)))
    order = avro(ORDER, {"id": -98, "note": "né"})  # begins as single-object encoding does
    empty = avro(ORDER, {"id": 0, "note": None})
    given = (order, empty, order + b"\0", order[:-1], order[:1], b"", None, empty + END, b"\x02\x02\x04\xff\xff")
    assert landed(spark, how, *given) == [
        (-98, "né"),
        (0, None),
        *("undecodable",) * 3,
        "empty_value",
        "tombstone",
        *("undecodable",) * 2,
    ]


@pytest.mark.long
@pytest.mark.spark
def test_a_framed_record_is_no_plain_row_even_if_it_can_be_read_as_one(spark: SparkSession) -> None:
    body = avro(INTS, {"f0": 1, "f1": 2, "f2": 3, "f3": 4, "text": "x" * 16})
    framed = prefixed(21, b"", None)[:4] + b"\x2a" + body  # id 42 is read as the length of a text, 21
    how = decoder(writers(schema=(avsc(INTS),)))
    plain = avro(INTS, {"f0": 0, "f1": 0, "f2": 0, "f3": 0, "text": "y" * 21})
    known, unknown = (
        single_object(INTS, {**dict.fromkeys(("f0", "f1", "f2", "f3"), 1), "text": ""}),
        b"\xc3\x01" + b"8" * 9,
    )
    assert len(body) == 21
    assert landed(spark, how, framed, body, plain, known, unknown) == [
        "registry_frame",
        (1, 2, 3, 4, "x" * 16),
        (0, 0, 0, 0, "y" * 21),
        *("single_object",) * 2,
    ]


@pytest.mark.long
@pytest.mark.spark
def test_a_broken_body_that_begins_as_a_frame_is_none_without_a_body_behind(spark: SparkSession) -> None:
    """Numbers of 0 begin so; no registry gives the id 0."""
    how = decoder(writers(schema=(avsc(INTS),)))
    zeros = avro(INTS, {"f0": 0, "f1": 0, "f2": 0, "f3": 0, "text": "a" * 9})
    body = avro(INTS, {"f0": 1, "f1": 0, "f2": 0, "f3": 0, "text": ""})
    framed = (prefixed(7, body), prefixed(2**24 - 1, body))
    broken = (zeros[:-1], zeros + b"\0", prefixed(7, body[:-1]), prefixed(0, body), prefixed(2**24, body))
    assert landed(spark, how, zeros, *framed, *broken) == [
        (0, 0, 0, 0, "a" * 9),
        *("registry_frame",) * 2,
        *("undecodable",) * 5,
    ]


@pytest.mark.long
@pytest.mark.spark
def test_a_registrys_header_makes_no_row_of_avro(spark: SparkSession) -> None:
    body = avro(ORDER, {"id": 1, "note": None})
    how = decoder(writers(schema=(avsc(ORDER),)))
    assert landed(spark, how, body, headers=["other"]) == [(1, None)]
    assert landed(spark, how, body, headers=[VALUE_HEADER]) == ["registry_frame"]


@pytest.mark.long
@pytest.mark.spark
def test_single_object_encoding_names_the_version_of_each_record(spark: SparkSession) -> None:
    files = (avsc(ORDER, "v1.avsc"), avsc(LATER, "v2.avsc"))
    how = decoder(writers(schema=files, framing=Framing.SINGLE_OBJECT))
    old, new = single_object(ORDER, {"id": 1, "note": "a"}), single_object(LATER, {"id": 2, "note": None, "price": 2.5})
    other = single_object(INTS, {**dict.fromkeys(("f0", "f1", "f2", "f3"), 1), "text": ""})
    plain = avro(ORDER, {"id": 1, "note": None})
    zero = avro(LATER, {"id": 0, "note": None, "price": 2.5})
    given = (old, new, old + b"\0", new[:-1], other, plain, zero, prefixed(1, plain), old[:9], b"", None)
    assert how.schema_ids == ()
    assert landed(spark, how, *given) == [
        (1, "a", None),
        (2, None, 2.5),
        *("undecodable",) * 2,
        "unknown_fingerprint",
        *("no_fingerprint",) * 2,
        "registry_frame",
        *("no_fingerprint",) * 2,
        "tombstone",
    ]


@pytest.mark.long
@pytest.mark.spark
def test_a_version_that_does_not_fit_rejects_its_records_alone(spark: SparkSession) -> None:
    other = {**ORDER, "fields": [{"name": "id", "type": "string"}]}
    of = writers(schema=(avsc(ORDER, "v1.avsc"), avsc(other, "v2.avsc")), framing=Framing.SINGLE_OBJECT)
    found = landing(Struct(()), of.versions)
    how = RecordDecoder(values=of.decoder(found.target, found.incompatible))
    given = single_object(ORDER, {"id": 1, "note": None}), single_object(other, {"id": "1"})
    assert landed(spark, how, *given) == [(1, None), "incompatible_schema"]
    with pytest.raises(IncompatibleSchema, match="no"):
        of.decoder(found.target, dict.fromkeys((0, 1), IncompatibleSchema("no")))


@pytest.mark.spark
def test_plain_json_lands_by_its_schema(spark: SparkSession) -> None:
    how = decoder(writers(value_format="json_schema", schema=(json_file(JSON),)))
    body = b' {"id": 1, "note": "a", "more": 2}\n'
    given = (body, b'{"id": "1"}', body + b"{}", body[:-3], prefixed(7, body), b"null", None)
    assert landed(spark, how, *given, headers=[VALUE_HEADER]) == [
        (1, "a"),
        *("undecodable",) * 3,
        "registry_frame",
        "undecodable",
        "tombstone",
    ]


@pytest.mark.long
@pytest.mark.spark
def test_null_is_no_value_where_the_schema_allows_it(spark: SparkSession) -> None:
    how = decoder(writers(value_format="json_schema", schema=(json_file({"oneOf": [{"type": "null"}, JSON]}),)))
    assert landed(spark, how, b'{"id": 1}', b" null ") == [(1, None), "tombstone"]


INTEGERS = {"type": "array", "items": {"type": "integer"}}
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (INTEGERS, "undecodable"),
        ({"type": "integer"}, "undecodable"),
        ({"type": "string"}, "undecodable"),
        ({"type": ["integer", "string"]}, "undecodable"),
        (MAP, "undecodable"),
        ({**INTEGERS, "type": ["array", "null"]}, "tombstone"),
        ({**MAP, "type": ["object", "null"]}, "tombstone"),
        ({"type": ["null", "string"]}, "tombstone"),
        ({}, "tombstone"),
    ],
)
def test_null_in_place_of_one_value_is_no_row(spark: SparkSession, schema: dict[str, Any], reason: str) -> None:
    how = decoder(writers(value_format="json_schema", schema=(json_file(schema),)))
    assert landed(spark, how, b"null", b" null\n") == [reason] * 2


@pytest.mark.spark
def test_plain_messages_land_by_their_descriptors(spark: SparkSession) -> None:
    how = decoder(writers(value_format="protobuf", schema=(descriptors(PROTO),), record_name="shop.Order"))
    body = protobuf(PROTO, {"id": 1, "note": "a"}, message="shop.Order")
    given = (body, b"", body[:-1], body + b"\xff", prefixed(7, body, (1,)), None)
    assert landed(spark, how, *given) == [(1, "a"), (0, ""), *("undecodable",) * 2, "registry_frame", "tombstone"]
    assert landed(spark, how, body, headers=[VALUE_HEADER]) == ["registry_frame"]


@pytest.mark.spark
def test_keys_are_values_or_structs_of_their_schema(spark: SparkSession) -> None:
    of = writers(keys=True, key_format="avro", key_schema=(avsc("long", "key.avsc"),))
    assert of.types[0].is_single_value
    how = decoder(of)
    key = spark.createDataFrame([(avro_long(7), b"x"), (avro_long(7) + b"\0", b"x")], "key binary, value binary")
    read = key.withColumn("headers", F.lit(None).cast("array<struct<key:string,value:binary>>"))
    assert [row[0] for row in how.rows(read).select(f"{ROW}.value").collect()] == [7]
    assert not writers(keys=True, key_format="avro", key_schema=(avsc(ORDER),)).types[0].is_single_value


def avro_long(number: int) -> bytes:
    return avro({"type": "record", "name": "L", "fields": [{"name": "l", "type": "long"}]}, {"l": number})


def test_two_declared_versions_are_known_without_a_registry() -> None:
    of = writers(schema=(avsc(ORDER, "v1.avsc"), avsc(LATER, "v2.avsc")), framing=Framing.SINGLE_OBJECT)
    assert [number for number, _ in of.versions] == [0, 1]
    assert not of.refresh()


def test_a_file_that_is_not_understood_is_named() -> None:
    wrong = {**ORDER, "fields": [{"name": "id", "type": "nothing"}]}
    for value_format, file, name in (
        ("avro", avsc(wrong), None),
        ("avro", avsc(7), None),
        ("json_schema", json_file({"type": 7}), None),
        ("protobuf", descriptors(PROTO), "shop.None"),
    ):
        with pytest.raises(UnreadableSchema, match=rf"^{file.file}: "):
            writers(value_format=value_format, schema=(file,), record_name=name)


def test_an_envelope_unwraps_what_a_declared_schema_describes() -> None:
    event = {"type": "record", "name": "Envelope", "fields": [{"name": "after", "type": ["null", ORDER]}]}
    event["fields"] += [  # type: ignore[operator]
        {"name": "op", "type": "string"},
        {"name": "source", "type": {"type": "record", "name": "S", "fields": [{"name": "ts_ms", "type": "long"}]}},
    ]
    topic = Topic("orders", value=Avro(schema=(avsc(event),)))
    of = writer_schemas(topic, None, envelope=DebeziumEvents(Debezium()))
    assert [field.name for field in of.versions[0][1].fields] == ["id", "note"]
    other = Topic("orders", value=Avro(schema=(avsc(INTS),)))
    with pytest.raises(InvalidInput, match="flattened events"):
        writer_schemas(other, None, envelope=DebeziumEvents(Debezium(source_column=True)))


def test_the_head_of_a_record_is_that_of_the_official_library() -> None:
    assert single_object(LATER, {"id": 1, "note": None, "price": 1.0}).startswith(head(json.dumps(LATER)))
