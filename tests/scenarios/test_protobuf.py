"""Protobuf on a real broker, registry and table: what producers write is what the table holds."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from frazil.clients.registry.schemas import Reference, SchemaType
from frazil.declaration import Append, Changelog, Upsert
from frazil.declaration.options import Deletion, Tombstones
from frazil.declaration.write_modes import WriteMode
from frazil.errors import InvalidInput
from tests.support.proto import framed, protobuf
from tests.support.shop import Shop, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

ORDER = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
message Order {
  int32 order_id = 1;
  string user = 2;
  optional double amount = 3;
  Status status = 4;
  repeated Line lines = 5;
  map<string, int64> stock = 6;
  google.protobuf.Timestamp at = 7;
  oneof paid { Card card = 8; string voucher = 9; }
  google.protobuf.Struct extra = 10;
  enum Status { OPEN = 0; SHIPPED = 1; }
}
message Line { string sku = 1; uint32 quantity = 2; }
message Card { string last_four = 1; }
"""
TWO = """syntax = "proto3";
package shop;
message Placed { int32 order_id = 1; string user = 2; }
message Shipped { int32 order_id = 1; string carrier = 2; message Parcel { double weight = 1; } }
"""
FULL = {
    "orderId": 1,
    "user": "ada",
    "amount": 0.0,
    "status": "SHIPPED",
    "lines": [{"sku": "a", "quantity": 4_294_967_295}, {}],
    "stock": {"a": "9007199254740993"},
    "at": "2024-02-29T12:00:00.000001Z",
    "card": {"lastFour": "4242"},
    "extra": {"gift": True},
}


@pytest.fixture
def shop(shop_of: ShopOf) -> Shop:
    return shop_of(value_format="protobuf")


def register(shop: Shop, text: str, *references: Reference, subject: str = "") -> int:
    return shop.registry_admin.register(subject or f"{shop.topic}-value", text, SchemaType.PROTOBUF, references)


def by_id(shop: Shop) -> dict[int, dict[str, Any]]:
    return {row["order_id"]: row for row in shop.landed()}


def test_every_kind_of_field_lands(shop: Shop) -> None:
    schema_id = register(shop, ORDER)
    shop.produce([framed(schema_id, protobuf(ORDER, FULL)), framed(schema_id, protobuf(ORDER, {"voucher": "x"}))])
    assert shop.drain().written == 2
    full, empty = by_id(shop)[1], by_id(shop)[0]
    assert {name: value for name, value in full.items() if not name.startswith("_")} == {
        "order_id": 1,
        "user": "ada",
        "amount": 0.0,
        "status": "SHIPPED",
        "lines": [{"sku": "a", "quantity": 4_294_967_295}, {"sku": "", "quantity": 0}],
        "stock": [("a", 9_007_199_254_740_993)],
        "at": datetime(2024, 2, 29, 12, 0, 0, 1, UTC),
        "card": {"last_four": "4242"},
        "voucher": None,
        "extra": '{"gift":true}',
    }
    assert (empty["amount"], empty["status"], empty["lines"], empty["card"], empty["voucher"]) == (
        None, "OPEN", [], None, "x",
    )  # fmt: skip
    assert {row["_kafka_schema_id"] for row in shop.landed()} == {schema_id}
    shop.assert_each_record_once()


def test_a_field_is_its_number_whatever_its_name_is(shop_of: ShopOf) -> None:
    """Keys and values, also inside of lists; the registry forgets the first version in between."""
    shop = shop_of(value_format="protobuf", key_format="protobuf", write=Upsert())
    key = 'syntax = "proto3"; message Key { int32 order_id = 1; }'
    first = 'syntax = "proto3"; message R { int32 order_id = 1; string user = 2; repeated Line lines = 3; } '
    first += "message Line { string sku = 1; string lot = 2; }"
    second = first.replace("order_id", "number").replace("string user", "string customer").replace(" lines", " items")
    second = second.replace("string sku = 1; string lot = 2;", "string lot = 1; string sku = 2;")
    third = second.replace("string customer = 2;", "int32 points = 2;")

    def send(key_text: str, text: str, key: dict[str, Any], value: dict[str, Any]) -> None:
        key_id = register(shop, key_text, subject=f"{shop.topic}-key")
        body = framed(register(shop, text), protobuf(text, value))
        shop.produce([body], key=framed(key_id, protobuf(key_text, key)), partition=0)

    send(key, first, {"orderId": 1}, {"orderId": 1, "user": "ada", "lines": [{"sku": "a", "lot": "b"}]})
    send(key, first, {"orderId": 2}, {"orderId": 2, "user": "bob"})
    shop.drain()
    for subject in (f"{shop.topic}-key", f"{shop.topic}-value"):
        shop.registry_admin.delete_subject(subject)
        shop.registry_admin.delete_subject(subject, permanent=True)
    renamed = key.replace("order_id", "number")
    send(renamed, second, {"number": 1}, {"number": 1, "customer": "eve", "items": [{"lot": "c", "sku": "d"}]})
    send(renamed, third, {"number": 3}, {"number": 3, "points": 7})
    shop.drain()
    rows = {row["order_id"]: {n: v for n, v in row.items() if not n.startswith("_")} for row in shop.landed()}
    assert rows == {
        1: {"order_id": 1, "user": "eve", "lines": [{"sku": "c", "lot": "d"}], "points": None},
        2: {"order_id": 2, "user": "bob", "lines": [], "points": None},
        3: {"order_id": 3, "user": None, "lines": [], "points": 7},
    }


@pytest.mark.long
def test_each_bad_record_is_a_dead_letter_with_its_reason(shop: Shop) -> None:
    schema_id = register(shop, ORDER)
    foreign = register(shop, TWO, subject=f"{shop.topic}-elsewhere")
    good = protobuf(ORDER, FULL)
    bad = {
        "undecodable": framed(schema_id, good[:-1]),
        "bad_message_index": frame(schema_id, b"\x02\x81"),
        "unknown_schema": framed(2_000_000_000, good),
        "foreign_schema": framed(foreign, b""),
        "too_short": b"\0\0\0",
        "wrong_magic": good,
        "tombstone": None,
    }
    shop.produce([framed(schema_id, good), *bad.values(), framed(schema_id, good)])
    total = shop.drain()
    assert (total.written, total.rejected) == (2, dict.fromkeys(bad, 1))
    dead = {row["reason"]: row for row in shop.dead()}
    assert {reason: row["value"] for reason, row in dead.items()} == bad
    assert dead["bad_message_index"]["schema_id"] == schema_id
    shop.assert_each_record_once()


@pytest.mark.long
def test_message_types_of_one_file_land_side_by_side_when_they_are_met(shop: Shop) -> None:
    schema_id = register(shop, TWO)
    shop.produce([framed(schema_id, protobuf(TWO, {"orderId": 1, "user": "ada"}))])
    shop.drain()
    assert "carrier" not in shop.landed()[0]
    shipped = protobuf(TWO, {"orderId": 1, "carrier": "dhl"}, message="shop.Shipped")
    parcel = protobuf(TWO, {"weight": 1.5}, message="shop.Shipped.Parcel")
    long_form = frame(schema_id, b"\x02\x00" + protobuf(TWO, {"orderId": 3}))
    shop.produce([framed(schema_id, shipped, 1), framed(schema_id, parcel, 1, 0), long_form])
    shop.produce([framed(schema_id, b"", 7)])
    assert shop.drain().rejected == {"bad_message_index": 1}
    told = [(r["order_id"], r["user"], r["carrier"], r["weight"]) for r in shop.landed()]
    assert sorted(told, key=str) == sorted(
        [(1, "ada", None, None), (1, None, "dhl", None), (None, None, None, 1.5), (3, "", None, None)], key=str
    )
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_first_message_without_fields_does_not_hold_up_the_others(shop: Shop) -> None:
    schema_id = register(shop, TWO.replace("message Placed", "message Beat {}\nmessage Placed"))
    placed = protobuf(TWO, {"orderId": 1, "user": "ada"})
    shop.produce([framed(schema_id, b"", 0), framed(schema_id, placed, 1), framed(schema_id, b"", 0)])
    total = shop.drain()
    assert (total.written, total.rejected) == (1, {"unreadable_schema": 2})
    assert by_id(shop)[1]["user"] == "ada"
    assert {row["schema_id"] for row in shop.dead()} == {schema_id}
    shop.assert_each_record_once()


@pytest.mark.long
def test_an_import_is_resolved_by_reference_whatever_its_name(shop: Shop) -> None:
    money = 'syntax = "proto3"; package common; message Money { int64 units = 1; string currency = 2; }'
    order = """syntax = "proto3"; package shop; import "common/money.proto";
    message Order { int32 order_id = 1; common.Money price = 2; }"""
    subject = f"{shop.topic}-money"
    register(shop, money, subject=subject)
    schema_id = register(shop, order, Reference("common/money.proto", subject, 1))
    body = protobuf(
        order, {"orderId": 5, "price": {"units": "7", "currency": "EUR"}}, references={"common/money.proto": money}
    )
    shop.produce([framed(schema_id, body)])
    assert shop.drain().written == 1
    assert by_id(shop)[5]["price"] == {"units": 7, "currency": "EUR"}


MAPS = """syntax = "proto3";
message Row { map<int32, string> by_int = 1; map<bool, Part> by_bool = 2; repeated Part parts = 3; }
message Part { map<uint64, int64> by_long = 1; }
"""


@pytest.mark.parametrize(
    "write",
    [Append(on_tombstone=Tombstones.NULL_ROW), Upsert(), Upsert(on_tombstone=Deletion.SOFT_DELETE), Changelog()],
)
def test_a_map_may_have_keys_of_any_type(shop_of: ShopOf, write: WriteMode) -> None:
    """Spark reads no such map from JSON: that was how a tombstone's row was made. A driver that begins knows no writer."""
    shop = shop_of(value_format="protobuf", key_format="protobuf", write=write)
    key = 'syntax = "proto3"; message Key { int32 id = 1; }'
    key_id, schema_id = register(shop, key, subject=f"{shop.topic}-key"), register(shop, MAPS)
    keys = [framed(key_id, protobuf(key, {"id": number})) for number in range(2)]
    part = {"byLong": {"18446744073709551615": "5"}}
    value = protobuf(MAPS, {"byInt": {"-1": "a"}, "byBool": {"true": part}, "parts": [part]})
    shop.produce([framed(schema_id, value)], key=keys[0], partition=0)
    shop.produce([framed(schema_id, value)], key=keys[1], partition=0)
    assert shop.drain().written == 2
    shop.produce([None], key=keys[1], partition=0)
    shop.drain()
    rows = [row for row in shop.landed() if row["by_int"] is not None]
    assert dict(rows[0]["by_int"]) == {-1: "a"}
    assert [dict(each["by_long"]) for each in rows[0]["parts"]] == [{18446744073709551615: 5}]
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_message_that_does_not_fit_the_columns_is_kept_aside(shop: Shop) -> None:
    text = 'syntax = "proto3"; message A { int32 id = 1; } message B { string id = 1; }'
    schema_id = register(shop, text)
    shop.produce([framed(schema_id, b"\x08\x05"), framed(schema_id, b"\x0a\x01x", 1)])
    assert shop.drain().rejected == {"incompatible_schema": 1}
    (event, *_) = shop.seen("schema_incompatible")
    assert event["schema_id"] == schema_id
    assert json.dumps(event)


def test_a_helper_message_that_stands_first_is_no_row_where_the_records_message_is_declared(shop_of: ShopOf) -> None:
    text = """syntax = "proto3";
package shop;
message Customer { string id = 1; string name = 2; }
message Order { int64 id = 1; Customer customer = 2; }
"""
    shop = shop_of(value_format="protobuf", write=Upsert(key=("id",)))
    schema_id = register(shop, text)
    of_order = replace(shop.pipeline.topic, value=replace(shop.pipeline.topic.value, record_name="shop.Order"))
    value = protobuf(text, {"id": "5", "customer": {"id": "c"}}, message="shop.Order")
    shop.produce([framed(schema_id, value, 1)], key=b"5")
    with pytest.raises(InvalidInput, match=r"no version of the value has code.*record_name"):
        shop.drain(replace(shop.pipeline, write=Upsert(key=("code",))))
    of_none = replace(of_order, value=replace(of_order.value, record_name="shop.Ordr"))
    said = shop.drain(replace(shop.pipeline, topic=of_none)).waiting
    assert said.endswith("can be used: none has the message shop.Ordr (record_name)")
    shop.drain(replace(shop.pipeline, topic=of_order))
    assert [(row["id"], row["customer"]["id"]) for row in shop.landed()] == [(5, "c")]
