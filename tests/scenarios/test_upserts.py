"""Upsert tables from keyed topics, on a real broker and registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.errors import AnalysisException

from frazil.declaration import Append, At, Changelog, ErrorMode, Table, Upsert
from frazil.errors import InvalidInput, KeysMoved, RejectedRecords, RolledBack, WriteModeDiffers
from frazil.maintain.target import Status
from frazil.recovery.decisions import Accepted
from frazil.schemas.wire_format import KEY_HEADER
from tests.support.failpoint_steps import STATE_STEPS, STEPS
from tests.support.jobs import nothing, once
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

KEY = {
    "type": "record",
    "name": "Key",
    "fields": [{"name": "order_id", "type": "int"}, {"name": "region", "type": ["null", "string"], "default": None}],
}


class State:
    """What a topic's producer wrote: the last value of each key. A user's name tells the values of a key apart."""

    def __init__(self, shop: Shop, **key: Any) -> None:
        self.shop, self.schema_id, self.now = shop, shop.register(), {}
        self.key_schema = key.get("schema")
        self.key_id = (
            shop.registry_admin.register(f"{shop.topic}-key", json.dumps(self.key_schema)) if self.key_schema else 0
        )

    def key(self, number: int) -> bytes:
        if self.key_schema is None:
            return f"k{number}".encode()
        return frame(self.key_id, avro(self.key_schema, {"order_id": number, "region": f"r{number % 2}"}))

    def put(self, number: int, word: str, **record: Any) -> None:
        value = avro(ORDER, {"order_id": number, "user": word, "amount": None})
        self.shop.produce(
            [frame(self.schema_id, value)], **{"partition": number % 2, "key": self.key(number), **record}
        )
        self.now[number] = word

    def delete(self, number: int, **record: Any) -> None:
        self.shop.produce([None], **{"partition": number % 2, "key": self.key(number), **record})
        self.now.pop(number, None)

    def write(self, word: str, numbers: Iterable[int], gone: Iterable[int] = (), **record: Any) -> None:
        """Write rows with this word, and deletes behind them."""
        for number in numbers:
            self.put(number, word, **record)
        for number in gone:
            self.delete(number, **record)

    def land(self, word: str, numbers: Iterable[int], gone: Iterable[int] = (), **record: Any) -> State:
        """Write such records, and land all that waits."""
        self.write(word, numbers, gone, **record)
        self.shop.drain()
        return self

    def settle(self) -> None:
        """Land all that waits, and check the table."""
        self.shop.drain()
        self.check()

    def check(self) -> None:
        found = sorted((row["order_id"], row["user"]) for row in self.shop.landed())
        assert found == sorted(self.now.items())
        assert self.shop.account().rows == len(self.now)
        self.shop.assert_proven()


def changed(shop: Shop) -> State:
    """A state whose next batch inserts, updates and deletes."""
    state = State(shop).land("first", range(6))
    state.write("second", range(3, 9), gone=[0])
    return state


@pytest.fixture
def shop(shop_of: ShopOf) -> Shop:
    return shop_of(write=Upsert(), key_format="text")


def test_a_table_holds_the_last_value_of_each_key(shop: Shop) -> None:
    state = State(shop).land("first", range(8))
    state.check()
    state.land("second", range(4, 10), gone=[0, 5, 77])  # the last one was never there
    state.check()
    counts = shop.counts()
    assert (counts["read"], counts["written"], counts["deletes"]) == (9, 5, 3)
    keys = json.loads(shop.stored.current_snapshot().summary["frazil.keys"])
    assert {name: keys[name] for name in ("inserted", "updated", "deleted", "absent", "rows")} == {
        "inserted": 2,
        "updated": 3,
        "deleted": 2,
        "absent": 1,
        "rows": 8,
    }
    (of_table, _), (of_keys, _) = (shop.verified(deep=deep).reads for deep in (False, True))
    assert (of_table.files_by_scan, of_table.rows_by_scan, of_table.rows_by_manifest) == (0, 0, 8)
    assert (of_keys.files_by_scan, of_keys.rows_by_scan) == (of_table.files_by_manifest, 8)


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long)])
def test_a_record_key_is_columns(shop_of: ShopOf, version: int) -> None:
    shop = shop_of(write=Upsert(), key_format="avro", table={"format_version": version})
    state = State(shop, schema=KEY).land("first", range(5))
    state.put(3, "second")
    state.delete(4)
    state.settle()
    schema = shop.stored.schema()
    names = {schema.find_column_name(number) for number in schema.identifier_field_ids}
    assert names == {"order_id", "region"}
    assert all(schema.find_field(name).required for name in names)
    assert {row["region"] for row in shop.landed()} == {"r0", "r1"}
    assert str(schema.find_field("order_id").field_type) == "long"  # the value's: it holds the key's int


@pytest.mark.long
def test_records_without_a_valid_key_are_dead_letters(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="avro", on_error=ErrorMode.DEAD_LETTER)
    state = State(shop, schema=KEY)
    state.put(1, "good")
    other = avro(ORDER, {"order_id": 2, "user": "of another key", "amount": None})
    shop.produce([frame(state.schema_id, other)], key=state.key(3))
    shop.produce([frame(state.schema_id, other), None], key=None)
    without = frame(state.key_id, avro(KEY, {"order_id": 2, "region": None}))
    shop.produce([frame(state.schema_id, other), None], key=without)
    shop.produce([b"bad!!"], key=state.key(1))
    optional = {**ORDER, "fields": [{"name": "order_id", "type": ["null", "long"]}, *ORDER["fields"][1:]]}
    silent = avro(optional, {"order_id": None, "user": "of its key", "amount": None})
    shop.produce([frame(shop.register(optional), silent)], key=state.key(4))
    state.now[4] = "of its key"
    total = shop.drain()
    state.check()
    assert total.rejected == {"key_mismatch": 1, "key_missing": 2, "key_null": 2, "wrong_magic": 1}
    assert len(shop.dead()) == 6


@pytest.mark.parametrize(
    ("write", "is_landed"),
    [
        (Upsert(), True),
        pytest.param(Upsert(), False, marks=pytest.mark.long),
        pytest.param(Upsert(key="order_id"), True, marks=pytest.mark.long),
    ],
)
def test_a_key_in_two_partitions_stops_the_pipeline(shop_of: ShopOf, write: Upsert, is_landed: bool) -> None:
    """In a later batch, and in one; the record's key, and a column of the value."""
    shop = shop_of(write=write, key_format="text")
    state = State(shop)
    state.put(1, "first", partition=0)
    if is_landed:
        shop.drain()
    state.put(1, "moved", partition=1)
    with pytest.raises(KeysMoved, match="1 keys have records in two partitions") as stopped:
        shop.drain()
    assert "choose the partition by the columns of the table's key" in stopped.value.do
    assert [row["user"] for row in shop.landed()] == ["first"] * is_landed


@pytest.mark.parametrize(("made", "other"), [(Upsert(), Append()), (Append(), Upsert())])
def test_the_mode_of_a_table_never_changes(shop_of: ShopOf, made: Any, other: Any) -> None:
    shop = shop_of(write=made, key_format="text")
    State(shop).land("first", [1])
    text = f"made for write mode {made.kind}, and the declaration has {other.kind}"
    with pytest.raises(WriteModeDiffers, match=text):
        shop.drain(replace(shop.pipeline, write=other))
    assert len(shop.landed()) == 1


SET_KEY = "SET IDENTIFIER FIELDS _kafka_key"


@pytest.mark.parametrize(
    ("statement", "made_for", "back"),
    [
        (
            "SET TBLPROPERTIES ('frazil.order-by' = 'amount')",
            "upsert by _kafka_key ordered by amount",
            "UNSET TBLPROPERTIES ('frazil.order-by')",
        ),
        pytest.param(
            "UNSET TBLPROPERTIES ('frazil.write-mode')",
            "append",
            "SET TBLPROPERTIES ('frazil.write-mode' = 'upsert')",
            marks=pytest.mark.long,
        ),
        pytest.param("DROP IDENTIFIER FIELDS _kafka_key", "upsert", SET_KEY, marks=pytest.mark.long),
        pytest.param("SET IDENTIFIER FIELDS order_id", "upsert by order_id", SET_KEY, marks=pytest.mark.long),
    ],
    ids=["order", "mode", "no key", "another key"],
)
def test_mode_order_and_key_are_compared_inside_the_commit(
    shop: Shop, statement: str, made_for: str, back: str
) -> None:
    """Another engine changes what the table was made for while a driver has staged a batch."""
    state = State(shop).land("first", [1])
    state.put(1, "second")

    def change() -> None:
        if made_for == "upsert by order_id":  # Iceberg takes required columns only, and adds no required one
            shop.table.updateSchema().allowIncompatibleChanges().requireColumn("order_id").commit()
        shop.sql(f"ALTER TABLE {{}} {statement}")

    remedy = f"ALTER TABLE {shop.pipeline.table.identifier} {SET_KEY}"
    if back != SET_KEY:
        remedy = f"Declare {made_for} again, or name another table"
    for failpoint in (once("stage.done", change), *[nothing] * (back == SET_KEY)):  # a second run reads the key again
        with pytest.raises(WriteModeDiffers) as refused:
            shop.drain(failpoint=failpoint)
        of_commit = f"made for write mode {made_for}, and the declaration has upsert by _kafka_key"
        of_start = f"made for write mode {made_for}, and the records have upsert by _kafka_key"
        if made_for == "upsert":
            of_start = "the table has no identifier fields, which name its key: another engine removed them"
        assert (of_commit if failpoint is not nothing else of_start) in refused.value.what
        assert remedy in refused.value.do
    assert [row["user"] for row in shop.landed()] == ["first"]
    shop.sql(f"ALTER TABLE {{}} {back}")
    state.settle()


def test_a_key_that_gains_a_field_stops_before_the_table_changes(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="avro")
    state = State(shop, schema=KEY).land("first", [1])
    before = shop.stored
    line = {"name": "line", "type": "int", "default": 0}
    state.key_schema = {**KEY, "fields": [*KEY["fields"], line]}
    state.key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(state.key_schema))
    key = frame(state.key_id, avro(state.key_schema, {"order_id": 2, "region": "r0", "line": 1}))
    changed = datetime.now(UTC)
    changed = changed.replace(
        microsecond=changed.microsecond // 1000 * 1000
    )  # after the first record, as a drain was between
    shop.produce([frame(state.schema_id, avro(ORDER, {"order_id": 2, "user": "new", "amount": None}))], key=key)
    for _ in range(2):  # the second run finds nothing half done
        with pytest.raises(
            WriteModeDiffers, match="by order_id, region, and the records have upsert by line, order_id"
        ) as refused:
            shop.drain()
        assert "the source's primary key changed, name another table with start=At(…)" in refused.value.do
        assert "IDENTIFIER" not in refused.value.do  # Iceberg takes no optional column, nor one that does not exist
        after = shop.stored
        assert (after.metadata.current_schema_id, after.metadata.last_column_id) == (
            before.metadata.current_schema_id,
            before.metadata.last_column_id,
        )
    assert [row["user"] for row in shop.landed()] == ["first"]
    shop.pipeline = replace(shop.pipeline, table=Table(f"{shop.pipeline.table.identifier}_2"), start=At(changed))
    shop.drain()
    assert [(row["user"], row["line"]) for row in shop.landed()] == [("new", 1)]


@pytest.mark.long
def test_fields_of_one_name_and_two_types_in_key_and_value_are_named_with_a_way_on(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="avro", partitions=1)
    written = {"type": "record", "name": "Key", "fields": [{"name": "order_id", "type": "string"}]}
    key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(written))
    shop.produce(shop.orders(2, shop.register()), key=frame(key_id, avro(written, {"order_id": "o1"})))
    with pytest.raises(
        InvalidInput, match="key has the field order_id as string, and the value .* order_id as long"
    ) as no:
        shop.drain()
    assert "write=Append()" in no.value.do
    assert not shop.job().iceberg.exists(shop.pipeline.table.identifier)
    shop.pipeline = replace(shop.pipeline, write=Append(), on_error="dead_letter")
    assert shop.drain().written == 2


@pytest.mark.long
def test_a_key_that_loses_a_field_names_no_row(shop_of: ShopOf) -> None:
    """The field's default would name the row of another key. Records of the earlier version still land."""
    region = {"name": "region", "type": "string", "default": "r0"}
    shop = shop_of(write=Upsert(), key_format="avro")
    state = State(shop, schema={**KEY, "fields": [KEY["fields"][0], region]}).land("first", range(3))
    shorter = {**KEY, "fields": KEY["fields"][:1]}
    key = frame(shop.registry_admin.register(f"{shop.topic}-key", json.dumps(shorter)), avro(shorter, {"order_id": 2}))
    value = frame(state.schema_id, avro(ORDER, {"order_id": 2, "user": "of no region", "amount": None}))
    shop.produce([value, None], key=key, partition=0)
    with pytest.raises(RejectedRecords, match="2 key_null") as refused:
        shop.drain()
    assert 'Declare on_error="dead_letter"' in refused.value.do
    state.check()
    shop.pipeline = replace(shop.pipeline, on_error=ErrorMode.DEAD_LETTER)
    state.put(0, "second")
    state.delete(1)
    assert shop.drain().rejected == {"key_null": 2}
    state.check()
    assert [(row["key"], row["reason"]) for row in shop.dead()] == [(key, "key_null")] * 2


@pytest.mark.long
@pytest.mark.parametrize("write", [Upsert(), Changelog()], ids=["upsert", "changelog"])
def test_a_text_that_names_a_schema_is_no_key(shop_of: ShopOf, write: Upsert | Changelog) -> None:
    """Two versions of one key would be two rows. An id of 128 or more is no text. One in a header changes no byte of a text."""
    shop = shop_of(write=write, key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = State(shop)
    state.put(1, "good")
    state.put(2, "good", key=b"\0k2")  # too short for an id
    value = frame(state.schema_id, avro(ORDER, {"order_id": 3, "user": "framed", "amount": None}))
    for key in (frame(1, b"\x04k3"), frame(200, b"\x04k3")):
        shop.produce([value, None], key=key)
    shop.produce([value], key=b"k3", headers=[(KEY_HEADER, b"\0\0\0\0\1")])
    assert shop.drain().rejected == {"key_registry_frame": 4}
    assert {row["_kafka_key"] for row in shop.landed()} == {"k1", "\0k2", "k3"}
    shop.assert_each_record_once()


@pytest.mark.long
def test_bytes_that_name_a_schema_are_no_key_once_it_is_certain(shop_of: ShopOf) -> None:
    """Numbers begin as frames do. A subject that appears while a driver follows says that bytes are framed."""
    shop = shop_of(write=Upsert(), on_error=ErrorMode.DEAD_LETTER, headers=False, value_format="text")
    following, number = shop.ingestion(), (2**24 - 1).to_bytes(8, "big")  # its id would be 0
    shop.produce([b"first"], key=number, partition=0)
    following.poll()
    assert shop.seen("keys_may_be_framed") == []

    subject = f"Key{shop.topic}"
    key_id = shop.registry_admin.register(subject, json.dumps({**KEY, "name": subject}))
    framed = [frame(key_id, avro(KEY, {"order_id": order, "region": None})) for order in (2, 3)]
    for key in framed:
        shop.produce([b"framed"], key=key, partition=0)
        following.poll()
    (reported,) = shop.seen("keys_may_be_framed")
    assert reported["schema_id"] == key_id

    key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(KEY))
    shop.produce([b"x"], key=frame(key_id, avro(KEY, {"order_id": 4, "region": None})), partition=0)
    with pytest.raises(InvalidInput, match="has a schema of the topic's keys"):
        following.poll()
    assert {row["_kafka_key"] for row in shop.landed()} == {number, *framed}


def test_a_field_with_the_name_of_a_mark_lands_under_another_name(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    schema = {**ORDER, "fields": [*ORDER["fields"], {"name": "_frazil_hash", "type": "long"}]}
    value = {"order_id": 1, "user": "a", "amount": None, "_frazil_hash": 7}
    shop.produce([frame(shop.register(schema), avro(schema, value))], key=b"k", partition=0)
    shop.drain()
    (row,) = shop.landed()
    assert [column for column, held in row.items() if held == 7 and column != "_frazil_hash"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "flaw"),
    [
        ("DELETE FROM {} WHERE order_id = 3", "missing"),
        ("INSERT INTO {0} SELECT * FROM {0} WHERE order_id = 3", "doubled"),
        ("UPDATE {} SET _kafka_key = 'other' WHERE order_id = 3", "other_keys"),
    ],
)
def test_verify_finds_what_another_engine_did(shop: Shop, statement: str, flaw: str) -> None:
    state = State(shop).land("first", range(6))
    state.land("second", [1])
    shop.sql(statement)
    for deep in (False, True):
        found = shop.verified(deep=deep)
        assert [finding.flaw for finding in found.findings] == [flaw]


@pytest.mark.long
@pytest.mark.parametrize(("is_lost", "kind"), [(True, "delete"), (False, "data"), (True, "data"), (False, "delete")])
def test_verify_names_a_file_that_is_lost_or_spoilt(shop: Shop, kind: str, is_lost: bool) -> None:
    changed(shop)
    shop.drain()
    tasks = list(shop.stored.scan().plan_files())
    files = [task.file for task in tasks] if kind == "data" else [d for task in tasks for d in task.delete_files]
    path = Path(urlsplit(files[0].file_path).path)
    if is_lost:
        path.unlink()
    else:
        path.write_bytes(b"x" * path.stat().st_size)
    found = shop.verified(deep=True)
    assert found.outcome == "not_proven"
    assert {"file_lost" if is_lost else "file_unreadable"} <= {finding.flaw.value for finding in found.findings}
    assert any(path.name in finding.what for finding in found.findings)


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long)])
def test_compaction_takes_deleted_rows_away_and_brings_none_back(shop_of: ShopOf, version: int) -> None:
    shop = shop_of(write=Upsert(), key_format="text", table={"format_version": version})
    state = State(shop)
    for round_ in range(3):
        state.land(f"of {round_}", range(6), gone=[round_])
    before = shop.stored.current_snapshot().summary
    done = shop.compact()
    assert (done.ended, done.snapshots) == (Status.DONE, 1)
    state.check()
    after = shop.stored.current_snapshot().summary
    assert int(after["total-records"]) == len(state.now) < int(before["total-records"])
    state.put(5, "after")
    state.delete(4)
    state.settle()


DIED = [step for step in STEPS if step.partition(".")[0] in ("plan", "stage", "decide", "publish")]


@pytest.mark.parametrize("step", first_short([*STATE_STEPS, *DIED]))
def test_a_driver_that_died_at_a_step_leaves_the_state_right(shop_of: ShopOf, step: str) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = changed(shop)
    shop.produce([b"bad!!"], key=b"k1")
    shop.die(step)
    state.settle()
    assert len(shop.dead()) == 1


@pytest.mark.long
@pytest.mark.parametrize("step", ["publish.searched", "stage.written", "plan.done", "publish.filled"])
def test_a_second_driver_that_lands_meanwhile_fences_the_first(shop: Shop, step: str) -> None:
    state = changed(shop)
    assert shop.drain(failpoint=once(step, shop.drain)).fenced
    state.check()


@pytest.mark.long
@pytest.mark.parametrize("event", [Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD])
def test_a_rolled_back_state_is_landed_again_or_left(shop_of: ShopOf, event: Accepted) -> None:
    """The newest batch, with a dead letter, was undone by hand."""
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = changed(shop)
    shop.produce([b"bad!!"], key=b"k1")
    state.settle()
    shop.roll_back()
    shop.accept(event)
    shop.drain()
    if event is Accepted.ROLLED_BACK_HOLD:
        state.now = dict.fromkeys(range(6), "first")
    state.check()
    assert len(shop.dead()) == 1
    state.land("after", [1])
    state.check()


@pytest.mark.long
def test_a_state_without_a_commit_in_its_history_is_not_left_as_it_is(shop: Shop) -> None:
    """Its newest account is of rows that the table does not have any more."""
    state = changed(shop)
    state.settle()
    table = shop.table
    newest = table.currentSnapshot().snapshotId()
    first = min(table.snapshots(), key=lambda snapshot: snapshot.sequenceNumber())
    table.manageSnapshots().rollbackTo(first.snapshotId()).commit()
    for _ in range(2):  # another engine's, the first of which expires with all before it
        shop.table.newAppend().commit()
    table = shop.table
    named = {ref.snapshotId() for ref in table.refs().values()}
    for snapshot in list(table.snapshots()):
        if snapshot.snapshotId() not in named:
            table.expireSnapshots().expireSnapshotId(snapshot.snapshotId()).commit()
    table = shop.table
    current = Path(urlsplit(table.operations().current().metadataFileLocation()).path)
    for older in set(current.parent.glob("*.metadata.json")) - {current}:
        older.unlink()
    with pytest.raises(InvalidInput, match=f"Set the head to snapshot {newest} again"):
        shop.accept(Accepted.ROLLED_BACK_HOLD)
    shop.table.manageSnapshots().setCurrentSnapshot(newest).commit()
    state.check()


@pytest.mark.long
def test_a_topic_that_was_made_again_continues_the_state(shop: Shop) -> None:
    state = State(shop).land("first", range(8))
    shop.new_topic(2)
    shop.accept(Accepted.TOPIC_RECREATED)
    state.put(6, "second", partition=0)  # offsets are lower than those of the rows
    state.delete(4, partition=0)
    state.put(7, "second", partition=0)  # it was in the other partition before
    state.delete(5, partition=0)
    state.settle()
    state.put(6, "third", partition=1)  # partitions of one life of the topic are told apart
    with pytest.raises(KeysMoved):
        shop.drain()


@pytest.mark.long
def test_a_lost_ledger_of_a_state_is_not_guessed(shop: Shop) -> None:
    State(shop).land("first", [1])
    table = shop.table
    table.manageSnapshots().removeTag(shop.pipeline.tag).commit()
    table.newAppend().set("other", "1").commit()
    shop.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{shop.pipeline.table.identifier}', "
        "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )
    with pytest.raises(InvalidInput, match="do not say which records were landed"):
        shop.accept(Accepted.LEDGER_LOST)


@pytest.mark.long
def test_a_run_that_ends_while_keys_are_searched_ends_well(shop: Shop) -> None:
    """Spark's jobs are cancelled then, and the search is one."""
    state = State(shop).land("first", [1])
    state.put(1, "second")
    ending: list[str] = []

    def search_is_cancelled(reached: str) -> None:
        if reached == "publish.searched":
            ending.append(reached)
            raise AnalysisException("Job 7 cancelled part of cancelled job group", messageParameters={})

    total = shop.drain(failpoint=search_is_cancelled, stopping=lambda: bool(ending))
    assert (total.written, len(ending)) == (0, 1)
    state.settle()


def test_a_proof_reads_no_other_key_than_the_tables(shop: Shop) -> None:
    """Without identifier fields no column would be read, and no row counted."""
    state = State(shop).land("first", [1])
    table = shop.pipeline.table.identifier
    shop.sql("ALTER TABLE {} DROP IDENTIFIER FIELDS _kafka_key")
    for deep in (False, True):
        with pytest.raises(WriteModeDiffers, match="the table has no identifier fields") as refused:
            shop.verified(deep=deep)
        assert f"ALTER TABLE {table} SET IDENTIFIER FIELDS _kafka_key" in refused.value.do
    shop.sql("ALTER TABLE {} SET IDENTIFIER FIELDS _kafka_key")
    state.check()


@pytest.mark.long
def test_a_table_that_another_engine_replaced_says_what_helps(shop: Shop) -> None:
    State(shop).land("first", [1])
    snapshot = shop.table.currentSnapshot().snapshotId()
    shop.sql("CREATE OR REPLACE TABLE {0} USING iceberg AS SELECT * FROM {0}")
    with pytest.raises(RolledBack, match="no commit of the pipeline is in the table's history") as refused:
        shop.drain()
    assert f"Set the head to snapshot {snapshot} again" in refused.value.do
    found = [finding.what for finding in shop.verified().findings if finding.flaw == "no_ledger"]
    assert found == ["no snapshot says which offsets the table holds"]


@pytest.mark.long
def test_a_format_that_only_engines_read_is_no_damage(shop: Shop) -> None:
    State(shop).land("first", range(3))
    shop.sql("ALTER TABLE {} SET TBLPROPERTIES ('write.format.default' = 'avro')")
    shop.rewrite()
    found = shop.verified(deep=True)
    assert (found.outcome, {finding.flaw for finding in found.findings}) == ("unchecked", {"format_not_read"})


def test_a_renamed_column_of_the_key_is_named_back(shop_of: ShopOf) -> None:
    """The declaration is as it was, and no record has a field of the new name: only the rename leads out."""
    shop = shop_of(write=Upsert(key="order_id"))
    schema = shop.register()
    shop.produce(shop.orders(2, schema))
    shop.drain()
    shop.sql("ALTER TABLE {} RENAME COLUMN order_id TO ident")
    shop.produce(shop.orders(1, schema))
    with pytest.raises(WriteModeDiffers) as refused:
        shop.drain()
    step = re.fullmatch(
        r"Another engine renamed the column: run (ALTER TABLE \S+ RENAME COLUMN \S+ TO \S+)", refused.value.do
    )
    assert step is not None, refused.value.do
    shop.sql(step[1].replace(shop.pipeline.table.identifier, "{}"))
    shop.drain()
    assert len(shop.landed()) == 2
    shop.assert_proven(deep=True)
