"""Tables of current state whose keys are declared to keep the partition of their row, on a real broker and registry."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from frazil.audit.finding import Flaw
from frazil.declaration import Deletes, ErrorMode, History, KeyFormat, Upsert
from frazil.errors import PartitionsMoved
from frazil.lake.commit.entries import entry
from frazil.lake.deletes import batch_partitions
from frazil.lake.key_account import KeyAccount
from tests.scenarios.test_debezium import ALL_GONE, LARGE, NAMES, check, debezium
from tests.scenarios.test_ordered_upserts import BY_TIME
from tests.scenarios.test_upserts import ShopOf, State, verified
from tests.support import oracle
from tests.support.debezium_events import Source
from tests.support.state_replay import StateReplay

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
STABLE = Upsert(stable_partition=True)
BY_WORD, BY_NUMBER = "truncate(1, user)", "truncate(2, order_id)"
"""Partition fields: a word's first letter may change with any record of a key, an order's number never does."""
VERSIONS = [2, pytest.param(3, marks=pytest.mark.long)]


def state_of(shop_of: ShopOf, *, write: Upsert = STABLE, version: int = 2, by: str = BY_WORD) -> State:
    table = {"format_version": version, "partition_by": (by,)}
    return State(shop_of(write=write, key_format=KeyFormat.TEXT, on_error=ErrorMode.LOG, table=table))


def account(state: State) -> KeyAccount:
    last = entry(state.shop.job().iceberg.load(state.shop.pipeline.table.identifier), state.shop.pipeline.name)
    assert last is not None
    assert last.keys is not None
    return last.keys


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch is checked, unless it has keys whose partition is not known."""
    monkeypatch.setattr(batch_partitions, "CONFIRMED_FIRST", 0)
    monkeypatch.setattr(batch_partitions, "CHECKED_ROWS", 0)


def filled(state: State) -> State:
    for number in range(8):
        state.put(number, f"{'ab'[number % 2]} first")
    state.shop.drain()
    return state


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.usefixtures("unchecked")
def test_rows_are_replaced_in_their_partition_and_deleted_by_the_key_alone(shop_of: ShopOf, version: int) -> None:
    state = filled(state_of(shop_of, version=version))
    for number in (0, 2):
        state.put(number, "a second")
    state.delete(3)  # of a partition that the batch does not write
    state.delete(4)
    state.delete(77)  # was never there
    state.put(20, "c new")
    state.shop.drain()
    state.check()
    assert (account(state).updated, account(state).deleted, account(state).absent) == (2, 2, 1)
    state.delete(5)  # a batch of deletes only
    state.shop.drain()
    state.check()


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("batches", [1, 2])
def test_a_key_may_come_back_in_another_partition_behind_its_delete(shop_of: ShopOf, batches: int) -> None:
    """In one batch with its delete as well as in the next one."""
    state = filled(state_of(shop_of))
    state.put(2, "a second")
    state.delete(1)
    if batches == 2:
        state.shop.drain()
    state.put(1, "c again")
    state.shop.drain()
    state.check()
    assert verified(state.shop, deep=True).outcome == "proven"


@pytest.mark.long
@pytest.mark.parametrize("trust", [True, False])
def test_a_key_that_changes_its_partition_stops_the_pipeline(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, trust: bool
) -> None:
    """If a batch is checked, and before any relies on the declaration. Without it the row moves, as any other."""
    monkeypatch.setattr(batch_partitions, "CONFIRMED_FIRST", 0 if trust else 100)
    monkeypatch.setattr(batch_partitions, "CHECKED_ROWS", 100 if trust else 0)
    state = filled(state_of(shop_of))
    before = sorted(row["user"] for row in state.shop.landed())
    state.put(1, "b second")
    state.put(2, "c moved")
    state.put(4, "c moved")
    for _ in range(2):
        with pytest.raises(PartitionsMoved, match="2 keys have a row in another partition"):
            state.shop.drain()
        assert sorted(row["user"] for row in state.shop.landed()) == before
    state.shop.drain(replace(state.shop.pipeline, write=Upsert()))
    state.check()
    assert (account(state).confirmed, account(state).unchecked) == (0, 0)


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
def test_a_deep_verification_finds_what_no_check_had(shop_of: ShopOf) -> None:
    state = filled(state_of(shop_of))
    state.put(2, "c moved")
    state.put(1, "b second")
    state.shop.drain()
    assert len(state.shop.landed()) == 9
    assert verified(state.shop).outcome == "proven", "the commits count the row that stayed, too"
    (found,) = verified(state.shop, deep=True).findings
    assert (found.flaw, found.count) == (Flaw.DOUBLED, 1)
    state.shop.pipeline = replace(state.shop.pipeline, write=Upsert())
    state.put(2, "c again")
    state.shop.drain()
    state.check()


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("deletes", list(Deletes))
def test_the_repair_of_a_key_with_two_rows_is_one_change_of_its_history(
    shop_of: ShopOf, deletes: Deletes, version: int
) -> None:
    """The commit deletes both rows. Until then a commit may write both to other files, which is no change."""
    write = replace(STABLE, history=History(keep_days=30), deletes=deletes)
    state = filled(state_of(shop_of, write=write, version=version))
    shop = state.shop
    for number in (2, 4):
        state.put(number, "c moved")
    shop.drain()
    assert len(shop.landed()) == 10
    state.put(0, "a second")
    state.put(20, "c new")
    shop.drain()
    state.put(20, "c second")
    shop.drain()
    shop.pipeline = replace(shop.pipeline, write=replace(write, stable_partition=False))
    state.put(2, "c again")
    state.delete(4)
    shop.drain()
    assert account(state).doubled == 2
    state.check()
    rows = sorted(
        oracle.rows(shop.lake, shop.pipeline.table.history), key=lambda row: (row["_sequence"], row["order_id"] or 0)
    )
    places = [(row["_kafka_key"], row["_sequence"]) for row in rows]
    assert len(set(places)) == len(places)
    assert [(row["_kafka_key"], row["_op"], (row["_before"] or {}).get("user")) for row in rows[8:]] == [
        ("k2", "c", None),
        ("k4", "c", None),
        ("k0", "u", "a first"),
        ("k20", "c", None),
        ("k20", "u", "c new"),
        ("k4", "d", "c moved"),
        ("k2", "u", "c moved"),
    ]


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("version", [2, 3])
def test_a_history_has_the_newest_row_of_a_key_whose_older_one_is_of_an_earlier_spec(
    shop_of: ShopOf, version: int
) -> None:
    """The older one's file is read for another key, all of its rows, so that it is found and goes with the newer one."""
    state = state_of(shop_of, write=replace(STABLE, history=History(keep_days=30)), version=version)
    shop, table = state.shop, f"lake.{state.shop.pipeline.table.identifier}"
    state.put(1, "b")
    shop.drain()
    shop.spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD user_trunc")
    filled(state)
    shop.spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD truncate(1, user)")
    state.put(2, "c moved")
    shop.drain()
    assert len(shop.landed()) == 9
    state.put(2, "c again")
    state.put(1, "b second")
    shop.drain()
    state.check()
    changes = oracle.rows(shop.lake, shop.pipeline.table.history)
    newest = max(row["_sequence"] for row in changes)
    found = {row["_kafka_key"]: (row["_op"], row["_before"]["user"]) for row in changes if row["_sequence"] == newest}
    assert found == {"k1": ("u", "b first"), "k2": ("u", "c moved")}


@pytest.mark.long
def test_a_table_of_before_is_searched_everywhere_first(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_partitions, "CHECKED_ROWS", 0)
    monkeypatch.setattr(batch_partitions, "CONFIRMED_FIRST", 5)
    state = filled(state_of(shop_of, write=Upsert()))
    state.put(2, "c moved")  # rows may move yet
    state.shop.drain()
    state.check()
    state.shop.pipeline = replace(state.shop.pipeline, write=STABLE)
    found = []
    for number in (0, 1, 2, 3, 4, 5):
        state.put(number, f"{'abcbab'[number]} second")
        state.shop.drain()
        found.append((account(state).confirmed, account(state).unchecked))
    assert found == [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (5, 1)]
    state.delete(0)  # a delete shows nothing, and takes no trust away
    state.shop.drain()
    assert (account(state).confirmed, account(state).unchecked) == (5, 2)
    state.check()
    state.shop.drain(replace(state.shop.pipeline, write=Upsert()))
    state.put(6, "c moved")
    state.shop.drain(replace(state.shop.pipeline, write=Upsert()))
    assert account(state).confirmed == 0
    state.check()


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("version", [2, 3])
def test_rows_of_files_of_an_earlier_partition_spec_are_replaced(shop_of: ShopOf, version: int) -> None:
    """Files of no partition, of letters and of buckets: keys keep the declared field, whatever a file is partitioned by."""
    state = state_of(shop_of, version=version)
    table = f"lake.{state.shop.pipeline.table.identifier}"
    numbers = range(12)
    for change in (
        "",
        "DROP PARTITION FIELD user_trunc",
        "ADD PARTITION FIELD bucket(2, user)",
        "ADD PARTITION FIELD user",
    ):
        if change:
            state.shop.spark.sql(f"ALTER TABLE {table} {change}")
        for number in random.Random(change).sample(numbers, 7):
            state.put(number, f"{'abc'[number % 3]} {len(change)} {number % 5}")
        state.shop.drain()  # only the partitions of the batch are searched
        state.check()
        state.delete(random.Random(change).choice(numbers))
        state.shop.drain()
        state.check()


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "write",
    [
        BY_TIME,
        pytest.param(Upsert(order_by="_kafka_timestamp"), id="hard"),
        pytest.param(replace(BY_TIME, deletes=Deletes.COPY_ON_WRITE), id="copies"),
        pytest.param(replace(BY_TIME, order_by=()), id="by_offset"),
    ],
)
def test_any_records_in_any_batches_end_in_the_state_of_their_replay(
    shop_of: ShopOf, write: Upsert, version: int
) -> None:
    """Late records, soft deletes of rows and of unknown keys, which are rows without values in no partition of the others."""
    dice = random.Random(version)
    table = {"format_version": version, "partition_by": (BY_NUMBER,)}
    shop = shop_of(write=replace(write, stable_partition=True), key_format=KeyFormat.TEXT, table=table, on_error="log")
    state = StateReplay(shop, ordered_by=write.order_by[0] if write.order_by else None)
    for _ in range(2 if version == 2 and write == BY_TIME else 4):
        for _ in range(dice.randrange(9, 20)):
            word = None if dice.random() < 0.3 else f"w{dice.randrange(1000)}"
            state.produce(dice.randrange(9), word, at=dice.randrange(40))
        shop.drain()
        state.check()


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
def test_a_change_that_leaves_out_the_partition_finds_its_row(shop_of: ShopOf) -> None:
    shop = debezium(shop_of, write=STABLE, table={"partition_by": ("truncate(1, note)",)})
    source = Source(shop, LARGE)
    for number in range(4):
        source.write("r", number, customer="first", note=f"{number} note", blob=b"b", tags=["t"])
    shop.drain()
    source.write("u", 1, customer="the partition is not known", **ALL_GONE)
    source.write("u", 2, customer="it is known", note="2 new", **{k: v for k, v in ALL_GONE.items() if k != "note"})
    source.delete(3)
    shop.drain()
    check(source, *NAMES)


@pytest.mark.long
def test_a_late_record_of_a_former_partition_moves_nothing(shop_of: ShopOf) -> None:
    """Its key was deleted and came back in another one; what changes no row breaks no promise."""
    write = replace(BY_TIME, on_tombstone="delete", stable_partition=True)
    shop = shop_of(write=write, key_format=KeyFormat.TEXT, table={"partition_by": (BY_WORD,)})
    state = StateReplay(shop, ordered_by=write.order_by[0])
    for at, word in ((1, "a first"), (3, None), (5, "c again"), (2, "a late")):
        state.produce(1, word, at=at)
        shop.drain()
        state.check()


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
def test_values_that_are_left_out_are_those_of_the_newest_row_of_a_key_with_two(shop_of: ShopOf) -> None:
    shop = debezium(shop_of, write=STABLE, table={"partition_by": ("truncate(1, note)",)})
    source = Source(shop, LARGE)
    for note, blob in (("a", b"old"), ("b", b"new")):
        for number in range(8):
            source.write("u", number, customer="x", note=f"{note} note", blob=blob, tags=["t"])
        shop.drain()
    assert len(shop.landed()) == 16
    shop.pipeline = replace(shop.pipeline, write=Upsert())
    for number in range(8):
        source.write("u", number, customer="repaired", **ALL_GONE)
    shop.drain()
    check(source, *NAMES)


@pytest.mark.long
@pytest.mark.usefixtures("unchecked")
def test_rows_whose_partition_their_key_says_are_replaced_and_deleted(shop_of: ShopOf) -> None:
    table = {"partition_by": ("truncate(2, _kafka_key)",)}
    state = State(shop_of(write=STABLE, key_format=KeyFormat.TEXT, table=table))
    for round_ in range(3):
        for number in range(6):
            state.put(number, f"of {round_}")
        state.delete(round_)
        state.shop.drain()
        state.check()
