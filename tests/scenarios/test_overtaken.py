"""A driver that another one has overtaken sees events that are none: it ends, and asks nobody for a decision."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frazil.declaration.options import ErrorMode
from frazil.errors import Fenced, RejectedRecords, TopicRecreated
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_accept import delete_records
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]


def test_records_that_another_driver_landed_and_retention_removed_are_not_lost(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, value_format="text")
    shop.produce([b"v0", b"v1"])
    driver = shop.ingestion(run="the first")
    driver.poll()
    shop.produce([b"v2", b"v3"])
    shop.drain()
    delete_records(shop, 4)
    with pytest.raises(Fenced, match="committed first"):
        driver.poll()
    shop.assert_proven()


def test_a_new_topic_that_another_driver_goes_on_with_needs_no_second_decision(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, value_format="text")
    shop.produce([b"old"])
    driver, next_ = shop.ingestion(run="the first"), shop.ingestion(run="the next")
    driver.poll()
    next_.poll()
    shop.delete()
    shop.create(1)
    shop.new_producer(1)
    shop.produce([b"new"])
    with pytest.raises(TopicRecreated):
        shop.drain()
    accept(shop.pipeline, Accepted.TOPIC_RECREATED, "made again", shop.job())
    assert next_.poll(), "an operator decided, and no driver has landed more"
    with pytest.raises(Fenced, match="committed first"):
        driver.poll()
    assert sorted(row["value"] for row in shop.landed()) == ["new", "old"]


def test_a_record_that_an_operator_accepted_meanwhile_stops_nobody(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, on_error=ErrorMode.SUSPEND)
    schema_id = shop.register()
    shop.produce(shop.orders(2, schema_id))
    driver = shop.ingestion(run="the first")
    driver.poll()
    shop.produce([b"\x00bad"])
    assert isinstance(shop.ended().error, RejectedRecords)
    accept(shop.pipeline, Accepted.REJECTED_RECORDS, "known", shop.job())
    shop.drain()
    with pytest.raises(Fenced, match="committed first"):
        driver.poll()
