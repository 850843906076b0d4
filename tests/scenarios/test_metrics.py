"""The metrics of real batches."""

from __future__ import annotations

import time

import pytest

from frazil.declaration import Limits, Redact, Shape, Upsert
from frazil.metrics.readings import Readings, Sample
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def samples(shop: Shop) -> list[Sample]:
    """Return the samples of the shop's pipeline after all its events."""
    readings = Readings("r", "1", clock=time.time, cpu_seconds=lambda: None)
    for event in shop.events:
        readings(event)
    return [sample for sample in readings.samples() if not sample.metric.is_of_process]


def values(shop: Shop) -> dict[str, float]:
    """Return their values, by name and further labels."""
    return {" ".join((s.metric.name.removeprefix("frazil_"), *s.labels[3:])): s.value for s in samples(shop)}


def test_the_metrics_of_batches_are_what_the_table_has(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(where="amount >= 1", mask={"user": Redact()}), limits=Limits(first_rows=30))
    shop.produce([*shop.orders(100, shop.register()), b"broken"])
    shop.drain()
    found = values(shop)
    head = shop.table.currentSnapshot().summary()
    assert found.pop("batch_seconds_total all") >= found.pop("batch_seconds_total stage") > 0
    assert found.pop("batch_seconds_total commit") > 0
    assert found.pop("last_look_timestamp_seconds") <= time.time()
    assert found.pop("last_rejected_timestamp_seconds wrong_magic") <= time.time()
    assert found.pop("freshness_seconds") == 0
    assert found.pop("commits_total") == len([e for e in shop.events if e["event"] == "batch_committed"]) > 1
    assert found.pop("read_bytes_total") > 100
    assert found.pop("table_bytes") == int(head.get("total-files-size"))
    assert found.pop("table_files data") == int(head.get("total-data-files"))
    assert found == {
        "records_read_total": 101,
        "records_landed_total": 96,
        "records_masked_total": 96,
        "records_late_total": 0,
        "records_filtered_total where": 4,
        "records_rejected_total wrong_magic": 1,
        "lag_offsets": 0,
        "retention_used_ratio": 0,
        "table_rows": 96,
        "table_files deletes": 0,
        "pipeline_state running": 1,
    }
    batches = [event["offsets"] for event in shop.events if event["event"] == "batch_committed"]
    assert batches[0].startswith("0:0-")


def test_the_delete_files_of_an_upsert_table_are_counted(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(key=("order_id",)))
    schema_id = shop.register()
    for _ in range(2):
        shop.produce(shop.orders(10, schema_id))
        shop.drain()
    head = shop.table.currentSnapshot().summary()
    assert values(shop)["table_files deletes"] == int(head.get("total-delete-files")) > 0
