"""Schemas as Kafka Connect's JsonConverter writes them: the row of each, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import UnreadableSchema
from frazil.schemas.connect.connect_schema import parse
from frazil.schemas.connect.connect_types import NAMED, NUMBER, NumberOrBytes, row_meaning
from frazil.schemas.json.json_schema import NESTING
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct
from tests.support.connect_schemas import decimal, field, struct

TEXT, LONG = Primitive(Kind.STRING), Primitive(Kind.LONG)


def row(*fields: Any) -> Struct:
    return parse(json.dumps(struct("V", fields))).row


def test_a_struct_is_a_row_in_the_order_of_its_fields() -> None:
    found = parse(json.dumps(struct("shop.V", [field("b", "int64", optional=False, doc=" why "), field("A", "int16")])))
    assert found.row == Struct((Field("b", LONG, required=True, doc="why"), Field("A", Primitive(Kind.INT))))
    assert (found.name, found.is_single_value, found.is_nullable) == ("shop.V", False, False)
    assert parse(json.dumps(struct("V", [field("a", "string")], optional=True))).is_nullable


def test_a_type_that_a_connector_names_is_held_as_json_has_it() -> None:
    day, scale = field("day", "int32", "io.debezium.time.Date"), "io.debezium.data.VariableScaleDecimal"
    number = {**struct(scale, [field("scale", "int32"), field("value", "bytes")]), "field": "n"}
    found = row(day, decimal("price", 10, 2), number, field("at", "int64", "io.debezium.time.Date"))
    types = [NAMED["io.debezium.time.Date"], NumberOrBytes(10, 2), NUMBER, LONG]
    assert [each.type for each in found.fields] == types
    assert [each.type for each in row_meaning(found).fields] == [Primitive(Kind.DATE), Decimal(10, 2), TEXT, LONG]


def test_lists_and_maps_have_types_where_json_has_objects() -> None:
    text = {"type": "string", "optional": False}
    found = row(
        field("tags", "array", items={"type": "string", "optional": True}),
        field("prices", "array", items={**decimal("", 5, 1), "optional": False}),
        field("named", "map", keys=text, values={"type": "int64", "optional": True}),
        field("numbered", "map", keys={"type": "int32", "optional": False}, values=text),
        field("nothing", "struct", fields=[]),
    )
    assert [each.type for each in found.fields] == [
        ListOf(TEXT), ListOf(NumberOrBytes(5, 1), element_required=True), MapOf(TEXT, LONG), TEXT, TEXT,
    ]  # fmt: skip
    assert [each.as_json for each in found.fields] == [False, False, False, True, True]


def test_what_is_no_struct_is_one_value() -> None:
    found = parse('{"type": "int64", "optional": true}')
    assert (found.row, found.is_single_value) == (Struct((Field("value", LONG),)), True)
    assert parse(json.dumps(struct("V", []))).row == Struct((Field("value", TEXT, required=True, as_json=True),))


def test_what_is_nested_too_deep_is_text() -> None:
    of: dict[str, Any] = {"type": "string"}
    for _ in range(NESTING + 1):
        of = {"type": "array", "items": of}
    assert row({**of, "field": "deep"}).fields[0].as_json


def test_fields_are_counted_at_any_depth() -> None:
    """Any producer of the topic writes a schema, and each field would be a column for good."""
    part = {"field": "part", **struct("P", [{"field": f"f{number}", "type": "int8"} for number in range(4_999)])}
    assert len(row(part, {**part, "field": "other"}).fields) == 2
    with pytest.raises(UnreadableSchema, match="more than 10000 fields"):
        row(part, {**part, "field": "other"}, {"field": "one", "type": "int8"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("null", "the type None"),
        ("[]", "the type None"),
        ("{", "is no JSON that is read"),
        ("[" * 100_000, "is no JSON that is read"),
        (r'{"type": "int64", "doc": "\ud800"}', "is no JSON that is read"),
        ('{"type": "int128"}', "the schema has the type 'int128'"),
        ('{"type": ["null", "string"]}', "which Kafka Connect does not have"),
        ('{"type": "struct"}', "the schema is a struct whose fields have no names"),
        ('{"type": "struct", "fields": [{"type": "string"}]}', "whose fields have no names"),
        ('{"type": "struct", "fields": [{"field": "a", "type": "array"}]}', "the schema.a has no items"),
        ('{"type": "map", "values": {"type": "string"}}', "the schema has no keys"),
    ],
)
def test_what_is_no_schema_of_connect_is_unreadable(text: str, problem: str) -> None:
    with pytest.raises(UnreadableSchema) as raised:
        parse(text)
    assert problem in str(raised.value)
