"""Topics of Kafka Connect's JSON whose columns are those of the schema in each record, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from frazil.declaration import Debezium
from tests.scenarios.test_debezium import check
from tests.scenarios.test_debezium_json import LARGE, NAMES, debezium
from tests.scenarios.test_upserts import verified
from tests.support.connect_events import ORDERS, ConnectSource, Written
from tests.support.connect_schemas import decimal, field
from tests.support.debezium_events import PLACEHOLDER
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]
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
    shop.drain()
    check(source, *NAMES)
    assert list(shop.landed()[0])[:7] == [*NAMES, "at", "price"]
    source.write("u", 1, customer="left out", note=PLACEHOLDER, blob=PLACEHOLDER.encode(), tags=[PLACEHOLDER], at=8)
    source.evolve((*LARGE[:-1], decimal("price", 20, 2), field("day", "int32", "io.debezium.time.Date")))
    source.write("c", 7, customer="new", tags=[], price=b"\x7f" * 8, day=20_454)
    source.delete(2)
    source.delete(3, event=False)
    source.write("u", 4, customer="é", price=-0.42)  # as decimal.format=NUMERIC writes it
    shop.drain()
    check(source, *NAMES)
    found = {row["id"]: (row["at"], row["price"], row["day"]) for row in shop.landed()}
    at = datetime(1970, 1, 1, microsecond=7)
    assert found == {
        0: (at, Decimal("1.23"), None),
        1: (at.replace(microsecond=8), None, None),
        4: (None, Decimal("-0.42"), None),
        7: (None, Decimal("91872019504357374.71"), date(2026, 1, 1)),
    }
    assert max(row["_source"]["lsn"] for row in shop.landed()) == source.lsn
    assert verified(shop, deep=True).outcome == "proven"
