"""Schema ids in the records' headers, as current Confluent clients write them, for each format; the registry has GUIDs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration.environment import Environment
from frazil.local.services import LocalServices, Part
from frazil.schemas.wire_format import KEY_HEADER, VALUE_HEADER, guid_header
from tests.support.proto import protobuf
from tests.support.registry_server import RegistryServer
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

PROTO = 'syntax = "proto3"; message Other { int32 x = 1; } message Order { int32 order_id = 1; string user = 2; }'
OBJECT = {"type": "object", "properties": {"order_id": {"type": "integer"}, "user": {"type": "string"}}}
ADDED = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
UNKNOWN = "00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.fixture
def guid_shop_of(
    local_world: LocalServices, registry: RegistryServer, spark: SparkSession, lake_environment: Environment, name: str
) -> ShopOf:
    """Makes a shop whose schemas are in that registry."""
    world = replace(local_world, addresses={**local_world.addresses, Part.REGISTRY: {"url": registry.url}})
    return lambda **declared: Shop(world, spark, lake_environment, name, **declared)


def body(number: int) -> bytes:
    return avro(ORDER, {"order_id": number, "user": "ada", "amount": None})


def in_header(guid: str, path: tuple[int, ...] | None = None, name: str = VALUE_HEADER) -> list[tuple[str, bytes]]:
    return [("trace", b"1"), (name, guid_header(guid, path))]


@pytest.mark.parametrize("headers", [True, False], ids=["headers kept", "headers not kept"])
def test_records_whose_header_names_the_schema_land_beside_framed_ones(
    guid_shop_of: ShopOf, registry: RegistryServer, headers: bool
) -> None:
    shop = guid_shop_of(headers=headers)
    schema_id = shop.register()
    guid = registry.store.guid(schema_id)
    shop.produce([body(1)], headers=in_header(guid))
    shop.produce([frame(schema_id, body(2))])
    shop.produce([body(3)], headers=[(VALUE_HEADER, b"\0" + schema_id.to_bytes(4, "big"))])
    shop.produce([frame(schema_id, body(4))], headers=[(KEY_HEADER, guid_header(guid))])
    assert shop.drain().written == 4
    rows = {row["order_id"]: row for row in shop.landed()}
    assert sorted(rows) == [1, 2, 3, 4]
    assert {row["_kafka_schema_id"] for row in rows.values()} == {schema_id}
    assert bool(rows[1]["_kafka_headers"]) is headers
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_guid_that_is_met_before_its_version_was_known_lands_all_the_same(
    guid_shop_of: ShopOf, registry: RegistryServer
) -> None:
    shop = guid_shop_of()
    registry.store.register(f"{shop.topic}-value", json.dumps(ORDER))
    late: list[int] = []

    def register_late(step: str) -> None:
        if step == "stage.started" and not late:
            late.append(shop.register(ADDED))

    value = avro(ADDED, {"order_id": 1, "user": "ada", "amount": None, "note": "x"})
    guid = registry.store.guid(registry.store.register("elsewhere", json.dumps(ADDED)))
    shop.produce([value], headers=in_header(guid))
    assert shop.drain(failpoint=register_late).written == 1
    assert [row["note"] for row in shop.landed()] == ["x"]


@pytest.mark.long
def test_a_header_that_names_no_schema_of_ours_makes_a_dead_letter_with_its_reason(
    guid_shop_of: ShopOf, registry: RegistryServer
) -> None:
    shop = guid_shop_of()
    schema_id = shop.register()
    guid = registry.store.guid(schema_id)
    foreign = registry.store.guid(registry.store.register("elsewhere", json.dumps(ADDED)))
    given: dict[str, tuple[bytes, bytes]] = {
        "unknown_schema": (body(1), guid_header(UNKNOWN)),
        "foreign_schema": (body(1), guid_header(foreign)),
        "undecodable": (body(1)[:-1], guid_header(guid)),
        "header_too_short": (body(1), guid_header(guid)[:16]),
        "header_wrong_magic": (body(1), guid.encode()),
    }
    for value, header in given.values():
        shop.produce([value], headers=[(VALUE_HEADER, header)])
    assert shop.drain().rejected == dict.fromkeys(given, 1)
    dead = {row["reason"]: row for row in shop.dead()}
    assert {reason: row["value"] for reason, row in dead.items()} == {r: value for r, (value, _) in given.items()}
    assert dead["unknown_schema"]["headers"] == [{"key": VALUE_HEADER, "value": guid_header(UNKNOWN)}]
    shop.assert_each_record_once()


@pytest.mark.long
@pytest.mark.parametrize(
    ("value_format", "schema", "kind", "made", "path"),
    [
        pytest.param(
            *("json_schema", json.dumps(OBJECT), SchemaType.JSON, b'{"order_id": 7, "user": "ada"}', None),
            id="json_schema",
        ),
        pytest.param("protobuf", PROTO, SchemaType.PROTOBUF, None, (1,), id="protobuf"),
    ],
)
def test_other_formats_have_it_in_the_header_too(
    guid_shop_of: ShopOf,
    registry: RegistryServer,
    value_format: str,
    schema: str,
    kind: SchemaType,
    made: bytes | None,
    path: tuple[int, ...] | None,
) -> None:
    shop = guid_shop_of(value_format=value_format)
    guid = registry.store.guid(registry.store.register(f"{shop.topic}-value", schema, kind))
    value = made or protobuf(PROTO, {"orderId": 7, "user": "ada"}, message="Order")
    shop.produce([value, value[:-1] + b"\xff"], headers=in_header(guid, path))
    total = shop.drain()
    assert (total.written, total.rejected) == (1, {"undecodable": 1})
    assert [(row["order_id"], row["user"]) for row in shop.landed()] == [(7, "ada")]


@pytest.mark.long
def test_a_key_has_its_own_header(guid_shop_of: ShopOf, registry: RegistryServer) -> None:
    shop = guid_shop_of(key_format="avro")
    value_guid = registry.store.guid(shop.register())
    key_guid = registry.store.guid(registry.store.register(f"{shop.topic}-key", '"long"'))
    headers: Any = [*in_header(value_guid), *in_header(key_guid, name=KEY_HEADER)]
    shop.produce([body(1)], key=avro({"type": "long"}, 2**40), headers=headers)
    shop.produce([body(2)], key=b"\xff", headers=headers)
    total = shop.drain()
    assert (total.written, total.rejected) == (1, {"key_undecodable": 1})
    assert [row["_kafka_key"] for row in shop.landed()] == [2**40]
