"""Keys of each format on a real broker and registry: `_kafka_key` holds the key with its own type."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import MetadataColumns, SubjectStrategy, Upsert
from frazil.declaration.options import ErrorMode, SchemaEvolution
from frazil.errors import IncompatibleSchema
from tests.support.proto import framed, protobuf
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.topics import varied

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

RECORD = {
    "type": "record",
    "name": "Key",
    "fields": [{"name": "id", "type": "int"}, {"name": "Region", "type": ["null", "string"], "default": None}],
}
WIDER = {**RECORD, "fields": [{"name": "id", "type": "long"}, RECORD["fields"][1], {"name": "shard", "type": "int"}]}  # type: ignore[index]


def register(shop: Shop, schema: str, kind: SchemaType = SchemaType.AVRO) -> int:
    return shop.registry_admin.register(f"{shop.topic}-key", schema, kind)


def keys(shop: Shop) -> list[Any]:
    return [row["_kafka_key"] for row in sorted(shop.landed(), key=lambda row: int(row["order_id"]))]


def produce(shop: Shop, *given: bytes | None) -> None:
    schema_id = shop.register()
    for number, key in enumerate(given):
        shop.produce(shop.orders(1, schema_id, first=number), key=key)


@pytest.mark.parametrize(
    ("key_format", "good", "value", "bad"),
    [
        ("text", "grüße".encode(), "grüße", b"\xff"),
        ("json", b'{"a":1}', '{"a":1}', b'{"a":1'),
        ("bytes", b"\xff", b"\xff", None),
    ],
)
def test_a_key_without_schema_is_a_value(
    shop_of: ShopOf, key_format: str, good: bytes, value: Any, bad: bytes | None
) -> None:
    shop = shop_of(key_format=key_format)
    produce(shop, good, None, *([bad] if bad else []))
    total = shop.drain()
    assert total.rejected == ({"key_undecodable": 1} if bad else {})
    assert keys(shop) == [value, None]
    assert [row["key"] for row in shop.dead()] == ([bad] if bad else [])
    shop.assert_each_record_once()


def test_a_key_that_is_a_record_is_a_struct(shop_of: ShopOf) -> None:
    shop = shop_of(key_format="avro")
    key_id = register(shop, json.dumps(RECORD))
    produce(shop, frame(key_id, avro(RECORD, {"id": 7, "Region": "eu"})), frame(key_id, avro(RECORD, {"id": 8})), None)
    assert shop.drain().written == 3
    assert keys(shop) == [{"id": 7, "region": "eu"}, {"id": 8, "region": None}, None]
    shop.assert_each_record_once()


@pytest.mark.long
@pytest.mark.parametrize(
    ("schema", "value", "kind"), [('"long"', 2**40, "long"), ('"string"', "k", "string")], ids=["long", "string"]
)
def test_a_key_that_is_one_value_is_that_value(shop_of: ShopOf, schema: str, value: Any, kind: str) -> None:
    shop = shop_of(key_format="avro")
    produce(shop, frame(register(shop, schema), avro({"type": kind}, value)))
    assert shop.drain().written == 1
    assert keys(shop) == [value]
    assert str(shop.stored.schema().find_field("_kafka_key").field_type) == kind


@pytest.mark.long
@pytest.mark.parametrize("layout", MetadataColumns)
def test_a_keys_column_evolves_as_a_values_does(shop_of: ShopOf, layout: MetadataColumns) -> None:
    shop = shop_of(key_format="avro", table={"metadata_columns": layout})
    first = register(shop, json.dumps(RECORD))
    produce(shop, frame(first, avro(RECORD, {"id": 1})))
    shop.drain()
    second = register(shop, json.dumps(WIDER))
    produce(shop, frame(first, avro(RECORD, {"id": 2})), frame(second, avro(WIDER, {"id": 2**40, "shard": 3})))
    assert shop.drain().written == 2
    found = [row["_kafka_key"] if "_kafka_key" in row else row["_kafka"]["key"] for row in shop.landed()]
    assert sorted(found, key=lambda key: int(key["id"])) == [
        {"id": 1, "region": None, "shard": None},
        {"id": 2, "region": None, "shard": None},
        {"id": 2**40, "region": None, "shard": 3},
    ]


@pytest.mark.long
def test_a_key_of_a_schema_that_does_not_fit_is_a_dead_letter(shop_of: ShopOf) -> None:
    shop = shop_of(key_format="avro", table={"schema_evolution": SchemaEvolution.ADD_COLUMNS})
    first = register(shop, json.dumps(RECORD))
    produce(shop, frame(first, avro(RECORD, {"id": 1})))
    shop.drain()
    shop.registry_admin.set_compatibility("NONE", f"{shop.topic}-key")
    wider, text = register(shop, json.dumps(WIDER)), register(shop, '"string"')
    foreign = shop.register()
    bad = [
        frame(wider, avro(WIDER, {"id": 2, "shard": 3})),
        frame(text, avro({"type": "string"}, "x")),
        frame(foreign, b""),
        frame(2_000_000_000, b""),
    ]
    produce(shop, *bad, frame(first, avro(RECORD, {"id": 9})))
    total = shop.drain()
    assert (total.written, total.rejected) == (1, {"key_schema": 4})
    assert sorted(row["key"] for row in shop.dead()) == sorted(bad)
    shop.assert_each_record_once()


@pytest.mark.long
def test_what_is_wrong_with_the_value_is_told_first(shop_of: ShopOf) -> None:
    shop = shop_of(key_format="text")
    shop.register()
    shop.produce([b"bad!!", None], key=b"\xff")
    assert shop.drain().rejected == {"wrong_magic": 1, "tombstone": 1}


@pytest.mark.long
def test_a_topic_whose_key_has_no_schema_yet_waits_for_it(shop_of: ShopOf) -> None:
    shop = shop_of(key_format="avro", subject_strategy=SubjectStrategy.TOPIC)
    produce(shop, None)
    assert shop.drain().read == 0
    register(shop, json.dumps(RECORD))
    assert shop.drain().written == 1


@pytest.mark.long
def test_a_key_format_that_does_not_fit_a_table_that_stands_is_refused(shop_of: ShopOf) -> None:
    shop = shop_of()
    produce(shop, b"k")
    shop.drain()
    changed = replace(shop.pipeline, topic=varied(shop.pipeline.topic, key_format="text"))
    with pytest.raises(IncompatibleSchema, match="_kafka_key"):
        shop.drain(changed)
    back = replace(changed, topic=varied(changed.topic, key_format="bytes"))
    assert shop.drain(back).rejected == {}


@pytest.mark.long
def test_a_state_has_keys_of_one_message(shop_of: ShopOf) -> None:
    """Two messages with the same fields are two keys; the file may have the value's message first."""
    messages = "message Order { int32 order_id = 1; string user = 2; } message Key { int32 order_id = 1; } message Refund { int32 order_id = 1; }"
    file = f'syntax = "proto3"; {messages}'
    shop = shop_of(key_format="protobuf", key_record_name="Key", write=Upsert(), on_error=ErrorMode.DEAD_LETTER)
    key_id, schema_id = register(shop, file, SchemaType.PROTOBUF), shop.register()
    for number, (message, path) in enumerate([("Key", 1), ("Refund", 2), ("Key", 1)]):
        key = framed(key_id, protobuf(file, {"order_id": number % 2}, message=message), path)
        shop.produce(shop.orders(1, schema_id, first=number % 2), key=key, partition=0)
    assert shop.drain().rejected == {"key_schema": 1}
    assert [row["order_id"] for row in shop.landed()] == [0]
