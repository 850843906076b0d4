"""A driver that another one has overtaken sees events that are none: it ends, and asks nobody for a decision."""

from __future__ import annotations

import pytest

from frazil.declaration.options import ErrorMode
from frazil.errors import Fenced, RejectedRecords, TopicRecreated
from frazil.recovery.decisions import Accepted
from tests.support.shop import ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def test_records_that_another_driver_landed_and_retention_removed_are_not_lost(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, value_format="text")
    shop.produce([b"v0", b"v1"])
    driver = shop.ingestion(run="the first")
    driver.poll()
    shop.produce([b"v2", b"v3"])
    shop.drain()
    shop.delete_records(4)
    with pytest.raises(Fenced, match="committed first"):
        driver.poll()
    shop.assert_proven()


def test_a_new_topic_that_another_driver_goes_on_with_needs_no_second_decision(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, value_format="text")
    shop.produce([b"old"])
    driver, next_ = shop.ingestion(run="the first"), shop.ingestion(run="the next")
    driver.poll()
    next_.poll()
    shop.new_topic()
    shop.produce([b"new"])
    with pytest.raises(TopicRecreated):
        shop.drain()
    shop.accept(Accepted.TOPIC_RECREATED)
    assert next_.poll(), "an operator decided, and no driver has landed more"
    with pytest.raises(Fenced, match="committed first"):
        driver.poll()
    assert sorted(row["value"] for row in shop.landed()) == ["new", "old"]


def test_a_driver_that_has_not_seen_a_rollback_goes_on_after_its_replay_was_accepted(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, value_format="text")
    driver = shop.ingestion(run="the first")
    for value in (b"v0", b"v1"):
        shop.produce([value])
        driver.poll()
    shop.roll_back()
    shop.accept(Accepted.ROLLED_BACK_REPLAY)
    shop.produce([b"v2"])
    for _ in range(2):  # of the first one the commit says that an operator decided
        driver.poll()
    assert sorted(row["value"] for row in shop.landed()) == ["v0", "v1", "v2"]
    shop.assert_proven()


def test_a_record_that_an_operator_accepted_meanwhile_stops_nobody(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, on_error=ErrorMode.SUSPEND)
    schema_id = shop.register()
    shop.produce(shop.orders(2, schema_id))
    driver = shop.ingestion(run="the first")
    driver.poll()
    shop.produce([b"\x00bad"])
    assert isinstance(shop.ended().error, RejectedRecords)
    shop.accept(Accepted.REJECTED_RECORDS)
    shop.drain()
    with pytest.raises(Fenced, match="committed first"):
        driver.poll()
