"""The schema of a file's records fits each of them, or one error names the line that no type fits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import InvalidInput
from frazil.inference.inferred_schema import avro_schema, json_schema, record_name
from frazil.inference.inferred_type import inferred
from frazil.inference.record_file import Line
from frazil.local.produce.avro_values import AvroValues
from frazil.schemas import avro
from frazil.schemas.json.documents import parse
from frazil.schemas.json.json_schema import row_type
from frazil.schemas.types import Struct

RECORDS = (
    '{"id": 1, "amount": 5, "paid": true, "items": [{"sku": "a"}], "note": null, "tags": []}',
    '{"id": 2, "amount": 2.5, "paid": false, "items": [{"sku": "b", "gift": true}, null], "tags": [], "to": {"city": "x"}}',
)


def lines(*texts: str) -> list[Line]:
    return [Line(f"o.jsonl:{number}", text) for number, text in enumerate(texts, start=1)]


def columns(of: Struct) -> dict[str, str]:
    return {field.name: str(field.type) for field in of.fields}


def test_records_become_an_avro_schema_that_encodes_each_of_them() -> None:
    found = lines(*RECORDS)
    text = avro_schema(inferred(found), "Orders")
    fields: dict[str, Any] = {field["name"]: field["type"] for field in json.loads(text)["fields"]}
    assert {name: kind for name, kind in fields.items() if name not in ("items", "to")} == {
        "id": "long",
        "amount": "double",
        "paid": "boolean",
        "note": ["null", "string"],
        "tags": {"type": "array", "items": "string"},
    }
    assert fields["to"] == [
        "null",
        {"type": "record", "name": "Orders_to", "fields": [{"name": "city", "type": "string"}]},
    ]
    gift = {"name": "gift", "type": ["null", "boolean"], "default": None}
    item = {"type": "record", "name": "Orders_items_item", "fields": [{"name": "sku", "type": "string"}, gift]}
    assert fields["items"] == {"type": "array", "items": ["null", item]}
    values = AvroValues(text, "inferred")
    assert all(values.encoded(line.value) for line in found)


def test_both_languages_become_the_same_columns() -> None:
    of = inferred(lines(*RECORDS))
    in_avro = avro.row_type(avro.parse(avro_schema(of, "Orders")))
    in_json = row_type(parse(json_schema(of, "Orders")))
    assert columns(in_json) == columns(in_avro)
    assert json.loads(json_schema(of, "Orders"))["required"] == ["id", "amount", "paid", "items", "tags"]


def test_a_nested_object_that_is_null_in_some_records_requires_its_fields_all_the_same() -> None:
    of = inferred(lines('{"to": null}', '{"to": {"city": "x"}}', '{"to": {"city": "y", "zip": 1}}'))
    (to,) = json.loads(avro_schema(of, "O"))["fields"]
    assert [field["type"] for field in to["type"][1]["fields"]] == ["string", ["null", "long"]]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ('{"id": "x", "a": [1]}', "the field id is a string here ('x') and a long at o.jsonl:1"),
        ('{"id": 1, "a": ["x"]}', "the field a[] is a string here ('x') and a long at o.jsonl:1"),
        ('{"id": 1, "a": {"b": 1}}', "the field a is a record here ({'b': 1}) and an array at o.jsonl:1"),
        ('{"id": true, "a": []}', "the field id is a boolean here (True) and a long at o.jsonl:1"),
        ('{"id": 9223372036854775808, "a": []}', "the field id has more than 64 bits"),
        ("[1]", "the record is no object"),
        ("null", "the record is no object"),
    ],
)
def test_a_conflict_names_the_field_and_both_lines(second: str, why: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        inferred(lines('{"id": 7, "a": [1]}', second))
    assert str(wrong.value).startswith(f"o.jsonl:2: {why}")


@pytest.mark.parametrize("values", [("9007199254740993", "0.5"), ("0.5", "9007199254740993")])
def test_no_number_loses_digits_beside_a_fraction(values: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput, match=r"a whole number that no double holds"):
        inferred(lines(*(f'{{"a": {value}}}' for value in values)))


def test_a_name_that_avro_does_not_allow_is_refused() -> None:
    of = inferred(lines('{"order": {"order-id": 1}}'))
    with pytest.raises(InvalidInput, match=r"order\.order-id: Avro allows no field 'order-id'"):
        avro_schema(of, "Orders")
    assert "order-id" in json_schema(of, "Orders")


def test_a_topic_names_its_records() -> None:
    assert [record_name(topic) for topic in ("orders", "shop.public-orders", "2024", "_")] == [
        "Orders",
        "ShopPublicOrders",
        "Topic2024",
        "Topic",
    ]
    assert record_name("orders", "Key") == "OrdersKey"
