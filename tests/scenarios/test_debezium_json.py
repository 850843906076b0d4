"""Upsert tables from Debezium's change events in JSON, on a real broker and registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Changelog, Debezium, ErrorMode, Upsert
from frazil.errors import RejectedRecords
from tests.scenarios.test_debezium import land
from tests.scenarios.test_json_schema import DRAFT
from tests.support.connect_events import ORDERS, ConnectSource, Written
from tests.support.connect_schemas import confluent, decimal, declared, field
from tests.support.debezium_events import PLACEHOLDER
from tests.support.shop import Shop, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
JSON_SCHEMA = {"value_format": "json_schema", "key_format": "json_schema"}


def debezium(shop_of: ShopOf, **declared: Any) -> Shop:
    return shop_of(**{"write": Upsert(), "envelope": Debezium(), **JSON_SCHEMA, **declared})


LARGE = (
    *ORDERS,
    field("blob", "bytes"),
    field("tags", "array", items={"type": "string", "optional": True}),
    field("at", "int64", "io.debezium.time.MicroTimestamp"),
    decimal("price", 10, 2),
)
NAMES = ("id", "customer", "note", "blob", "tags")


class _Optional(ConnectSource):
    """Its keys and values are optional structs."""

    def _registered(self, side: str, schema: Mapping[str, Any]) -> int:
        text = json.dumps({"$schema": DRAFT, **confluent({**schema, "optional": True})})
        return self.shop.registry_admin.register(f"{self.shop.topic}-{side}", text, SchemaType.JSON)


@pytest.mark.parametrize("flat", [False, True])
def test_events_may_be_optional_structs(shop_of: ShopOf, flat: bool) -> None:
    shop = debezium(shop_of)
    source = _Optional(shop, flat=flat)
    for number in range(4):
        source.write("r", number, customer=f"c{number}", note="n")
    shop.drain()
    source.write("u", 1, customer="changed", note="m")
    source.delete(2)
    source.delete(3, event=False, tombstone=False)
    shop.produce([frame(source._schema_id, b"null")], key=source.key(3), partition=0)
    land(source, *NAMES[:3])


def test_a_column_is_what_each_version_writes_it_as(shop_of: ShopOf) -> None:
    """Another precision of a timestamp has another unit, and more digits of a decimal another type."""
    shop = debezium(shop_of, envelope=Debezium(source_column=True, operation_column=True))
    key, day = ORDERS[0], field("day", "int32", "io.debezium.time.Date")
    source = ConnectSource(shop, (key, field("at", "int64", "io.debezium.time.Timestamp"), decimal("price", 5, 2)))
    source.write("c", 1, at=1_709_208_000_123, price=b"\x01\x00")
    shop.drain()
    source.write("c", 2, at=1_709_208_000_123, price=b"\xff")
    at = field("at", "int64", "io.debezium.time.MicroTimestamp")
    source.evolve((key, at, decimal("price", 20, 2), day))
    source.write("c", 3, at=1_709_208_000_123_456, price=b"\x7f" * 8, day=20_454)
    source.delete(1)
    shop.drain()
    at_ms = datetime(2024, 2, 29, 12, 0, 0, 123_000)
    found = {row["id"]: (row["at"], row["price"], row["day"], row["_op"]) for row in shop.landed()}
    assert found == {
        2: (at_ms, Decimal("-0.01"), None, "c"),
        3: (at_ms.replace(microsecond=123_456), Decimal("91872019504357374.71"), date(2026, 1, 1), "c"),
    }
    assert {row["_source"]["lsn"] for row in shop.landed()} == {source.lsn - 152 * 2, source.lsn - 152}


def test_values_that_no_column_holds_are_dead_letters(shop_of: ShopOf) -> None:
    shop = debezium(shop_of, on_error=ErrorMode.DEAD_LETTER)
    columns = (ORDERS[0], field("placed", "string", "io.debezium.time.ZonedTimestamp"), decimal("price", 5, 2))
    source = ConnectSource(shop, columns)
    source.write("c", 1, placed="2026-01-02T03:04:05Z", price=b"\x01\x86\x9f")
    source.write("c", 2, placed="infinity")
    source.write("c", 3, price=b"\x01\x86\xa0")  # six digits
    assert shop.drain().rejected == {"undecodable": 2}
    assert [(row["id"], row["price"]) for row in shop.landed()] == [(1, Decimal("999.99"))]


SCHEMALESS = (*LARGE[:-1], field("price", "double"), field("day", "int32", "io.debezium.time.Date"))


def schemaless(shop_of: ShopOf, written: Written, *more: str, **declaration: Any) -> Shop:
    """Return a topic without a registry, with the columns of `SCHEMALESS` and others."""
    formats = {"value_format": written.value, "key_format": written.value, "key_columns": declared(ORDERS[:1])}
    return debezium(shop_of, **formats, columns=(*declared(SCHEMALESS), *more), **declaration)


def test_events_of_another_form_than_declared_are_dead_letters(shop_of: ShopOf) -> None:
    """Without a schema, nothing else says so: as rows of the declared form, all their columns would be null."""
    plain = schemaless(shop_of, Written.JSON, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    flat_source = ConnectSource(plain, SCHEMALESS, written=Written.JSON, flat=True)
    flat_source.write("c", 1, customer="x")
    plain.produce([b'{"schema": {}, "payload": {"op": "c", "after": {"id": 2}}}'], key=b'{"id": 2}', partition=0)
    plain.produce([b'{"op": "c", "after": {"id": 3}}'], key=b'{"schema": {}, "payload": {"id": 3}}', partition=0)
    plain.produce([b'{"op": "c", "after": {"id": 4, "day": "2026-01-01"}}'], key=b'{"id": 4}', partition=0)
    plain.produce([b'{"op": "c", "after": {"id": 5, "customer": "lands"}}'], key=b'{"id": 5}', partition=0)
    assert plain.drain().rejected == {"operation_unknown": 2, "key_undecodable": 1, "undecodable": 1}
    assert [(row["id"], row["customer"]) for row in plain.landed()] == [(5, "lands")]


OTHER_TOPICS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (
        {"id": "571:53195829"},
        {"status": "END", "id": "571:53195829", "event_count": 1, "data_collections": [], "ts_ms": 1_795_337_513_714},
    ),
    (
        {"databaseName": "shop"},
        {"source": {"ts_ms": 1}, "databaseName": "shop", "schemaName": "public", "ddl": "", "tableChanges": []},
    ),
    ({"serverName": "shop"}, {"ts_ms": 1}),
    ({"prefix": "p"}, {"op": "m", "ts_ms": 1, "source": {"ts_ms": 1}, "message": {"prefix": "p", "content": "AA=="}}),
)
"""Keys and values of a connector's topics that have no rows: transactions, schema changes, heartbeats, messages."""


def test_records_of_other_topics_of_a_connector_are_no_rows(shop_of: ShopOf) -> None:
    """Without a schema nothing else says so. By default the first one stops the pipeline."""
    shop = schemaless(shop_of, Written.JSON)
    for key, value in OTHER_TOPICS:
        shop.produce([json.dumps(value).encode()], key=json.dumps(key).encode(), partition=0)
    with pytest.raises(RejectedRecords, match="operation_unknown"):
        shop.drain()
    shop.pipeline = replace(shop.pipeline, on_error=ErrorMode.DEAD_LETTER)
    total = shop.drain()
    assert (total.rejected, total.skipped) == ({"operation_unknown": 3}, {"no_change": 1})
    assert sorted(row["offset"] for row in shop.dead()) == [0, 1, 2]
    assert shop.landed() == []


@pytest.mark.parametrize("mark", ["__op string", "__deleted boolean"])
def test_a_plain_event_is_no_flattened_one(shop_of: ShopOf, mark: str) -> None:
    shop = schemaless(shop_of, Written.JSON, mark, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    plain = ConnectSource(shop, SCHEMALESS, written=Written.JSON)
    plain.write("c", 1, customer="x")
    plain.delete(1, tombstone=False)
    name, of = mark.split()
    lands = {"id": 2, "customer": "lands", name: "c" if of == "string" else False}
    shop.produce([json.dumps(lands).encode()], key=b'{"id": 2}', partition=0)
    gone = {"id": 3, name: "d" if of == "string" else True}
    shop.produce([json.dumps(gone).encode()], key=b'{"id": 3}', partition=0)
    assert shop.drain().rejected == {"operation_unknown": 2}
    assert [(row["id"], row["customer"]) for row in shop.landed()] == [(2, "lands")]


@pytest.mark.parametrize("written", Written)
def test_a_changelog_has_each_event(shop_of: ShopOf, written: Written) -> None:
    declaration = {"write": Changelog()}
    is_registered = written is Written.JSON_SCHEMA
    shop = debezium(shop_of, **declaration) if is_registered else schemaless(shop_of, written, **declaration)
    source = ConnectSource(shop, SCHEMALESS, written=written)
    source.write("r", 1, customer="first", note="n", at=1)
    source.write("u", 1, customer="second", note=PLACEHOLDER, at=2)
    source.delete(1)
    shop.drain()
    rows = sorted(shop.landed(), key=lambda row: row["_kafka_offset"])
    assert [(row["_op"], row["id"], row["customer"], row["_unavailable"]) for row in rows] == [
        ("r", 1, "first", None),
        ("u", 1, "second", ["note"]),
        ("d", 1, None, None),
        ("d", 1, None, None),
    ]
    shop.assert_proven(deep=True)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("written", [Written.JSON_SCHEMA, Written.JSON])
def test_a_row_of_many_columns_is_planned_in_a_moment(shop_of: ShopOf, written: Written) -> None:
    texts = tuple(field(f"c{number}", "string") for number in range(60))
    times = tuple(field(f"t{number}", "int64", "io.debezium.time.MicroTimestamp") for number in range(20))
    prices = tuple(decimal(f"p{number}", 10, 2) for number in range(20)) if written is Written.JSON_SCHEMA else ()
    columns = (ORDERS[0], *texts, *times, *prices)
    declaration: dict[str, Any] = {}
    if written is Written.JSON:
        keys = {"key_format": "json", "key_columns": declared(ORDERS[:1])}
        declaration = {"value_format": "json", "columns": declared(columns), **keys}
    source = ConnectSource(debezium(shop_of, **declaration), columns, written=written)
    for number in range(3):
        source.write("r", number, c1="one", c59="last", t19=number)
    source.write("u", 1, c1=PLACEHOLDER, c59="changed")
    land(source, "id", *(each["field"] for each in texts))
