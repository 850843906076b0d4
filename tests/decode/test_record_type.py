from __future__ import annotations

import json

import pytest

from frazil.decode.protobuf_compiler import compile_proto
from frazil.decode.record_type import avro_type, json_type, protobuf_type
from frazil.errors import UnreadableSchema


def test_an_avro_record_has_its_full_name_and_anything_else_none() -> None:
    record = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "int"}]}
    found = avro_type(json.dumps(record), {})
    assert (found.name, found.is_single_value) == ("shop.Order", False)
    single = avro_type('"long"', {})
    assert (single.name, single.is_single_value, single.row.fields[0].name) == ("", True, "value")


def test_a_record_that_is_called_value_is_no_single_value() -> None:
    record = {"type": "record", "name": "value", "fields": [{"name": "value", "type": "int"}]}
    assert not avro_type(json.dumps(record), {}).is_single_value


def test_a_json_schema_is_called_by_its_title() -> None:
    schema = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    assert (json_type(json.dumps(schema), {}).name, json_type(json.dumps(schema), {}).is_single_value) == (
        "Order",
        False,
    )
    assert (json_type('{"title": 7, "type": "integer"}', {}).name, json_type("true", {}).is_single_value) == ("", True)


def test_a_message_is_one_type_of_its_file() -> None:
    file = compile_proto(
        'syntax = "proto3"; package p; message A { int32 a = 1; } message B { int32 b = 1; } message C {}'
    )
    found = protobuf_type(file, "p.B")
    assert (found.name, found.is_single_value, [f.name for f in found.row.fields]) == ("p.B", False, ["b"])
    assert found.decoder is None
    with pytest.raises(UnreadableSchema):
        protobuf_type(file, "p.C")
