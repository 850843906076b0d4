"""Tables of current state from Debezium's change events, on a real broker and registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from frazil.declaration import Debezium, KeyFormat, Upsert
from frazil.lake.commit.entries import entry
from tests.scenarios.test_upserts import stored, verified
from tests.support.debezium_events import Source
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]


def debezium(shop_of: ShopOf, **declared: Any) -> Shop:
    choices = {"write": Upsert(), "key_format": KeyFormat.AVRO, "envelope": Debezium(), **declared}
    return shop_of(**choices)


def check(source: Source, *columns: str) -> None:
    """Check that the table is the source's, and that its account agrees."""
    names = columns or ("id", "customer", "note")
    found = {row[names[0]]: {name: row[name] for name in names} for row in source.shop.landed()}
    assert found == {key: {name: row.get(name) for name in names} for key, row in source.rows.items()}
    shop = source.shop
    last = entry(shop.job().iceberg.load(shop.pipeline.table.identifier), shop.pipeline.name)
    assert last is not None
    assert last.keys is not None
    assert last.keys.rows == len(source.rows)
    for deep in (False, True):
        proof = verified(shop, deep=deep)
        assert proof.outcome == "proven", proof.findings


def counts(shop: Shop) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stored(shop).current_snapshot().summary["frazil.counts"])
    return found


def test_a_table_is_that_of_the_source(shop_of: ShopOf) -> None:
    shop = debezium(shop_of)
    source = Source(shop, partitions=2)
    for number in range(6):
        source.write("r", number, customer=f"c{number}")
    shop.drain()
    check(source)
    source.write("u", 1, customer="changed", note="n")
    source.write("c", 7, customer="new")
    source.write("u", 7, customer="new and changed")
    source.delete(2)
    source.delete(3, event=False)  # compaction left the tombstone
    source.delete(4, tombstone=False)
    source.delete(99)  # was never there
    source.produce(0, source.event("m", None))
    shop.drain()
    check(source)
    found = counts(shop)
    assert (found["read"], found["written"], found["deletes"], found["superseded"]) == (10, 2, 4, 3)
    assert found["skipped"] == {"no_change": 1}
    assert {"before", "after", "op", "source", "ts_ms"}.isdisjoint(shop.landed()[0])
