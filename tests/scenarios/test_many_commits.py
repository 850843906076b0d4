"""Hundreds of small commits: the metadata stays small, the ledger and the proof stand."""

from __future__ import annotations

import pytest

from frazil.declaration import Keep
from frazil.declaration.engines import Limits
from frazil.lake import metadata_expiry
from tests.support.shop import ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.mark.long
def test_snapshots_are_trimmed_while_batches_land_and_nothing_is_lost(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_expiry, "EVERY", 5)
    shop = shop_of(partitions=1, limits=Limits(max_rows=2, first_rows=2), table={"snapshots": Keep(3)})
    monkeypatch.setattr(
        metadata_expiry.trim, "__kwdefaults__", {**(metadata_expiry.trim.__kwdefaults__ or {}), "at_least": 5}
    )
    schema_id = shop.register()
    for order in shop.orders(12, schema_id):
        shop.produce([order, b"bad!!"])
    shop.drain()
    for identifier in (shop.pipeline.table.identifier, shop.pipeline.table.dead_letters):
        table = shop.job().iceberg.load(identifier)
        assert len(list(table.snapshots())) <= 3 + 5
    assert sum(event["snapshots"] for event in shop.seen("snapshots_expired")) >= 5
    assert not any(event["gave_up"] for event in shop.seen("snapshots_expired"))
    shop.assert_each_record_once()
    shop.assert_proven(deep=True)


def test_rows_are_sorted_within_files_as_declared(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, table={"sort_by": ("user desc", "order_id")})
    shop.produce(shop.orders(40, shop.register()))
    shop.drain()
    rows = shop.landed()  # one task wrote one file
    assert [(r["user"], r["order_id"]) for r in rows] == sorted(
        sorted((r["user"], r["order_id"]) for r in rows), key=lambda pair: pair[0], reverse=True
    )
