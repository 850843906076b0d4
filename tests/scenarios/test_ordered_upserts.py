"""Upsert tables whose records are ordered by a field, and whose deleted rows stay, on a real broker and registry."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import ErrorMode, Limits, Order, Upsert
from frazil.errors import InvalidInput, TooManyLate, WriteModeDiffers
from frazil.recovery.decisions import Accepted
from tests.support.jobs import once
from tests.support.shop import ShopOf, avro, frame
from tests.support.state_replay import VERSIONED, StateReplay, seconds

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
SOFT = Upsert(on_tombstone="soft_delete")
BY_TIME = Upsert(order_by="_kafka_timestamp", on_tombstone="soft_delete")
BY_VERSION = Upsert(order_by="version", on_tombstone="soft_delete")
SMALL = Limits(first_rows=4, max_rows=4)
VERSIONS = [2, pytest.param(3, marks=pytest.mark.long)]


def state_of(shop_of: ShopOf, write: Upsert, *, version: int = 2, **choices: object) -> StateReplay:
    shop = shop_of(write=write, key_format="text", table={"format_version": version}, **choices)
    return StateReplay(shop, ordered_by=write.order_columns[0] if write.order_columns else None)


def orders(state: StateReplay) -> dict[str, Any]:
    """Return the order that the table keeps of each row, by its key."""
    return {row["_kafka_key"]: row["_order"] for row in state.shop.landed()}


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_a_soft_delete_keeps_the_row_and_its_last_values(shop_of: ShopOf, version: int) -> None:
    state = state_of(shop_of, SOFT, version=version)
    for key in range(4):
        state.produce(key, "first", at=key)
    state.shop.drain()
    state.produce(0, None, at=10)  # the row of the batch before
    state.produce(5, "here", at=11)  # a row of this batch
    state.produce(5, None, at=12)
    state.produce(77, None, at=13)  # was never there
    state.settle()
    state.produce(0, None, at=20)
    state.produce(5, "again", at=21)
    state.shop.drain()
    account = state.check()
    assert (account.inserted, account.updated, account.deleted, account.absent) == (0, 1, 1, 0)


def test_a_late_record_changes_nothing(shop_of: ShopOf) -> None:
    state = state_of(shop_of, BY_VERSION)
    state.produce(1, "newest", version=5)
    state.produce(2, "old", version=1)
    state.shop.drain()
    state.produce(1, "older", version=4)
    state.produce(1, "oldest", version=3)
    state.produce(2, "new", version=2, partition=1)  # the key moved: the order decides
    state.shop.drain()
    state.check(late=2)
    assert orders(state) == {"k1": 5, "k2": 2}


@pytest.mark.long
def test_the_second_column_decides_where_the_first_is_equal(shop_of: ShopOf) -> None:
    """In a batch, and against the row in the table; a higher place does not."""
    state = state_of(shop_of, Upsert(order_by=Order(("version", "_kafka_timestamp"))))
    state.produce(1, "later", version=5, at=9, partition=0)
    state.produce(1, "earlier", version=5, at=7, partition=1)
    state.produce(2, "later", version=5, at=9)
    state.produce(3, "first", version=5, at=3)
    state.shop.drain()
    state.produce(2, "earlier", version=5, at=8)
    state.produce(3, "later", version=5, at=4)
    state.produce(3, "of a lower version", version=4, at=20)
    state.shop.drain()
    assert {row["_kafka_key"]: row["user"] for row in state.shop.landed()} == dict.fromkeys(("k1", "k2", "k3"), "later")
    assert state.account().late == 1
    found = {key: (order["version"], seconds(order["_kafka_timestamp"])) for key, order in orders(state).items()}
    assert found == {"k1": (5, 9), "k2": (5, 9), "k3": (5, 4)}


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("write", [pytest.param(SOFT, id="by_offset"), pytest.param(BY_TIME, id="by_time")])
def test_any_records_in_any_batches_end_in_the_state_of_their_replay(
    shop_of: ShopOf, write: Upsert, seed: int, version: int
) -> None:
    """Times repeat and go back, so that records are late or tied; a key has one partition, so that its values are known."""
    dice = random.Random(seed)
    state = state_of(shop_of, write, version=version)
    for _ in range(3 if seed == 1 else 6):
        for _ in range(dice.randrange(3, 25)):
            word = None if dice.random() < 0.3 else f"w{dice.randrange(1000)}"
            state.produce(dice.randrange(6), word, at=dice.randrange(40))
        state.settle()
        if write.order_columns:
            found = {key: seconds(order) for key, order in orders(state).items()}
            assert found == {f"k{key}": row.place[0] for key, row in state.rows().items()}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_partitions_of_a_keys_records_do_not_matter(shop_of: ShopOf, seed: int) -> None:
    dice = random.Random(seed)
    state = state_of(shop_of, BY_TIME, limits=SMALL)
    for _ in range(4):
        for _ in range(dice.randrange(3, 20)):
            word = None if dice.random() < 0.3 else f"w{dice.randrange(1000)}"
            state.produce(dice.randrange(5), word, at=dice.randrange(20), partition=dice.randrange(2))
        state.shop.drain()
        state.check(are_values_known=False)


def two_batches(state: StateReplay) -> None:
    """Land a batch, and produce one with an update, a late record, a soft delete and an insert."""
    for key in range(4):
        state.produce(key, "first", at=10)
    state.produce(3, "second", at=11)
    state.shop.drain()
    state.produce(0, "newer", at=12)
    state.produce(1, "late", at=9)
    state.produce(2, None, at=12)
    state.produce(8, "new", at=1)


STEPS = ["stage.written", "publish.decided", "publish.searched", "publish.filled"]


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_what_is_late_is_decided_again_when_rows_changed(shop_of: ShopOf, step: str) -> None:
    """Another engine sets a row's order: the staged record of its key must not land any more, and its values are kept."""
    state = state_of(shop_of, BY_TIME)
    two_batches(state)

    def changes() -> None:
        far = "TIMESTAMP '2033-01-01 00:00:00+00:00'"
        state.shop.sql(f"UPDATE {{}} SET _order = {far}, user = 'theirs' WHERE order_id = 0")
        state.shop.sql("UPDATE {} SET user = 'theirs' WHERE order_id = 2")

    state.shop.drain(failpoint=once(step, changes))
    assert len(state.shop.seen("batch_retried")) == 1
    assert [event["operation"] for event in state.shop.seen("foreign_commit")] == ["overwrite"] * 2
    rows = {row["_kafka_key"]: (row["user"], row["_deleted_at"] is None) for row in state.shop.landed()}
    assert rows == {
        "k0": ("theirs", True),
        "k1": ("first", True),
        "k2": ("theirs", False),
        "k3": ("second", True),
        "k8": ("new", True),
    }
    assert state.account().late == 2


@pytest.mark.long
def test_a_topic_that_was_made_again_with_its_records_ends_in_the_same_state(shop_of: ShopOf) -> None:
    """Its offsets begin at 0: a record of the same order as its row's changes the row only if its place is the higher one."""
    state = state_of(shop_of, BY_TIME)
    two_batches(state)
    state.produce(0, "tied", at=12, partition=1)
    state.shop.drain()
    before = state.rows()
    shop, records = state.shop, list(state.records)
    shop.new_topic(2)
    shop.accept(Accepted.TOPIC_RECREATED)
    for record in records:
        state.produce(record.key, record.word, at=record.at, partition=record.partition)
    state.settle()
    assert {key: (row.word, row.deleted_at) for key, row in state.rows().items()} == {
        key: (row.word, row.deleted_at) for key, row in before.items()
    }
    shop.new_topic(2)  # a shorter life: what it has of one order loses, what it has of a higher one wins
    shop.accept(Accepted.TOPIC_RECREATED)
    state.produce(0, "same order, lower place", at=12, partition=0)
    state.produce(3, "higher order", at=12)
    state.settle()
    assert state.rows()[0].word == "tied"


@pytest.mark.long
def test_records_without_an_order_are_dead_letters(shop_of: ShopOf) -> None:
    state = state_of(shop_of, BY_VERSION, on_error=ErrorMode.DEAD_LETTER)
    state.produce(1, "first", version=1)
    state.shop.produce([None], key=b"k1", partition=1)  # it has no version
    state.shop.produce(
        [frame(state.schema_id, avro(VERSIONED, {"order_id": 1, "user": "x", "version": None}))], key=b"k1"
    )
    total = state.shop.drain()
    state.check(late=0)
    assert total.rejected == {"order_missing": 2}


def test_a_value_that_its_column_of_the_order_cuts_is_a_dead_letter(shop_of: ShopOf) -> None:
    """Else two records of one key tie, and the older one wins by its offset; and `9` is a text after `10`."""
    shop = shop_of(
        value_format="json",
        columns=("id long", "at timestamptz", "code string", "word string"),
        write=Upsert(key="id", order_by=Order(("at", "code"))),
        on_error=ErrorMode.DEAD_LETTER,
    )
    at = "2026-03-01T00:00:00.123456"
    records = [
        {"at": f"{at}Z", "code": "a", "word": "kept"},
        {"at": f"{at}789Z", "code": "a", "word": "newer"},
        {"at": f"{at}1Z", "code": "a", "word": "older"},
        {"at": f"{at}Z", "code": 9, "word": "no text"},
        {"at": f"{at}000Z", "code": "A", "word": "late"},
        {"at": f"{at[:-1]}5Z", "code": "z", "word": "late"},
    ]
    shop.produce([json.dumps({"id": 1, **record}).encode() for record in records], partition=0)
    assert shop.drain().rejected == {"undecodable": 3}
    assert [row["word"] for row in shop.landed()] == ["kept"]


@pytest.mark.long
def test_ties_are_counted_and_the_higher_place_wins(shop_of: ShopOf) -> None:
    state = state_of(shop_of, BY_VERSION)
    state.produce(1, "high", version=1, partition=1)
    state.produce(1, "low", version=1, partition=0)
    state.produce(2, "first", version=1, partition=0)
    state.produce(2, "second", version=1, partition=0)
    state.shop.drain()
    state.check(late=0)
    state.produce(1, "lower", version=1, partition=0)
    state.produce(2, "higher", version=1, partition=1)
    state.shop.drain()
    state.check(late=1)
    ties = [json.loads(s.summary["frazil.counts"]).get("order_ties") for s in state.shop.stored.snapshots()]
    assert ties == [None, 1, 2]


@pytest.mark.long
def test_many_late_records_stop_the_pipeline_until_they_are_accepted(shop_of: ShopOf) -> None:
    state = state_of(shop_of, BY_VERSION)
    state.produce(1, "newest", version=9)
    state.produce(2, "old", version=1)
    state.shop.drain()
    for number in range(100):
        state.produce(1, f"older {number}", version=number % 8)
    state.produce(2, "new", version=2)
    with pytest.raises(TooManyLate, match="100 of 101 records"):
        state.shop.drain()
    state.shop.accept(Accepted.LATE_RECORDS)
    state.shop.drain()
    state.check(late=100)


@pytest.mark.long
def test_what_never_changes_and_what_may(shop_of: ShopOf) -> None:
    """The order is the table's. A plain delete may become a soft one, and back."""
    state = state_of(shop_of, Upsert())
    shop, plain = state.shop, state.shop.pipeline
    state.produce(1, "first", at=1)
    state.produce(2, "first", at=1)
    shop.drain()
    with pytest.raises(
        WriteModeDiffers, match="made for write mode upsert, and the declaration has upsert ordered by version"
    ):
        shop.drain(replace(plain, write=BY_VERSION))
    shop.pipeline = replace(plain, write=SOFT)
    state.produce(1, None, at=2)
    state.settle()
    shop.pipeline = plain
    for key in (1, 2):
        state.produce(key, None, at=3)
    shop.drain()
    state.records.clear()
    state.check()


@pytest.mark.long
@pytest.mark.parametrize("order_by", ["version", ("version", "_kafka_timestamp")])
def test_the_order_stays_comparable_when_its_column_widens(shop_of: ShopOf, order_by: str | tuple[str, ...]) -> None:
    state = state_of(shop_of, Upsert(order_by=Order(order_by), on_tombstone="soft_delete"))
    state.ordered_by = "version"
    for key in range(3):
        state.produce(key, "narrow", version=5, at=5)
    state.shop.drain()
    wide = json.loads(json.dumps(VERSIONED).replace('"int"', '"long"'))
    state.schema_id = state.shop.register(wide)
    state.produce(0, "late", version=4, at=6)
    state.produce(1, "wide", version=6, at=4)
    state.shop.drain()
    state.check(late=1)
    assert "long" in str(state.shop.stored.schema().find_field("_order"))
    state.produce(2, "wider", version=7)
    state.shop.drain()
    state.check(late=1)


@pytest.mark.long
def test_columns_that_were_added_since_a_row_landed_do_not_matter_to_a_soft_delete(shop_of: ShopOf) -> None:
    state = state_of(shop_of, SOFT)
    for key in range(3):
        state.produce(key, "first", version=1)
    state.shop.drain()
    more = {
        "name": "place",
        "type": ["null", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}],
    }
    wider = {**VERSIONED, "fields": [*VERSIONED["fields"], {**more, "default": None}]}  # type: ignore[misc]
    state.schema_id = state.shop.register(wider)
    value = avro(wider, {"order_id": 0, "user": "wide", "version": 2, "place": {"x": 1}})
    state.shop.produce([frame(state.schema_id, value)], key=b"k0", partition=0)
    state.shop.produce([None], key=b"k1", partition=1)
    state.shop.drain()
    rows = {row["_kafka_key"]: (row["user"], row["place"]) for row in state.shop.landed()}
    assert rows == {"k0": ("wide", {"x": 1}), "k1": ("first", None), "k2": ("first", None)}


def test_what_orders_no_records_is_refused_before_a_table_is_made(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(order_by=Order("price")), key_format="text")
    shop.register({**VERSIONED, "fields": [*VERSIONED["fields"], {"name": "price", "type": "double"}]})
    with pytest.raises(InvalidInput, match="price is of type double, which orders no records"):
        shop.drain()
    assert not shop.job().iceberg.exists(shop.pipeline.table.identifier)
