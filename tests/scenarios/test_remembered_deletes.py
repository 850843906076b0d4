"""Upsert tables whose records are ordered and whose deleted rows go: what they remember of deletes."""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from frazil.declaration import Keep, Limits, Order, Upsert
from frazil.declaration.environment import Environment
from frazil.errors import InvalidInput, RememberedDeletesLost
from frazil.lake.ledger.remembered_deletes import EACH, RememberedDeletes
from frazil.local.services import LocalServices
from frazil.maintain.expire import carry, expire
from frazil.maintain.orphans import orphans
from frazil.recovery.decisions import Accepted
from frazil.schemas.iceberg import identifier_fields
from tests.support.jobs import once
from tests.support.keyed_topic import record
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame
from tests.support.state_replay import EPOCH_MS, StateReplay

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
BY_TIME = Upsert(order_by="_kafka_timestamp")
SMALL = Limits(first_rows=4, max_rows=4)
DAY = 86_400.0


def state_of(shop_of: ShopOf, write: Upsert = BY_TIME, *, version: int = 2, **choices: Any) -> StateReplay:
    shop = shop_of(write=write, key_format="text", table={"format_version": version}, **choices)
    return StateReplay(shop, ordered_by="at")


def remembered(state: StateReplay) -> RememberedDeletes:
    return state.shop.entry().remembered_deletes


def test_a_delete_is_forgotten_after_the_declared_time(shop_of: ShopOf) -> None:
    """The time is that of the drivers, not of the records: a topic that is landed late has old ones."""
    state = state_of(shop_of, replace(BY_TIME, order_by=Order("_kafka_timestamp", remember_deletes="3 days")))
    for key in range(3):
        state.produce(key, None, at=20)
    state.shop.drain()
    state.produce(0, "late", at=10)
    state.shop.drain(clock=lambda: time.time() + 2 * DAY)
    state.check(late=1)
    state.produce(5, None, at=20)
    state.shop.drain(clock=lambda: time.time() + 2.5 * DAY)
    assert len(remembered(state).files) == 2
    state.produce(1, "back", at=10)
    state.produce(5, "late", at=10)
    state.shop.drain(clock=lambda: time.time() + 4 * DAY)
    rows = {row["_kafka_key"]: row["user"] for row in state.shop.landed()}
    assert rows == {"k1": "back"}
    assert state.account().late == 2
    assert len(remembered(state).files) == 1


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", range(1, 6))
def test_any_records_in_any_batches_end_in_the_state_of_their_replay(shop_of: ShopOf, seed: int, version: int) -> None:
    """Times repeat and go back, keys have records in two partitions, and files of deletes are merged."""
    dice = random.Random(seed)
    state = state_of(shop_of, BY_TIME, version=version, limits=SMALL if seed > 1 else Limits())
    merged = 0
    for turn in range(EACH + 3 if seed == 1 else 8):
        for _ in range(dice.randrange(3, 12)):
            word = None if dice.random() < 0.5 else f"w{dice.randrange(1000)}"
            state.produce(dice.randrange(6), word, at=turn * 5 + dice.randrange(30), partition=dice.randrange(2))
        before = len(remembered(state).files) if state.shop.events else 0
        state.shop.drain()
        merged += len(remembered(state).files) < before
    state.check()
    assert merged


def key_files(state: StateReplay) -> set[str]:
    """The files of deleted keys that exist."""
    location = state.shop.table.location()
    return {path.name for path in Path(urlsplit(location).path).glob("data/deleted-keys/**/*.parquet")}


def remove_orphans(state: StateReplay, *, are_old: bool = True) -> int:
    """Make all files of the table old, and remove those that nothing needs; return how many these were."""
    folder = Path(urlsplit(state.shop.table.location()).path)
    old = time.time() - 4 * DAY
    for path in folder.rglob("*") if are_old else ():
        os.utime(path, (old, old))
    return orphans(state.shop.upkeep(), state.shop.target, remove=True).files_removed


def names(known: RememberedDeletes) -> set[str]:
    return {Path(location).name for location in known.locations}


def test_files_that_a_snapshot_names_stay_and_others_are_orphans(shop_of: ShopOf) -> None:
    """A rollback to a snapshot needs its files; behind its expiry they go. Without a file that the table needs, nothing lands.

    A snapshot that no batch made goes by the batch before it, also if that one is expired.
    """
    state = state_of(shop_of)
    shop = state.shop
    for turn in range(EACH + 1):
        if turn == EACH - 1:  # the next batch merges the files
            shop.table.newAppend().commit()
        state.produce(turn, None, at=20)
        shop.drain()
    now = names(remembered(state))
    assert len(now) == 2 < EACH + 1 == len(key_files(state))
    shop.pipeline = replace(shop.pipeline, table=replace(shop.pipeline.table, snapshots=Keep(3)))
    assert expire(shop.upkeep(), shop.target).snapshots == EACH
    remove_orphans(state)
    assert len(key_files(state)) == EACH + 1
    shop.pipeline = replace(shop.pipeline, table=replace(shop.pipeline.table, snapshots=Keep(1)))
    shop.compact()
    expire(shop.upkeep(), shop.target)
    remove_orphans(state)
    assert key_files(state) == now
    for turn in range(EACH + 1):
        state.produce(turn, "late", at=10)
    shop.drain()
    state.check(late=EACH + 1)
    last = Path(urlsplit(remembered(state).locations[-1]).path)
    content = last.read_bytes()
    state.produce(0, "late", at=11)
    state.produce(EACH, "back", at=10)
    # Cut off, other bytes with the checksum of before, other bytes, and gone.
    for damage, flaw in (
        (lambda: last.write_bytes(content[:-9]), "file_altered"),
        (lambda: last.write_bytes(bytes(len(content))), None),
        (lambda: last.with_name(f".{last.name}.crc").unlink(missing_ok=True), None),
        (last.unlink, "file_lost"),
    ):
        damage()
        with pytest.raises(RememberedDeletesLost, match="frazil accept .* remembered-deletes-lost"):
            shop.drain()
        proof = shop.verified()
        assert [finding.flaw for finding in proof.findings] == ([flaw] if flaw else [])
        assert all("remembered-deletes-lost" in finding.what for finding in proof.findings)
    shop.accept(Accepted.REMEMBERED_DELETES_LOST)
    with pytest.raises(InvalidInput, match="there is nothing to accept"):
        shop.accept(Accepted.REMEMBERED_DELETES_LOST)
    shop.drain()
    assert [(row["_kafka_key"], row["user"]) for row in shop.landed()] == [(f"k{EACH}", "back")]
    assert state.account().late == EACH + 2


def two_batches(state: StateReplay) -> None:
    """Land deletes, and produce late and newer records, deletes of a row, of nothing and of what is deleted, and an insert."""
    for key in range(4):
        state.produce(key, "first", at=10)
    state.produce(0, None, at=20)
    state.produce(1, None, at=20)
    state.produce(2, None, at=20)
    state.shop.drain()
    state.produce(0, "late", at=15)
    state.produce(1, "newer", at=25)
    state.produce(2, None, at=18)
    state.produce(3, None, at=30)
    state.produce(7, None, at=30)
    state.produce(8, "new", at=1)


def after_all(state: StateReplay) -> None:
    """Land what tests the deletes of both batches, and check all."""
    state.shop.drain()
    state.check(late=2)
    for key, at in ((0, 19), (2, 19), (3, 29), (7, 29), (1, 24)):
        state.produce(key, "late", at=at)
    state.shop.drain()
    state.check(late=7)
    for key in range(9):
        state.produce(key, "newer", at=50)
    state.shop.drain()
    state.check(late=7)


STEPS = ["stage.written", "publish.decided", "publish.searched", "publish.filled"]


@pytest.mark.parametrize("step", [*STEPS, "stage.started", "stage.done", "publish.committed"])
def test_a_driver_that_died_at_a_step_leaves_rows_and_deletes_in_agreement(shop_of: ShopOf, step: str) -> None:
    state = state_of(shop_of)
    two_batches(state)
    state.shop.die(step)
    after_all(state)


@pytest.mark.parametrize("step", STEPS)
def test_a_second_driver_that_lands_meanwhile_fences_the_first(shop_of: ShopOf, step: str) -> None:
    state = state_of(shop_of)
    two_batches(state)
    assert state.shop.drain(failpoint=once(step, state.shop.drain)).fenced
    after_all(state)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("version", [2, 3])
def test_upkeep_in_between_leaves_what_was_staged_right(shop_of: ShopOf, version: int, step: str) -> None:
    """A compaction, an expiry, orphan removal and a carried tag change no row: the batch is published on the moved head."""
    state = state_of(shop_of, version=version)
    shop = state.shop
    shop.pipeline = replace(shop.pipeline, table=replace(shop.pipeline.table, snapshots=Keep(1)))
    two_batches(state)

    def rewrite() -> None:
        shop.rewrite()
        expire(shop.upkeep(), shop.target)
        remove_orphans(state, are_old=False)  # what this batch staged is not three days old

    shop.drain(failpoint=once(step, rewrite))
    assert shop.seen("batch_retried") == []
    after_all(state)


@pytest.mark.parametrize("step", STEPS)
def test_what_is_late_is_decided_again_when_another_engine_changes_rows(shop_of: ShopOf, step: str) -> None:
    state = state_of(shop_of)
    two_batches(state)
    far = "TIMESTAMP '2033-01-01 00:00:00+00:00'"
    update = f"UPDATE {{}} SET _order = {far}, user = 'theirs' WHERE _kafka_key = 'k3'"
    state.shop.drain(failpoint=once(step, lambda: state.shop.sql(update)))
    assert len(state.shop.seen("batch_retried")) == 1
    rows = {row["_kafka_key"]: row["user"] for row in state.shop.landed()}
    assert rows == {"k1": "newer", "k3": "theirs", "k8": "new"}
    assert state.account().late == 3
    state.produce(3, "late", at=40)
    state.produce(7, "late", at=29)
    state.shop.drain()
    assert state.account().late == 5


@pytest.mark.parametrize("event", [Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD])
def test_a_rollback_takes_deletes_back_with_the_rows(shop_of: ShopOf, event: Accepted) -> None:
    state = state_of(shop_of)
    shop = state.shop
    two_batches(state)
    before = remembered(state)
    table = shop.table
    head = table.currentSnapshot().snapshotId()
    shop.drain()
    after = remembered(state)
    assert after != before
    table.refresh()
    table.manageSnapshots().rollbackTo(head).commit()
    shop.accept(event)
    assert remembered(state) == before
    if event is Accepted.ROLLED_BACK_REPLAY:
        after_all(state)
        return
    state.records = [
        record for record in state.records if record.at <= 20 and record.word != "late" and record.key != 8
    ]
    state.records = [record for record in state.records if record.at != 18]
    state.produce(3, "newer", at=29)
    state.produce(7, "here", at=1)
    state.produce(0, "late", at=19)
    shop.drain()
    assert {row["_kafka_key"]: row["user"] for row in shop.landed()} == {"k3": "newer", "k7": "here"}
    assert state.account().late == 1


@pytest.mark.parametrize("event", [Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD])
def test_a_rollback_to_a_compaction_behind_an_expired_batch_keeps_its_deletes(shop_of: ShopOf, event: Accepted) -> None:
    state = state_of(shop_of)
    shop = state.shop
    for turn in range(EACH - 1):
        state.produce(turn, None, at=20)
        shop.drain()
    before = remembered(state)
    table = shop.table
    table.newAppend().commit()
    compaction = table.currentSnapshot().snapshotId()
    state.produce(EACH, None, at=20)
    shop.drain()
    shop.pipeline = replace(shop.pipeline, table=replace(shop.pipeline.table, snapshots=Keep(2)))
    assert expire(shop.upkeep(), shop.target).snapshots == EACH
    remove_orphans(state)
    table.refresh()
    table.manageSnapshots().rollbackTo(compaction).commit()
    shop.accept(event)
    assert remembered(state) == before
    for turn in (0, EACH):
        state.produce(turn, "late", at=10)
    shop.drain()
    rows = {row["_kafka_key"] for row in shop.landed()}
    assert rows == (set() if event is Accepted.ROLLED_BACK_REPLAY else {f"k{EACH}"})


def test_a_carried_tag_and_a_decision_keep_what_is_remembered(shop_of: ShopOf) -> None:
    state = state_of(shop_of)
    shop = state.shop
    shop.pipeline = replace(shop.pipeline, table=replace(shop.pipeline.table, snapshots=Keep(1)))
    two_batches(state)
    known = remembered(state)

    def later() -> float:
        return time.time() + 30 * DAY

    shop.accept(Accepted.LATE_RECORDS)
    assert remembered(state) == known
    for number in range(3):
        table = shop.table
        table.newAppend().commit() if number else shop.compact()
    carry(shop.upkeep(clock=later), shop.target)
    assert remembered(state) == known
    expire(shop.upkeep(clock=later), shop.target)
    remove_orphans(state)
    assert names(known) <= key_files(state)
    after_all(state)


def test_deletes_may_become_soft_and_back(shop_of: ShopOf) -> None:
    """What is remembered counts in both; a soft delete keeps its order in the row."""
    state = state_of(shop_of)
    shop, hard = state.shop, state.shop.pipeline
    soft = replace(hard, write=replace(BY_TIME, on_tombstone="soft_delete"))
    state.produce(0, None, at=20)
    state.produce(1, None, at=20)
    shop.drain()
    shop.pipeline = soft
    state.produce(0, "late", at=19)
    state.produce(1, None, at=30)
    state.produce(2, "first", at=10)
    state.produce(2, None, at=20)
    shop.drain()
    rows = {row["_kafka_key"]: row["_deleted_at"] is not None for row in shop.landed()}
    assert rows == {"k1": True, "k2": True}
    assert state.account().late == 1
    shop.pipeline = hard
    state.produce(0, "late", at=18)
    state.produce(1, "late", at=29)
    state.produce(2, "late", at=19)
    shop.drain()
    assert state.account().late == 4
    state.produce(1, None, at=40)
    state.produce(2, "newer", at=25)
    shop.drain()
    state.produce(1, "late", at=35)
    shop.drain()
    assert {row["_kafka_key"]: row["user"] for row in shop.landed()} == {"k2": "newer"}
    assert state.account().late == 5


KEY = record("Key", order_id="int", zone="string")


class Keyed:
    """A topic whose keys are records, and whose values may have the key's zone. A delete has an order, as it is of the key too."""

    def __init__(self, shop: Shop, *, has_zone: bool = False) -> None:
        self.shop, self.more = shop, [{"name": "zone", "type": "string"}] if has_zone else []
        self.evolve("int")
        self.key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(KEY))

    def evolve(self, order_type: str) -> None:
        fields = [{"name": "order_id", "type": order_type}, *ORDER["fields"][1:], *self.more]
        self.value = {**ORDER, "fields": fields}
        self.value_id = self.shop.register(self.value)

    def put(self, number: int, word: str | None, at: int, zone: str = "z") -> None:
        value = {"order_id": number, "user": word, "amount": None} | ({"zone": zone} if self.more else {})
        body = None if word is None else frame(self.value_id, avro(self.value, value))
        key = frame(self.key_id, avro(KEY, {"order_id": number, "zone": zone}))
        self.shop.produce([body], partition=0, key=key, timestamp=EPOCH_MS + at * 1000)

    def check(self, rows: dict[tuple[int, str], str], late: int) -> None:
        found = {(row["order_id"], row["zone"]): row["user"] for row in self.shop.landed()}
        assert found == rows
        self.shop.assert_proven(deep=True)
        assert self.shop.account().late == late


def keyed_life(keyed: Keyed) -> None:
    """Deletes in a narrow column, late records and a merge of their files in a wide one."""
    shop = keyed.shop
    keyed.put(1, "first", 10)
    keyed.put(2, None, 20)
    keyed.put(2, None, 20, zone="y")
    keyed.put(1, None, 20)
    shop.drain()
    keyed.evolve("long")
    keyed.put(1, "late", 19)
    keyed.put(2, "late", 19)
    keyed.put(2, "other zone", 19, zone="x")
    shop.drain()
    keyed.check({(2, "x"): "other zone"}, late=2)
    for number in range(EACH):
        keyed.put(3 + number, None, 20)
        shop.drain()
    for number in range(EACH):
        keyed.put(3 + number, "late", 19)
    keyed.put(1, "late", 18)
    keyed.put(2, "newer", 21, zone="y")
    shop.drain()
    keyed.check({(2, "x"): "other zone", (2, "y"): "newer"}, late=3 + EACH)


@pytest.mark.parametrize("partition_by", [(), ("bucket(4, order_id)",), ("zone",)])
@pytest.mark.parametrize("order_by", ["_kafka_timestamp", ("_kafka_timestamp", "order_id")])
def test_a_key_of_several_columns_is_the_same_when_one_widens(
    shop_of: ShopOf, order_by: str | tuple[str, ...], partition_by: tuple[str, ...]
) -> None:
    """Also if it is a part of the order, and if the table is partitioned by it."""
    write, table = Upsert(order_by=Order(order_by)), {"partition_by": partition_by}
    keyed_life(Keyed(shop_of(write=write, key_format="avro", table=table)))


@pytest.mark.parametrize("catalog", ["rest_lake", "glue_lake"])
def test_deletes_are_remembered_in_an_object_store(
    request: pytest.FixtureRequest, local_world: LocalServices, spark: SparkSession, name: str, catalog: str
) -> None:
    lake: Environment = request.getfixturevalue(catalog)
    shop = Shop(local_world, spark, lake, name, write=BY_TIME, key_format="avro")
    keyed_life(Keyed(shop))


def test_the_columns_of_a_key_may_be_named_in_another_order_and_be_renamed(shop_of: ShopOf) -> None:
    """They are those of the table, by field id."""
    shop = shop_of(write=Upsert(key=("order_id", "zone"), order_by="_kafka_timestamp"), key_format="avro")
    keyed = Keyed(shop, has_zone=True)

    keyed.put(1, "first", 1)
    shop.drain()
    keyed.put(1, None, 20)
    keyed.put(2, None, 20)
    shop.drain()
    shop.pipeline = replace(shop.pipeline, write=replace(shop.pipeline.write, key=("zone", "order_id")))
    keyed.put(1, "late", 19)
    keyed.put(2, "late", 19)
    shop.drain()
    keyed.check({}, late=2)
    keyed.put(2, "late", 18)
    keyed.put(1, "late", 18)
    rename = "ALTER TABLE {} RENAME COLUMN user TO person"
    shop.drain(failpoint=once("publish.decided", lambda: shop.sql(rename)))
    assert shop.landed() == []


def test_a_column_of_a_key_that_is_dropped_and_added_again_keeps_its_place_in_the_files(shop_of: ShopOf) -> None:
    """It has another field id, so the order of the ids is another one; files of before and after are merged."""
    shop = shop_of(write=Upsert(key=("order_id", "zone"), order_by="_kafka_timestamp"), key_format="avro")
    keyed = Keyed(shop, has_zone=True)
    for number in range(EACH - 1):
        keyed.put(number, None, 20)
        shop.drain()
    for change in ("DROP IDENTIFIER FIELDS order_id, zone", "DROP COLUMN order_id", "ADD COLUMN order_id INT"):
        shop.sql(f"ALTER TABLE {{}} {change}")
    shop.table.updateSchema().allowIncompatibleChanges().requireColumn("order_id").commit()
    shop.sql("ALTER TABLE {} SET IDENTIFIER FIELDS order_id, zone")
    assert identifier_fields(shop.job().iceberg.schema_json(shop.table)) == ("zone", "order_id")

    keyed.put(0, "late", 19)
    keyed.put(EACH, None, 20)  # merges the files
    shop.drain()
    assert shop.landed() == []
    keyed.put(1, "late", 18)
    keyed.put(EACH, "late", 19)
    shop.drain()
    assert shop.landed() == []
    known = shop.entry().remembered_deletes
    assert ([column.name for column in known.columns], len(known.files)) == (["order_id", "zone"], 1)
