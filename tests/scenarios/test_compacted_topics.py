"""Compacted topics: records vanish at any moment, and each offset is counted once, by the read that landed it."""

from __future__ import annotations

import pytest

from frazil.clients.secrets import Secrets
from frazil.errors import FrazilError
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.recount import recount
from tests.support import compaction
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
KEYS = 6


@pytest.fixture
def compacted(shop_of: ShopOf) -> Shop:
    """A compacted topic of one partition with 18 records of 6 keys."""
    shop = shop_of(partitions=1, config=compaction.COMPACTED)
    compaction.eager(shop.world.bootstrap)
    produce(shop, 18)
    return shop


def produce(shop: Shop, count: int, *, first: int = 0, values: list[bytes] | None = None) -> None:
    for number, value in enumerate(values or shop.orders(count, shop.register(), first=first)):
        shop.produce([value], partition=0, key=str(number % KEYS).encode())


def compact(shop: Shop, below: int, most: int) -> None:
    """Have the broker remove records of the first offsets."""
    filler = shop.orders(1, shop.register(), first=999)

    def roll() -> None:
        shop.produce(filler, partition=0, key=b"filler")

    compaction.compact(shop.world.bootstrap, shop.topic, 0, below=below, most=most, roll=roll)


def assert_account(shop: Shop, *, landed: int, explained: int, dead_lettered: int = 0) -> None:
    found = shop.verified(deep=True)
    assert found.outcome == "proven", [str(f) for f in found.findings]
    (account,) = found.partitions
    assert (account.landed, account.dead_lettered, account.gaps) == (landed, dead_lettered, explained)


def test_records_that_vanish_after_they_were_read_are_no_gaps(compacted: Shop) -> None:
    def clean(step: str) -> None:
        if step == "stage.written":
            compact(compacted, 18, KEYS)

    assert compacted.drain(failpoint=clean).read == 18
    assert_account(compacted, landed=18, explained=0)


@pytest.mark.long
def test_offsets_without_a_record_are_counted_by_the_read_that_lands_the_others(compacted: Shop) -> None:
    compact(compacted, 18, KEYS)
    there = compaction.offsets(compacted.world.bootstrap, compacted.topic, 0)
    assert compacted.drain().read == len(there)
    assert_account(compacted, landed=len(there), explained=there[-1] + 1 - len(there))


def test_right_numbers_of_gaps_are_not_counted_again(compacted: Shop) -> None:
    compacted.drain()
    lake = Lake(compacted.lake, Secrets({}).read)
    with pytest.raises(FrazilError, match="nothing to accept"):
        recount(compacted.pipeline, lake, "as the test says", compacted.job())


@pytest.mark.long
def test_rejected_records_that_vanish_before_they_are_dead_letters_are_read_again(compacted: Shop) -> None:
    produce(compacted, 0, values=[b"bad", b"bad"])  # of keys 0 and 1: both offsets become gaps
    produce(compacted, 2, first=50)
    cleaned = False

    def clean(step: str) -> None:
        nonlocal cleaned
        if step == "stage.written" and not cleaned:
            cleaned = True
            compact(compacted, 22, KEYS)

    assert compacted.drain(failpoint=clean).rejected == {}
    assert "do not add up" in str(compacted.seen("batch_retried"))
    rows = len(compacted.landed())
    assert_account(compacted, landed=rows, explained=22 - rows)
