"""Each record is a row, a dead letter, or skipped because the declaration says so: exactly one of the three."""

from __future__ import annotations

import pytest

from frazil.declaration.options import ErrorMode, MetadataColumns
from frazil.errors import RejectedRecords
from tests.support.shop import Shop, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def test_records_become_rows_with_their_coordinates(shop: Shop) -> None:
    schema_id = shop.register()
    shop.produce(shop.orders(50, schema_id), headers=[("trace", b"\x01")])
    total = shop.drain()
    assert (total.read, total.written) == (50, 50)
    shop.assert_each_record_once()
    for row in shop.landed():
        assert shop.journal[row["_kafka_partition"], row["_kafka_offset"]] is not None
        assert row["_kafka_schema_id"] == schema_id
        assert row["_kafka_headers"] == [{"key": "trace", "value": b"\x01"}]
        assert row["user"] == f"u{row['order_id'] % 7}"
    assert sorted(r["order_id"] for r in shop.landed()) == list(range(50))


def test_a_second_run_adds_only_what_is_new(shop: Shop) -> None:
    schema_id = shop.register()
    shop.produce(shop.orders(10, schema_id))
    shop.drain()
    assert shop.drain().read == 0
    shop.produce(shop.orders(5, schema_id, first=10))
    assert shop.drain().read == 5
    shop.assert_each_record_once()


def test_each_bad_record_is_kept_with_its_bytes_and_reason(shop: Shop) -> None:
    schema_id = shop.register()
    bad = {
        "too_short": b"\x00\x00\x01",
        "wrong_magic": b"{'json': 1}",
        "unknown_schema": frame(2_000_000_000, b"\x02"),
        "undecodable": frame(schema_id, b"\x02\xff"),
        "tombstone": None,
    }
    shop.produce(shop.orders(20, schema_id))
    shop.produce(list(bad.values()), headers=[("h", b"v")])
    total = shop.drain()
    assert total.rejected == dict.fromkeys(bad, 1)
    shop.assert_each_record_once()
    dead = {row["reason"]: row for row in shop.dead()}
    assert {reason: row["value"] for reason, row in dead.items()} == bad
    assert all(row["headers"] == [{"key": "h", "value": b"v"}] for row in dead.values())
    assert dead["undecodable"]["schema_id"] == schema_id
    assert dead["unknown_schema"]["schema_id"] == 2_000_000_000


def test_mode_suspend_lands_nothing_of_a_batch_with_a_bad_record(shop_of: ShopOf) -> None:
    shop = shop_of(on_error=ErrorMode.SUSPEND)
    shop.produce([*shop.orders(3, shop.register()), b"bad!!"])
    with pytest.raises(RejectedRecords, match="wrong_magic"):
        shop.drain()
    assert shop.landed() == []


@pytest.mark.long
def test_mode_skip_counts_what_it_lets_go(shop_of: ShopOf) -> None:
    shop = shop_of(on_error=ErrorMode.SKIP)
    shop.produce([*shop.orders(3, shop.register()), b"bad!!", b""])
    total = shop.drain()
    assert (total.written, total.skipped, total.rejected) == (3, {"wrong_magic": 1, "too_short": 1}, {})
    assert shop.dead() == []


def test_coordinates_can_be_one_struct(shop_of: ShopOf) -> None:
    shop = shop_of(table={"metadata_columns": MetadataColumns.STRUCT})
    shop.produce(shop.orders(3, shop.register()))
    shop.drain()
    assert sorted((r["_kafka"]["partition"], r["_kafka"]["offset"]) for r in shop.landed()) == sorted(shop.journal)
