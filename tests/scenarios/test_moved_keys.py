"""Keys whose partition changes: they stop an upsert table until an operator says that partitions were added."""

from __future__ import annotations

import random

import pytest

from frazil.declaration import Limits, Upsert
from frazil.errors import InvalidInput, KeysMoved
from frazil.lake.ledger import entry as ledger
from frazil.recovery.decisions import Acceptance, Accepted
from tests.support.jobs import once
from tests.support.shop import ShopOf
from tests.support.state_replay import StateReplay

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
SOFT = Upsert(on_tombstone="soft_delete")
SMALL = Limits(first_rows=1, max_rows=1)


def state_of(shop_of: ShopOf, write: Upsert, *, version: int = 2, limits: Limits = SMALL) -> StateReplay:
    shop = shop_of(write=write, key_format="text", table={"format_version": version}, limits=limits)
    return StateReplay(shop, ordered_by=write.order_columns[0] if write.order_columns else None)


def accepted(state: StateReplay) -> Acceptance:
    return state.shop.accept(Accepted.KEYS_MOVED)


def stops(state: StateReplay) -> None:
    with pytest.raises(KeysMoved, match="`frazil accept .* keys-moved --reason"):
        state.shop.drain()


def keys_moved(state: StateReplay) -> object:
    return state.shop.entry().window(ledger.KEYS_MOVED)


@pytest.mark.long
def test_what_the_topic_holds_lands_by_time_and_what_follows_from_any_partition(shop_of: ShopOf) -> None:
    """The old partition has most of the records, and a batch has one: read by their share, its records would come last."""
    state = state_of(shop_of, Upsert())
    state.produce(1, "first", at=1, partition=0)
    state.produce(2, "first", at=1, partition=0)
    state.shop.drain()
    for at, word in enumerate(["second", "third", "fourth"], start=2):
        state.produce(1, word, at=at, partition=0)
    state.produce(2, None, at=5, partition=0)
    state.shop.add_partitions(3)
    for at in range(6, 10):
        state.produce(1, f"moved {at}", at=at, partition=2)
    stops(state)
    accepted(state)
    assert keys_moved(state) is not None
    state.settle()
    assert keys_moved(state) is None
    state.produce(3, "new", at=12, partition=1)
    state.produce(1, "earlier by its clock", at=0, partition=1)  # the row is of what the operator decided about
    state.settle()
    state.produce(3, "moved again", at=13, partition=0)
    stops(state)
    accepted(state)
    state.settle()


@pytest.mark.parametrize("write", [Upsert(), SOFT])
@pytest.mark.parametrize("is_landed", [False, True])
@pytest.mark.long
def test_a_delete_that_moved_comes_after_the_row_that_it_deletes(
    shop_of: ShopOf, write: Upsert, is_landed: bool
) -> None:
    """The delete is in a partition with much to read, the row in one with a single record: neither may be far ahead."""
    state = state_of(shop_of, write)
    state.shop.add_partitions(3)
    state.produce(9, "other", at=0, partition=1)
    state.shop.drain()
    state.produce(1, "first", at=1, partition=0)
    if is_landed:
        state.shop.drain()
    for at in range(2, 6):
        state.produce(10 + at, "more", at=at, partition=2)
    state.produce(1, None, at=6, partition=2)
    for at in range(7, 10):
        state.produce(10 + at, "more", at=at, partition=2)
    stops(state)
    accepted(state)
    state.settle()
    assert "k1" not in {row["_kafka_key"] for row in state.shop.landed() if row.get("_deleted_at") is None}


@pytest.mark.long
def test_a_batch_that_was_staged_before_the_decision_does_not_undo_it(shop_of: ShopOf) -> None:
    """A driver plans, an operator decides, the driver commits: the decision holds for the batches after it."""
    state = state_of(shop_of, Upsert(), limits=Limits())
    state.produce(1, "first", at=1, partition=0)
    state.shop.drain()
    state.produce(2, "first", at=2, partition=1)

    def decide() -> None:
        state.produce(1, "moved", at=3, partition=1)
        accepted(state)

    state.shop.drain(failpoint=once("stage.done", decide))
    assert keys_moved(state) is not None
    state.settle()
    assert keys_moved(state) is None


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("write", [pytest.param(Upsert(), id="delete"), pytest.param(SOFT, id="soft")])
def test_keys_that_move_once_end_in_the_state_of_their_replay(
    shop_of: ShopOf, write: Upsert, seed: int, version: int
) -> None:
    """Some records before the partitions change have landed, the others wait; batches are small, and one is killed."""
    dice = random.Random(seed)
    state = state_of(shop_of, write, version=version, limits=Limits(first_rows=5, max_rows=5))
    at = 0
    for moves in (False, True):
        for part in range(2):
            for _ in range(dice.randrange(4, 14)):
                at += 1
                key = dice.randrange(5)
                word = None if dice.random() < 0.3 else f"w{at}"
                state.produce(key, word, at=at, partition=(key + moves) % 2)
            if not moves and part == 0:
                state.shop.drain()
    stops(state)
    accepted(state)
    kills = [dice.randrange(3)]

    def killed(step: str) -> None:
        if step == "publish.filled":
            kills[0] -= 1
            if kills[0] == -1:
                raise RuntimeError("killed")

    try:
        state.shop.drain(failpoint=killed)
    except RuntimeError:
        state.settle()
    for key in range(5):  # back to where they were
        state.produce(key, "back", at=at + 1, partition=key % 2)
    state.settle()


def test_another_decision_before_the_next_batch_does_not_undo_one_on_rejected_records(shop_of: ShopOf) -> None:
    state = state_of(shop_of, Upsert())
    state.produce(1, "first", at=1)
    state.shop.drain()
    state.produce(1, "second", at=2)
    state.shop.accept(Accepted.REJECTED_SHARE)
    accepted(state)
    windows = {ledger.window_of(event) for event in (Accepted.REJECTED_SHARE, Accepted.KEYS_MOVED)}
    assert windows <= state.shop.entry().summary.keys()


@pytest.mark.long
def test_only_a_state_without_an_order_has_such_a_decision(shop_of: ShopOf) -> None:
    state = state_of(shop_of, Upsert(order_by="version", on_tombstone="soft_delete"))
    state.produce(1, "first", version=1)
    state.shop.drain()
    with pytest.raises(InvalidInput, match="keys-moved has not happened"):
        accepted(state)
