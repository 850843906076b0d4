"""The schema of a file's records fits each of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import InvalidInput
from frazil.inference.inferred_schema import avro_schema, columns, json_schema, record_name
from frazil.inference.record_file import Line
from frazil.inference.sample import Place, Sample
from frazil.local.produce.encoders import avro_encoder
from frazil.schemas import avro
from frazil.schemas.declared_columns import declared_type
from frazil.schemas.json.documents import parse
from frazil.schemas.json.json_schema import row_type

RECORDS = (
    '{"id": 1, "amount": 5, "paid": true, "items": [{"sku": "a"}], "note": null, "tags": []}',
    '{"id": 2, "amount": 2.5, "paid": false, "items": [{"sku": "b", "gift": true}, null], "tags": [], "to": {"city": "x"}}',
)


def lines(*texts: str) -> list[Line]:
    return [Line(f"o.jsonl:{number}", text) for number, text in enumerate(texts, start=1)]


def sampled(*texts: str) -> Place:
    return Sample.of(lines(*texts)).found


def test_records_become_an_avro_schema_that_encodes_each_of_them() -> None:
    text = avro_schema(sampled(*RECORDS), "Orders")
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
    encoder = avro_encoder(Line("inferred", text))
    assert all(encoder.encode(line) for line in lines(*RECORDS))


def test_both_languages_become_the_same_columns() -> None:
    of = sampled(*(record.replace('"note": null, "tags": []', '"tags": ["x"]') for record in RECORDS))
    rows = avro.row_type(avro.parse(avro_schema(of, "O"))), row_type(parse(json.dumps(json_schema(of, "O"))))
    in_avro, in_json = ({field.name: str(field.type) for field in row.fields} for row in rows)
    assert in_json == {**in_avro, "tags": "list<string>"}


def test_a_nested_object_that_is_null_in_some_records_requires_its_fields_all_the_same() -> None:
    of = sampled('{"to": null}', '{"to": {"city": "x"}}', '{"to": {"city": "y", "zip": 1}}')
    (to,) = json.loads(avro_schema(of, "O"))["fields"]
    assert [field["type"] for field in to["type"][1]["fields"]] == ["string", ["null", "long"]]


def test_a_name_that_avro_does_not_allow_is_refused() -> None:
    of = sampled('{"order": {"order-id": 1}}')
    with pytest.raises(InvalidInput, match=r"order\.order-id: Avro allows no field 'order-id'"):
        avro_schema(of, "Orders")
    assert "order-id" in json_schema(of, "Orders")["properties"]["order"]["properties"]


def test_a_topic_names_its_records() -> None:
    assert [record_name(topic) for topic in ("orders", "shop.public-orders", "2024", "_")] == [
        "Orders",
        "ShopPublicOrders",
        "Topic2024",
        "Topic",
    ]
    assert record_name("orders", "Key") == "OrdersKey"


def test_columns_say_what_the_values_showed() -> None:
    records = [
        {"id": 1, "at": "2026-01-01T00:00:00Z", "day": "2026-01-01", "tags": ["a"], "to": {"no": 1, "x y": 1.5}},
        {"id": 2, "mixed": 1, "never": None, "empty": [], "two words": True},
        {"id": 3, "mixed": "a", "to": {"z": [{"b": 9007199254740993}]}},
    ]
    found = columns(sampled(*map(json.dumps, records)))
    assert found == (
        "id long",
        "at timestamptz",
        "day date",
        "tags list<string>",
        "to struct<no: long, `x y`: double, z: list<struct<b: long>>>",
        "mixed json",
        "`two words` boolean",
    )
    assert [field.name for field in declared_type(found).fields][-1] == "two words", "a declaration takes them"
    assert columns(sampled("[1]")) == ()
