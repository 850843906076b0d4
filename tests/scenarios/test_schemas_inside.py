"""Topics of Kafka Connect's JSON whose columns are those of the schema in each record, on a real broker."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from frazil.declaration import Append, Debezium, ErrorMode, Latest, Upsert
from frazil.decode.writers import embedded_writers
from frazil.errors import InvalidInput
from tests.scenarios.test_debezium import check, land
from tests.scenarios.test_debezium_json import LARGE, NAMES, debezium
from tests.support.connect_events import ORDERS, ConnectSource, Written
from tests.support.connect_schemas import decimal, field, struct
from tests.support.debezium_events import PLACEHOLDER
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
FORMATS = {"value_format": "connect_json", "key_format": "connect_json"}


def shop_with(shop_of: ShopOf, **declared: Any) -> Shop:
    return debezium(shop_of, **{**FORMATS, **declared})


def source_of(shop: Shop, *columns: Any, **more: Any) -> ConnectSource:
    return ConnectSource(shop, columns or ORDERS, written=Written.CONNECT_JSON, **more)


def record(schema: Any, payload: Any, **dumps: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}, **{"separators": (",", ":"), **dumps}).encode()


def test_the_columns_are_those_of_the_schemas_in_the_records(shop_of: ShopOf) -> None:
    """Of each version, from the first record on, in a batch with several of them and in a run that knows none."""
    shop = shop_with(shop_of, envelope=Debezium(source_column=True))
    source = source_of(shop, *LARGE, partitions=2)
    for number in range(5):
        source.write("r", number, customer=f"c{number}", note="n", blob=b"b", tags=["t", None], at=7, price=b"\x7b")
    land(source, *NAMES)
    assert list(shop.landed()[0])[:7] == [*NAMES, "at", "price"]
    source.write("u", 1, customer="left out", note=PLACEHOLDER, blob=PLACEHOLDER.encode(), tags=[PLACEHOLDER], at=8)
    source.evolve((*LARGE[:-1], decimal("price", 20, 2), field("day", "int32", "io.debezium.time.Date")))
    source.write("c", 7, customer="new", tags=[], price=b"\x7f" * 8, day=20_454)
    source.delete(2)
    source.delete(3, event=False)
    source.write("u", 4, customer="é", price=-0.42)  # as decimal.format=NUMERIC writes it
    land(source, *NAMES)
    found = {row["id"]: (row["at"], row["price"], row["day"]) for row in shop.landed()}
    at = datetime(1970, 1, 1, microsecond=7)
    assert found == {
        0: (at, Decimal("1.23"), None),
        1: (at.replace(microsecond=8), None, None),
        4: (None, Decimal("-0.42"), None),
        7: (None, Decimal("91872019504357374.71"), date(2026, 1, 1)),
    }
    assert max(row["_source"]["lsn"] for row in shop.landed()) == source.lsn
    shop.assert_proven(deep=True)


def test_another_writers_blanks_and_order_change_no_row(shop_of: ShopOf) -> None:
    """Only a known text at the beginning of a record spares its parsing."""
    shop = shop_with(shop_of, on_error=ErrorMode.DEAD_LETTER)
    source = source_of(shop, *ORDERS, field("payload", "string"))
    source.write("r", 1, customer="first", payload="p")
    event, key = json.loads(source.event("u", {"id": 2, "customer": "ü", "note": None, "payload": "q"})), source.key(2)
    shop.produce([json.dumps(event).encode()], key=json.dumps(json.loads(key)).encode(), partition=0)
    behind = {"payload": event["payload"] | {"after": {"id": 3, "customer": "behind"}}, "schema": event["schema"]}
    shop.produce([json.dumps(behind).encode()], key=source.key(3), partition=0)
    more = record(event["schema"], event["payload"] | {"after": {"id": 4, "customer": "more"}})[:-1] + b',"other":{}}'
    shop.produce([more, more + b"x"], key=source.key(4), partition=0)
    assert shop.drain().rejected == {"undecodable": 1}
    rows = sorted((row["id"], row["customer"], row["payload"]) for row in shop.landed())
    assert rows == [(1, "first", "p"), (2, "ü", "q"), (3, "behind", None), (4, "more", None)]


def test_a_pipeline_waits_for_the_first_record_with_a_schema(shop_of: ShopOf) -> None:
    """And then lands those before it, too."""
    shop = shop_with(shop_of)
    source = source_of(shop)
    shop.drain()
    assert "waiting for a record that has its schema in its value" in shop.seen("idle")[-1]["message"]
    source.delete(1, event=False)
    shop.drain()
    assert "waiting for a record that has its schema in its value" in shop.seen("idle")[-1]["message"]
    source.write("c", 1, customer="new")
    source.write("c", 2, customer="other")
    land(source, "id", "customer")
    shop.drain()  # all records are landed, and the columns are known from those before
    source.delete(2, event=False)
    land(source, "id", "customer")
    shop.assert_proven(deep=True)


def test_the_end_of_a_topic_has_a_schema_for_a_start_at_its_end(shop_of: ShopOf) -> None:
    shop = shop_with(shop_of, start=Latest())
    source = source_of(shop)
    source.write("c", 1, customer="before")
    shop.drain()
    source.write("c", 2, customer="behind")
    shop.drain()
    assert [row["id"] for row in shop.landed()] == [2]


def test_schemas_that_do_not_fit_and_records_without_one_are_dead_letters(shop_of: ShopOf) -> None:
    shop = shop_with(shop_of, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    source = source_of(shop)
    source.write("c", 1, customer="lands")
    shop.drain()
    good = json.loads(source.event("c", {"id": 9, "customer": "x"}))
    source.produce(2, record(None, good["payload"]))
    source.produce(2, b'{"payload":{}}')
    source.produce(2, b"not JSON")
    source.produce(2, record("", good["payload"]))
    source.produce(2, record({"type": "int128"}, 1))
    half = b'"doc":"\\ud800","field":"customer"'  # of a surrogate pair
    source.produce(2, source.event("c", {"id": 2}).replace(b'"field":"customer"', half))
    source.evolve((ORDERS[0], field("customer", "int64"), ORDERS[2]))
    source.write("c", 3, customer=7)
    value = source.event("c", {"id": 4})
    shop.produce([value], key=record(struct("K", [field("id", "string", optional=False)]), {"id": "4"}), partition=0)
    shop.produce([value], key=b'{"id":4}', partition=0)
    assert shop.drain().rejected == {"undecodable": 3, "unreadable_schema": 3, "incompatible_schema": 3}
    assert [row["customer"] for row in shop.landed()] == ["lands"]


def test_a_schema_for_each_record_stops_the_pipeline(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_writers, "MOST", 4)
    shop = shop_with(shop_of)
    source = source_of(shop)
    for number in range(6):
        source.evolve((*ORDERS[:2], field("note", "string", doc=f"at {number}")))
        source.write("c", number)
    with pytest.raises(InvalidInput, match=r"more than 4 schemas.*Declare the columns"):
        shop.drain()


def test_a_first_record_of_another_kind_keeps_no_pipeline_from_its_rows(shop_of: ShopOf) -> None:
    """Neither in the run that read its schema in vain, nor with an envelope that unwraps it not."""
    shop = shop_with(shop_of, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    source = source_of(shop)
    source.produce(1, record({"type": "int128"}, 1))
    ingestion = shop.ingestion()
    assert not ingestion.poll()
    schema = struct("T", [field(name, "string") for name in ("id", "status", "event_count", "data_collections")])
    source.produce(1, record(schema, {"id": "1"}))
    source.write("c", 1, customer="lands")
    assert ingestion.poll()
    check(source, "id", "customer")
    shop.assert_proven(deep=True)


def test_values_and_keys_that_are_no_structs_are_one_column(shop_of: ShopOf) -> None:
    shop = shop_of(**FORMATS, write=Append())
    at = field("", "int64", "org.apache.kafka.connect.data.Timestamp", optional=False)
    shop.produce([record(at, 7), record(at, 8)], key=record({"type": "string", "optional": False}, "k"), partition=0)
    shop.drain()
    rows = sorted(shop.landed(), key=lambda row: row["_kafka_offset"])
    assert [row["value"] for row in rows] == [datetime(1970, 1, 1, 0, 0, 0, ms * 1000, UTC) for ms in (7, 8)]
    assert {row["_kafka_key"] for row in rows} == {"k"}


def test_bytes_that_only_end_like_a_null_payload_delete_no_row(shop_of: ShopOf) -> None:
    shop = shop_of(**FORMATS, write=Upsert(), on_error=ErrorMode.DEAD_LETTER)
    row, key = struct("V", [field("name", "string")], optional=True), record({"type": "int32", "optional": False}, 1)
    none = record(row, None)
    shop.produce([record(row, {"name": "a"})], key=key, partition=0)
    bad = [b'garbage "payload":null}', none[1:], none.replace(b'"type"', b'"type":,'), none + none]
    shop.produce(bad, key=key, partition=0)
    no_key = record({"type": "int32", "optional": True}, None)
    shop.produce([b"no JSON"], key=no_key, partition=0)
    assert shop.drain().rejected == {"undecodable": 5}
    assert [row["name"] for row in shop.landed()] == ["a"]
    assert sorted((row["value"], row["key"]) for row in shop.dead()) == sorted(
        [*((value, key) for value in bad), (b"no JSON", no_key)]
    )
    shop.produce([none], key=key, partition=0)
    shop.drain()
    assert shop.landed() == []
