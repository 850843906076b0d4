"""Tables of current state from Debezium's change events in JSON, on a real broker and registry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from frazil.declaration import Debezium, ErrorMode, Upsert
from tests.scenarios.test_debezium import check, counts
from tests.scenarios.test_upserts import verified
from tests.support.connect_events import ORDERS, ConnectSource
from tests.support.connect_schemas import decimal, field
from tests.support.debezium_events import PLACEHOLDER
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]
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


def test_a_table_is_that_of_the_source(shop_of: ShopOf) -> None:
    shop = debezium(shop_of)
    source = ConnectSource(shop, LARGE, partitions=2)
    for number in range(5):
        source.write(
            "r", number, customer=f"c{number}", note="n", blob=b"b", tags=["t", None], at=number, price=b"\x7b"
        )
    shop.drain()
    check(source, *NAMES)
    assert list(shop.landed()[0])[:7] == [*NAMES, "at", "price"]
    source.write("u", 1, customer="left out", note=PLACEHOLDER, blob=PLACEHOLDER.encode(), tags=[PLACEHOLDER], at=7)
    source.write("c", 7, customer="new", tags=[])
    source.write("u", 7, customer="new and changed", tags=[PLACEHOLDER], price=b"\xd6")
    source.delete(2)
    source.delete(3, event=False)  # compaction left the tombstone
    source.delete(4, tombstone=False)
    source.produce(0, source.event("m", None))
    shop.drain()
    check(source, *NAMES)
    found = {row["id"]: (row["at"], row["price"]) for row in shop.landed()}
    assert found == {
        0: (datetime(1970, 1, 1), Decimal("1.23")),
        1: (datetime(1970, 1, 1, microsecond=7), None),
        7: (None, Decimal("-0.42")),
    }
    assert counts(shop)["skipped"] == {"no_change": 1}
    assert {"before", "after", "op", "source", "ts_ms"}.isdisjoint(shop.landed()[0])


@pytest.mark.long
def test_flattened_events_are_the_same_table(shop_of: ShopOf) -> None:
    shop = debezium(shop_of)
    source = ConnectSource(shop, partitions=2, flat=True)
    for number in range(4):
        source.write("r", number, customer=f"c{number}", note="n")
    shop.drain()
    source.write("u", 1, customer="changed", note=PLACEHOLDER)
    source.delete(2, tombstone=False)
    source.delete(3)
    source.write("c", 5, customer="new")
    shop.drain()
    check(source)
    assert {"__deleted", "__op"}.isdisjoint(shop.landed()[0])
    assert {row["__lsn"] is not None for row in shop.landed()} == {True}


@pytest.mark.long
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


@pytest.mark.long
def test_a_key_is_what_its_type_means(shop_of: ShopOf) -> None:
    shop = debezium(shop_of)
    at = field("at", "string", "io.debezium.time.ZonedTimestamp", optional=False)
    source = ConnectSource(shop, (at, field("customer", "string")), (at,))
    for hour in (10, 11, 12):
        source.write("r", f"2026-01-01T{hour}:00:00Z", customer="first")
    shop.drain()
    source.write("u", "2026-01-01T10:00:00Z", customer="second")
    source.delete("2026-01-01T11:00:00Z")
    source.delete("2026-01-01T12:00:00Z", event=False)
    shop.drain()
    assert [(row["at"], row["customer"]) for row in shop.landed()] == [(datetime(2026, 1, 1, 10, tzinfo=UTC), "second")]
    assert verified(shop, deep=True).outcome == "proven"


@pytest.mark.long
def test_values_that_no_column_holds_are_dead_letters(shop_of: ShopOf) -> None:
    shop = debezium(shop_of, on_error=ErrorMode.LOG)
    columns = (ORDERS[0], field("placed", "string", "io.debezium.time.ZonedTimestamp"), decimal("price", 5, 2))
    source = ConnectSource(shop, columns)
    source.write("c", 1, placed="2026-01-02T03:04:05Z", price=b"\x01\x86\x9f")
    source.write("c", 2, placed="infinity")
    source.write("c", 3, price=b"\x01\x86\xa0")  # six digits
    assert shop.drain().rejected == {"undecodable": 2}
    assert [(row["id"], row["price"]) for row in shop.landed()] == [(1, Decimal("999.99"))]
