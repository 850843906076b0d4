"""JSON Schema on a real broker, registry and table: what producers write is what the table holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow.parquet as parquet
import pytest

from frazil.clients.registry.schemas import Reference, SchemaType
from frazil.declaration import ErrorMode, Upsert
from tests.support.shop import Shop, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

ORDER: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "orderId": {"type": "integer", "description": "unique"},
        "user": {"type": ["string", "null"]},
        "amount": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
        "stock": {"type": "object", "additionalProperties": {"type": "integer"}},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "extra": {},
    },
    "required": ["orderId"],
    "definitions": {
        "Line": {"type": "object", "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer"}}}
    },
}
FULL = {
    "orderId": 2**53 + 1,
    "user": "grüße",
    "amount": 0.5,
    "lines": [{"sku": "a", "quantity": 2}, {"quantity": None}],
    "stock": {"a": 1},
    "day": "2024-02-29",
    "at": "2024-02-29T12:00:00.25+02:00",
    "extra": {"gift": [True, None]},
    "unknown": "left out",
}


@pytest.fixture
def shop(shop_of: ShopOf) -> Shop:
    return shop_of(value_format="json_schema")


def register(shop: Shop, schema: Any, *references: Reference, subject: str = "") -> int:
    return shop.registry_admin.register(
        subject or f"{shop.topic}-value", json.dumps(schema), SchemaType.JSON, references
    )


def framed(schema_id: int, value: Any) -> bytes:
    return frame(schema_id, json.dumps(value).encode())


def own(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_")}


def stored(shop: Shop) -> list[dict[str, Any]]:
    """The rows as the data files have them: of a list of structs that is null, PyIceberg 0.12 makes an empty one."""
    tasks = shop.stored.scan().plan_files()
    return [r for task in tasks for r in parquet.read_table(task.file.file_path.removeprefix("file:")).to_pylist()]


def by_id(shop: Shop) -> dict[int, dict[str, Any]]:
    return {row["orderid"]: own(row) for row in shop.landed()}


def test_every_kind_of_property_lands(shop: Shop) -> None:
    schema_id = register(shop, ORDER)
    shop.produce([framed(schema_id, FULL), framed(schema_id, {"orderId": 1, "user": None, "amount": None})])
    assert shop.drain().written == 2
    rows = by_id(shop)
    assert rows[2**53 + 1] == {
        "orderid": 2**53 + 1,
        "user": "grüße",
        "amount": 0.5,
        "lines": [{"sku": "a", "quantity": 2}, {"sku": None, "quantity": None}],
        "stock": [("a", 1)],
        "day": date(2024, 2, 29),
        "at": datetime(2024, 2, 29, 10, 0, 0, 250_000, UTC),
        "extra": '{"gift":[true,null]}',
    }
    assert {**rows[1], "lines": None} == {**dict.fromkeys(rows[1]), "orderid": 1}
    assert [row["lines"] for row in stored(shop) if row["orderid"] == 1] == [None]
    shop.assert_each_record_once()


@pytest.mark.long
def test_integers_with_a_fraction_of_zero_land_and_a_batch_is_staged_again_for_the_first_of_them_only(
    shop: Shop,
) -> None:
    schema_id = register(shop, ORDER)
    values = [{"orderId": 1}, {"orderId": 2.0, "lines": [{"quantity": 3.0}]}, {"orderId": 2.5}]
    shop.produce([framed(schema_id, value) for value in values])
    total = shop.drain()
    assert (total.written, sum(total.rejected.values())) == (2, 1)
    assert by_id(shop)[2]["lines"] == [{"sku": None, "quantity": 3}]
    assert len(shop.seen("batch_retried")) == 1
    shop.assert_each_record_once()


@pytest.mark.long
def test_rejected_records_stage_no_batch_again(shop: Shop) -> None:
    schema_id = register(shop, ORDER)
    shop.produce([framed(schema_id, value) for value in ({"orderId": 1}, {"orderId": 2}, {"orderId": 2.5})])
    assert shop.drain().written == 2
    assert not shop.seen("batch_retried")
    shop.assert_each_record_once()


def test_a_reference_to_another_subject_is_followed(shop: Shop) -> None:
    address = {"type": "object", "properties": {"city": {"type": "string"}}}
    subject = f"{shop.topic}-address"
    register(shop, address, subject=subject)
    order = {"type": "object", "properties": {"orderId": {"type": "integer"}, "to": {"$ref": "address.json"}}}
    schema_id = register(shop, order, Reference("address.json", subject, 1))
    shop.produce([framed(schema_id, {"orderId": 1, "to": {"city": "Bern"}})])
    assert shop.drain().written == 1
    assert by_id(shop)[1]["to"] == {"city": "Bern"}


@pytest.mark.long
def test_a_version_in_another_language_is_unreadable_and_the_rest_flows(shop: Shop) -> None:
    schema_id = register(shop, ORDER)
    shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
    avro = shop.registry_admin.register(f"{shop.topic}-value", '{"type": "record", "name": "A", "fields": []}')
    shop.produce([framed(schema_id, {"orderId": 1}), frame(avro, b"")])
    assert shop.drain().rejected == {"unreadable_schema": 1}
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_schema_of_no_object_lands_in_the_column_value(shop: Shop) -> None:
    schema_id = register(shop, {"$schema": ORDER["$schema"], "type": "array", "items": {"type": "integer"}})
    shop.produce([framed(schema_id, [1, 2]), framed(schema_id, {"a": 1})])
    assert shop.drain().rejected == {"undecodable": 1}
    assert [own(row) for row in shop.landed()] == [{"value": [1, 2]}]


def test_columns_have_the_types_and_comments_of_the_schema(shop: Shop) -> None:
    register(shop, ORDER)
    shop.drain()
    found = shop.stored.schema()
    assert {f.name: str(f.field_type) for f in found.fields if f.name in ("orderid", "amount", "day", "at")} == {
        "orderid": "long", "amount": "double", "day": "date", "at": "timestamptz",
    }  # fmt: skip
    assert found.find_field("orderid").doc == "unique"


DRAFT = "http://json-schema.org/draft-07/schema#"  # Apicurio takes it for JSON Schema only with this
OPTIONAL: dict[str, Any] = {
    "$schema": DRAFT,
    "oneOf": [
        {"type": "null"},
        {"type": "object", "title": "Order", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}},
    ],
}
"""As Confluent's JSON Schema converter writes an optional struct of Kafka Connect."""


@pytest.mark.long
def test_null_is_no_value_where_the_schema_has_an_optional_object(shop: Shop) -> None:
    optional = register(shop, OPTIONAL)
    shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-value")
    required = register(shop, OPTIONAL["oneOf"][1])
    shop.produce([framed(optional, {"id": 1, "name": "a"}), framed(optional, None), frame(optional, b" null\n")])
    shop.produce([framed(required, {"id": 2}), framed(required, None), framed(optional, {"id": None}), None])
    shop.produce([framed(optional, "null"), frame(optional, b"nul"), frame(optional, b"null null")])
    assert shop.drain().rejected == {"tombstone": 3, "undecodable": 4}
    assert sorted((row["id"] or 0, row["name"]) for row in shop.landed()) == [(0, None), (1, "a"), (2, None)]
    letters = [row for row in shop.dead() if row["reason"] == "tombstone"]
    kept = sorted((row["schema_id"] or 0, row["value"] or b"") for row in letters)
    assert kept == [(0, b""), (optional, frame(optional, b" null\n")), (optional, framed(optional, None))]


@pytest.mark.long
def test_keys_and_values_may_be_optional_objects(shop_of: ShopOf) -> None:
    keyed = {"key_format": "json_schema", "write": Upsert(), "on_error": ErrorMode.DEAD_LETTER}
    shop = shop_of(value_format="json_schema", **keyed)
    of_key = {
        "$schema": DRAFT,
        "oneOf": [{"type": "null"}, {"type": "object", "properties": {"id": {"type": "integer"}}}],
    }
    optional, key_id = register(shop, OPTIONAL), register(shop, of_key, subject=f"{shop.topic}-key")
    for number, value in ((1, "a"), (2, "b"), (1, None), (2, "c")):
        body = framed(optional, None if value is None else {"id": number, "name": value})
        shop.produce([body], key=framed(key_id, {"id": number}), partition=0)
    shop.produce([framed(optional, {"id": 3, "name": "no key"})], key=framed(key_id, None), partition=0)
    assert shop.drain().rejected == {"key_missing": 1}
    assert [(row["id"], row["name"]) for row in shop.landed()] == [(2, "c")]
    shop.assert_proven(deep=True)
