"""Compaction removes records without a value: a pipeline that comes too late cannot know which rows were deleted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.declaration import Limits, Spark, Upsert, WriteMode
from frazil.errors import DeletesLost, InvalidInput, TopicRecreated
from frazil.recovery.decisions import Accepted
from tests.support import compaction
from tests.support.jobs import once
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
DAY_MS = 86_400_000


def state_of(shop_of: ShopOf, write: WriteMode = Upsert()) -> Shop:  # noqa: B008 # frozen
    shop = shop_of(partitions=1, config=compaction.COMPACTED, write=write, key_format="text")
    compaction.eager(shop.world.bootstrap)
    return shop


def with_rows(shop_of: ShopOf) -> Shop:
    """Return a shop that has landed three rows."""
    shop = state_of(shop_of)
    for key in range(3):
        put(shop, key, key)
    shop.drain()
    return shop


def put(shop: Shop, key: int, number: int | None) -> int:
    value = None if number is None else shop.orders(1, shop.register(), first=number)[0]
    ((_, offset),) = shop.produce([value], partition=0, key=f"k{key}".encode())
    return offset


def compact(shop: Shop, below: int, most: int, keep_deletes_ms: int) -> None:
    compaction.compact(
        shop.world.bootstrap,
        shop.topic,
        0,
        below=below,
        most=most,
        roll=lambda: put(shop, 99, 99),
        keep_deletes_ms=keep_deletes_ms,
    )


def lose_delete(shop: Shop) -> None:
    """Land three rows, then have compaction remove the delete of the first one; deletes are kept for a day from then on."""
    for key in range(3):
        put(shop, key, key)
    shop.drain()
    put(shop, 0, None)
    end = put(shop, 1, 10) + 1
    compact(shop, end, 2, keep_deletes_ms=0)  # k2 and k1 are left of the first five offsets
    compaction.keep_deletes(shop.world.bootstrap, shop.topic, DAY_MS)


def caught_up(shop: Shop) -> int:
    end = shop.entry().end
    assert end is not None
    assert end.last is not None
    assert end.last.caught_up is not None
    return end.last.caught_up.at


def rows(shop: Shop) -> dict[str, int]:
    return {row["_kafka_key"]: row["order_id"] for row in shop.landed() if row["_kafka_key"] != "k99"}


@pytest.mark.long
def test_a_delete_that_compaction_removed_unread_stops_the_pipeline_until_it_is_accepted(shop_of: ShopOf) -> None:
    shop = state_of(shop_of)
    lose_delete(shop)
    clock = shop.job().clock

    def later() -> float:
        return clock() + 1.1 * DAY_MS / 1000

    for _ in range(2):
        with pytest.raises(DeletesLost, match="`frazil accept .* deletes-lost"):
            shop.drain(clock=later)
    assert rows(shop) == {"k0": 0, "k1": 1, "k2": 2}
    shop.accept(Accepted.DELETES_LOST, clock=later)
    shop.drain(clock=later)
    assert rows(shop) == {"k0": 0, "k1": 10, "k2": 2}
    shop.assert_proven()


def test_deletes_that_another_topic_lost_before_it_was_landed_stop_a_table_that_has_rows(shop_of: ShopOf) -> None:
    """The rows are of the former topic; the first batch of a new table would have none of the deleted keys."""
    shop = with_rows(shop_of)
    shop.delete()
    shop.create(1, compaction.COMPACTED)
    put(shop, 0, 10)
    put(shop, 0, None)
    end = put(shop, 1, 11) + 1
    compact(shop, end, 1, keep_deletes_ms=0)
    compaction.keep_deletes(shop.world.bootstrap, shop.topic, 365 * DAY_MS)
    with pytest.raises(TopicRecreated):
        shop.drain()
    shop.accept(Accepted.TOPIC_RECREATED)
    with pytest.raises(DeletesLost, match="for a time that is not known"):
        shop.drain()
    shop.accept(Accepted.DELETES_LOST)
    shop.drain()
    assert rows(shop) == {"k0": 0, "k1": 11, "k2": 2}
    assert caught_up(shop) > 0


@pytest.mark.long
def test_a_driver_that_slept_while_another_landed_is_fenced_and_asks_for_no_decision(shop_of: ShopOf) -> None:
    shop = state_of(shop_of)
    lose_delete(shop)
    clock, slept = shop.job().clock, [0.0]

    def sleep() -> None:
        shop.drain()
        slept[0] = 1.1 * DAY_MS / 1000

    assert shop.drain(clock=lambda: clock() + slept[0], failpoint=once("plan.done", sleep)).fenced
    assert rows(shop) == {"k0": 0, "k1": 10, "k2": 2}


@pytest.mark.long
def test_what_is_accepted_counts_up_to_the_ends_however_short_the_topic_keeps_deletes(shop_of: ShopOf) -> None:
    shop = state_of(shop_of)
    compaction.keep_deletes(shop.world.bootstrap, shop.topic, 0)
    for key in range(3):
        put(shop, key, key)
    shop.drain()
    put(shop, 0, None)
    for number in range(10, 14):
        put(shop, 1, number)
    end = put(shop, 2, 20) + 1
    compact(shop, end, 2, keep_deletes_ms=0)
    with pytest.raises(DeletesLost):
        shop.drain()
    compaction.keep_deletes(shop.world.bootstrap, shop.topic, 7 * DAY_MS)
    with pytest.raises(DeletesLost):  # a higher setting of now says nothing of what was removed
        shop.drain()
    compaction.keep_deletes(shop.world.bootstrap, shop.topic, 0)
    shop.accept(Accepted.DELETES_LOST)
    limits = Limits(first_rows=2, max_rows=2)
    shop.drain(replace(shop.pipeline, engine=Spark(limits=limits)))
    assert rows(shop) == {"k0": 0, "k1": 13, "k2": 20}


@pytest.mark.long
def test_gaps_alone_do_not_stop_it(shop_of: ShopOf) -> None:
    """Compaction keeps the deletes for a day, and the table was complete within this time."""
    shop = with_rows(shop_of)
    for number in range(10, 20):
        put(shop, 1, number)
    end = put(shop, 0, None) + 1
    compact(shop, end, 4, keep_deletes_ms=DAY_MS)
    shop.drain()
    assert rows(shop) == {"k1": 19, "k2": 2}
    job = shop.job()

    def later() -> float:
        return job.clock() + 0.9 * DAY_MS / 1000

    put(shop, 2, 21)
    end = put(shop, 2, 22) + 1
    compact(shop, end, 3, keep_deletes_ms=DAY_MS)
    shop.drain(clock=later)
    assert rows(shop) == {"k1": 19, "k2": 22}


@pytest.mark.long
def test_what_was_landed_before_compaction_is_no_loss(shop_of: ShopOf) -> None:
    """The first batches of a table are of what the topic holds then."""
    shop = state_of(shop_of)
    for key in range(3):
        put(shop, key, key)
    end = put(shop, 0, None) + 1
    compact(shop, end, 2, keep_deletes_ms=0)
    shop.drain()
    assert rows(shop) == {"k1": 1, "k2": 2}


@pytest.mark.long
def test_a_run_that_finds_nothing_says_that_the_table_is_complete(shop_of: ShopOf) -> None:
    shop = state_of(shop_of)
    put(shop, 1, 1)
    shop.drain()
    began, head = (caught_up(shop), shop.table.currentSnapshot().snapshotId())
    clock = shop.job().clock
    shop.drain(clock=lambda: clock() + 0.4 * DAY_MS / 1000)
    assert caught_up(shop) == began
    shop.drain(clock=lambda: clock() + 0.6 * DAY_MS / 1000)
    assert caught_up(shop) > began + 500 * DAY_MS
    assert shop.table.currentSnapshot().snapshotId() == head


@pytest.mark.long
def test_a_run_that_follows_notes_it_now_and_then(shop_of: ShopOf) -> None:
    shop = state_of(shop_of)
    put(shop, 1, 1)
    clock, hours = shop.job().clock, [0]
    run = shop.ingestion(clock=lambda: clock() + hours[-1] * 3600)
    run.poll()
    began, seen = caught_up(shop), []
    for later in range(0, 40, 5):
        hours.append(later)
        run.poll()
        seen.append(round((caught_up(shop) - began) / 3_600_000_000))
    assert seen == [0, 0, 0, 15, 15, 15, 30, 30]


@pytest.mark.long
def test_a_table_that_was_set_back_is_not_known_to_be_complete(shop_of: ShopOf) -> None:
    shop = state_of(shop_of)
    put(shop, 1, 1)
    shop.drain()
    first = shop.table.currentSnapshot().snapshotId()
    put(shop, 1, 2)
    shop.drain()
    shop.sql(f"CALL lake.system.rollback_to_snapshot('{{}}', {first})")
    shop.accept(Accepted.ROLLED_BACK_REPLAY)
    assert caught_up(shop) == 0
    shop.drain()  # there are no gaps, so that nothing was removed
    assert rows(shop) == {"k1": 2}
    assert caught_up(shop) > 0


def test_an_append_table_loses_no_deletes(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    shop.produce(shop.orders(1, shop.register()))
    shop.drain()
    with pytest.raises(InvalidInput, match="deletes-lost has not happened"):
        shop.accept(Accepted.DELETES_LOST)
