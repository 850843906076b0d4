"""Declared schemas are mapped as those of a registry are, and their problems name the file."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Avro, Pipeline, SchemaFile, Table, Topic
from frazil.decode.writers.topic_writers import topic_rows
from frazil.doctor.schema_registry import of_columns
from frazil.errors import UnreadableSchema
from frazil.schema_files.declared_rows import declared_rows, file_problems, omissions
from tests.support.declared_schemas import avsc, descriptors, json_file
from tests.support.topics import topic_of

PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; string note = 2; } message None {}'
AVRO = {"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]}
JSON = {"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}


def pipeline(*files: SchemaFile, value_format: str = "avro", **topic: Any) -> Pipeline:
    return Pipeline(
        topic=topic_of("orders", value_format=value_format, schema=files, **topic), table=Table("shop.orders")
    )


@pytest.mark.parametrize(
    ("value_format", "file", "more"),
    [
        ("avro", avsc(AVRO), {}),
        ("json_schema", json_file(JSON), {}),
        ("protobuf", descriptors(PROTO), {"record_name": "shop.Order"}),
    ],
)
def test_each_format_has_its_columns(value_format: str, file: SchemaFile, more: dict[str, str]) -> None:
    made = pipeline(file, value_format=value_format, **more)
    ((row),) = declared_rows(made.topic)
    assert [(field.name, str(field.type)) for field in row.fields] == [("id", "long"), ("note", "string")]
    assert list(file_problems(made)) == []
    assert declared_rows(made.topic, keys=True) == ()


def test_a_key_has_its_own_file() -> None:
    topic = Topic("orders", value="text", key=Avro(schema=(avsc("long", "key.avsc"),)))
    assert [field.name for row in declared_rows(topic, keys=True) for field in row.fields] == ["value"]


@pytest.mark.parametrize(
    ("value_format", "file", "more", "says"),
    [
        ("avro", avsc({**AVRO, "type": "recrd"}), {}, "orders.avsc: there is no type 'recrd'"),
        ("avro", avsc({**AVRO, "fields": [{"name": "a", "type": "b"}]}), {}, "orders.avsc: O.a: there is no type 'b'"),
        ("avro", avsc({"type": "record"}), {}, "orders.avsc: record without `name`"),
        ("json_schema", json_file({"type": "thing"}), {}, "orders.json: #"),
        ("json_schema", json_file({"$ref": "other.json"}), {}, "orders.json: #: $ref to 'other.json'"),
        ("protobuf", descriptors(PROTO), {"record_name": "Order"}, "orders.desc: it has no message Order"),
        ("protobuf", descriptors(PROTO), {"record_name": "shop.None"}, "the message has no fields"),
        ("protobuf", SchemaFile(file="a.pb", content="////"), {"record_name": "a"}, "a.pb: it is no descriptor set"),
    ],
)
def test_what_has_no_columns_is_named_with_its_file(
    value_format: str, file: SchemaFile, more: dict[str, str], says: str
) -> None:
    made = pipeline(file, value_format=value_format, **more)
    [problem] = file_problems(made)
    assert problem.path == "topic.value.schema[0]"
    assert says in problem.what
    assert problem.do
    with pytest.raises(UnreadableSchema):
        declared_rows(made.topic)


def test_a_reference_to_another_file_is_answered_with_where_it_belongs() -> None:
    [problem] = file_problems(pipeline(json_file({"$ref": "other.json"}), value_format="json_schema"))
    assert problem.do == "Put what it refers to into the file, below $defs"


def test_versions_must_fit_together_and_differ_in_their_bytes() -> None:
    other = {**AVRO, "fields": [{"name": "id", "type": "string"}]}
    alike = {**AVRO, "doc": "the same bytes"}
    files = (avsc(AVRO, "v1.avsc"), avsc(other, "v2.avsc"), avsc(alike, "v3.avsc"), avsc({"type": 7}, "v4.avsc"))
    found = {p.path: p.what for p in file_problems(pipeline(*files, framing="single_object"))}
    assert found["topic.value.schema[1]"] == "v2.avsc: id: long cannot become string"
    assert found["topic.value.schema[2]"] == "v3.avsc has the fingerprint of v1.avsc: both describe the same bytes"
    assert found["topic.value.schema[3]"].startswith("v4.avsc: ")
    assert len(found) == 3


def test_unknown_fields_are_a_column_behind_those_of_a_schema() -> None:
    def made(schema: Any) -> Pipeline:
        return pipeline(json_file(schema), value_format="json_schema", unknown_fields="keep")

    properties = {"a": {"type": "integer"}}
    (row,) = declared_rows(made({"properties": properties}).topic)
    assert str(row) == "struct<a: long, _unknown: string>"
    assert list(file_problems(made({"properties": properties}))) == []
    (reserved,) = file_problems(made({"properties": {**properties, "_Unknown": {}}}))
    assert (reserved.path, "_unknown is the column of unknown fields" in reserved.what) == (
        "topic.value.schema[0]",
        True,
    )
    (single,) = file_problems(made({"type": "string"}))
    assert (single.path, "no objects of fields" in single.what) == ("topic.value.unknown_fields", True)


def test_properties_of_a_file_that_land_in_no_column_are_said() -> None:
    file, key = json_file({**JSON, "additionalProperties": {"type": "string"}}), json_file({**JSON, "required": ["z"]})
    keyed = {"value_format": "json_schema", "key_format": "json_schema", "key_schema": (key,)}
    said = ["orders.json: the record: other properties (additionalProperties)"]
    of_key = ["orders.json: the record: the property z (required)"]
    assert list(omissions(pipeline(file, **keyed))) == [*said, *of_key]
    assert list(omissions(pipeline(file, **keyed, unknown_fields="keep"))) == of_key
    assert omissions(pipeline(avsc(AVRO))) == ()
    found = topic_rows(pipeline(file, value_format="json_schema"), None)
    check = of_columns(pipeline(file, value_format="json_schema"), found, None)
    assert said[0] in str(check)
