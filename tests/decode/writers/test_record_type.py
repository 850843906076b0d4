from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.decode.protobuf.compiler import compile_proto
from frazil.decode.writers.record_type import avro_type, embedded_type, json_type, protobuf_type
from frazil.errors import UnreadableSchema
from tests.support.connect_schemas import confluent, field, struct


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
    with pytest.raises(UnreadableSchema):
        protobuf_type(file, "p.C")


OWN_SCALE = "io.debezium.data.VariableScaleDecimal"
AVRO_NUMBER = {
    "type": "record",
    "name": "N",
    "connect.name": OWN_SCALE,
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}
CONNECT_NUMBER = struct(OWN_SCALE, [field("scale", "int32", optional=False), field("value", "bytes", optional=False)])


@pytest.mark.parametrize("number", [CONNECT_NUMBER, {**CONNECT_NUMBER, "optional": True}])
@pytest.mark.parametrize("is_field", [True, False])
def test_a_number_of_its_own_scale_is_marked_in_all_formats(number: dict[str, Any], is_field: bool) -> None:
    """As a key it is refused, in each format: equal numbers may differ in their digits."""
    in_avro: Any = ["null", AVRO_NUMBER] if number["optional"] else AVRO_NUMBER
    in_json = confluent(number)
    if is_field:
        in_avro = {"type": "record", "name": "R", "fields": [{"name": "x", "type": in_avro}]}
        in_json = {"type": "object", "properties": {"x": in_json}}
        number = struct("R", [{**number, "field": "x"}])
    types = (
        avro_type(json.dumps(in_avro), {}, connect_types=True),
        json_type(json.dumps(in_json), {}, connect_types=True),
        embedded_type(json.dumps(number)),
    )
    for made in types:
        (column,) = made.row.fields
        assert (column.has_own_scale, str(column.type), made.is_single_value) == (True, "string", not is_field)
