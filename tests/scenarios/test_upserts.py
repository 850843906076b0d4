"""Upsert tables from keyed topics, on a real broker and registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.errors import AnalysisException

from frazil.audit.verification import Verification
from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Append, At, Changelog, ErrorMode, Latest, Limits, Table, Upsert
from frazil.errors import InvalidInput, KeysMoved, RejectedRecords, RolledBack, WriteModeDiffers
from frazil.lake.ledger.entries import entry
from frazil.lake.read.stored_tables import Lake
from frazil.maintain.compact import compact
from frazil.maintain.lease import Lease
from frazil.maintain.target import MaintenanceRun, Policy, Status, Target
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from frazil.schemas.wire_format import KEY_HEADER
from tests.support import oracle
from tests.support.failpoint_steps import STATE_STEPS, STEPS
from tests.support.jobs import Crash, crash_at, once
from tests.support.shop import ORDER, Shop, avro, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]

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

    def check(self) -> None:
        found = sorted((row["order_id"], row["user"]) for row in self.shop.landed())
        assert found == sorted(self.now.items())
        last = entry(self.shop.job().iceberg.load(self.shop.pipeline.table.identifier), self.shop.pipeline.name)
        assert last is not None
        assert last.keys is not None
        assert last.keys.rows == len(self.now)
        self.shop.assert_proven()


def verified(shop: Shop, *, deep: bool = False) -> Verification:
    return verify(shop.pipeline, Lake(shop.lake, Secrets({}).read), deep=deep)


def changed(shop: Shop) -> State:
    """A state whose next batch inserts, updates and deletes."""
    state = State(shop)
    for number in range(6):
        state.put(number, "first")
    shop.drain()
    for number in range(3, 9):
        state.put(number, "second")
    state.delete(0)
    return state


def stored(shop: Shop) -> Any:
    return oracle.table(shop.lake, shop.pipeline.table.identifier)


@pytest.fixture
def shop(shop_of: ShopOf) -> Shop:
    return shop_of(write=Upsert(), key_format="text")


def test_a_table_holds_the_last_value_of_each_key(shop: Shop) -> None:
    state = State(shop)
    for number in range(8):
        state.put(number, "first")
    shop.drain()
    state.check()
    for number in range(4, 10):
        state.put(number, "second")
    state.delete(0)
    state.delete(5)
    state.delete(77)  # was never there
    shop.drain()
    state.check()
    counts = json.loads(stored(shop).current_snapshot().summary["frazil.counts"])
    assert (counts["read"], counts["written"], counts["deletes"]) == (9, 5, 3)
    keys = json.loads(stored(shop).current_snapshot().summary["frazil.keys"])
    assert {name: keys[name] for name in ("inserted", "updated", "deleted", "absent", "rows")} == {
        "inserted": 2,
        "updated": 3,
        "deleted": 2,
        "absent": 1,
        "rows": 8,
    }
    (of_table, _), (of_keys, _) = (verified(shop, deep=deep).reads for deep in (False, True))
    assert (of_table.files_by_scan, of_table.rows_by_scan, of_table.rows_by_manifest) == (0, 0, 8)
    assert (of_keys.files_by_scan, of_keys.rows_by_scan) == (of_table.files_by_manifest, 8)


def test_changes_of_one_batch_are_folded_to_the_last(shop: Shop) -> None:
    state = State(shop)
    for word in ("a", "b", "c"):
        state.put(1, word)
    state.put(2, "x")
    state.delete(2)
    state.delete(4)
    state.put(4, "again")
    shop.drain()
    state.check()
    counts = json.loads(stored(shop).current_snapshot().summary["frazil.counts"])
    assert (counts["written"], counts["deletes"], counts["superseded"]) == (2, 1, 4)


@pytest.mark.long
def test_small_batches_end_in_the_same_state(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", limits=Limits(first_rows=3, max_rows=3))
    state = State(shop)
    for round_ in range(3):
        for number in range(round_, 6):
            state.put(number, f"of {round_}")
        state.delete(round_)
    shop.drain()
    state.check()
    assert len(shop.seen("batch_committed")) >= 5


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long)])
def test_a_record_key_is_columns(shop_of: ShopOf, version: int) -> None:
    shop = shop_of(write=Upsert(), key_format="avro", table={"format_version": version})
    state = State(shop, schema=KEY)
    for number in range(5):
        state.put(number, "first")
    shop.drain()
    state.put(3, "second")
    state.delete(4)
    shop.drain()
    state.check()
    schema = stored(shop).schema()
    names = {schema.find_column_name(number) for number in schema.identifier_field_ids}
    assert names == {"order_id", "region"}
    assert all(schema.find_field(name).required for name in names)
    assert {row["region"] for row in shop.landed()} == {"r0", "r1"}
    assert str(schema.find_field("order_id").field_type) == "long"  # the value's: it holds the key's int


@pytest.mark.long
def test_bytes_are_a_key(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert())
    state = State(shop)
    for word in ("first", "second"):
        for number in range(3):
            state.put(number, word)
        shop.drain()
    state.delete(1)
    shop.drain()
    state.check()
    assert {row["_kafka_key"] for row in shop.landed()} == {b"k0", b"k2"}


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


@pytest.mark.long
def test_a_rejected_record_stops_a_state_by_default(shop: Shop) -> None:
    state = State(shop)
    state.put(1, "good")
    shop.drain()
    state.check()
    shop.produce([b"bad!!"], key=b"k1")
    with pytest.raises(RejectedRecords):
        shop.drain()
    state.check()


def test_a_key_in_two_partitions_stops_the_pipeline(shop: Shop) -> None:
    state = State(shop)
    state.put(1, "first", partition=0)
    shop.drain()
    state.put(1, "moved", partition=1)
    with pytest.raises(KeysMoved, match="1 keys have records in two partitions"):
        shop.drain()
    assert [row["user"] for row in shop.landed()] == ["first"]


@pytest.mark.long
def test_a_key_in_two_partitions_of_one_batch_stops_the_pipeline(shop: Shop) -> None:
    state = State(shop)
    state.put(1, "first", partition=0)
    state.put(1, "moved", partition=1)
    with pytest.raises(KeysMoved):
        shop.drain()
    assert shop.landed() == []


def test_the_mode_of_a_table_never_changes(shop: Shop) -> None:
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    with pytest.raises(WriteModeDiffers, match="made for write mode upsert, and the declaration has append"):
        shop.drain(replace(shop.pipeline, write=Append()))
    state.check()


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "made_for"),
    [("DROP IDENTIFIER FIELDS _kafka_key", "upsert"), ("SET IDENTIFIER FIELDS order_id", "upsert by order_id")],
)
def test_the_key_is_compared_inside_the_commit(shop: Shop, statement: str, made_for: str) -> None:
    """Another engine names other identifier fields while a driver has staged a batch."""
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    state.put(1, "second")
    table = f"lake.{shop.pipeline.table.identifier}"

    def change() -> None:
        if made_for != "upsert":  # Iceberg takes required columns only, and adds no required one
            stored = shop.job().iceberg.load(shop.pipeline.table.identifier)
            stored.updateSchema().allowIncompatibleChanges().requireColumn("order_id").commit()
        shop.spark.sql(f"ALTER TABLE {table} {statement}")

    with pytest.raises(WriteModeDiffers) as refused:
        shop.drain(failpoint=once("stage.done", change))
    assert refused.value.what.endswith(f"made for write mode {made_for}, and the declaration has upsert by _kafka_key")
    with pytest.raises(WriteModeDiffers) as again:
        shop.drain()
    for error in (refused.value, again.value):
        assert f"ALTER TABLE {shop.pipeline.table.identifier} SET IDENTIFIER FIELDS _kafka_key" in error.do
    assert [row["user"] for row in shop.landed()] == ["first"]
    shop.spark.sql(f"ALTER TABLE {table} SET IDENTIFIER FIELDS _kafka_key")
    shop.drain()
    state.check()


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
    ],
    ids=["order", "mode"],
)
def test_the_mode_and_the_order_are_compared_inside_the_commit(
    shop: Shop, statement: str, made_for: str, back: str
) -> None:
    """Another engine changes what the table was made for while a driver has staged a batch."""
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    state.put(1, "second")
    table = f"lake.{shop.pipeline.table.identifier}"
    with pytest.raises(WriteModeDiffers) as refused:
        shop.drain(failpoint=once("stage.done", lambda: shop.spark.sql(f"ALTER TABLE {table} {statement}")))
    assert refused.value.what.endswith(f"made for write mode {made_for}, and the declaration has upsert by _kafka_key")
    assert refused.value.do.startswith(f"Declare {made_for} again, or name another table")
    assert [row["user"] for row in shop.landed()] == ["first"]
    shop.spark.sql(f"ALTER TABLE {table} {back}")
    shop.drain()
    state.check()


def test_a_key_that_gains_a_field_stops_before_the_table_changes(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="avro")
    state = State(shop, schema=KEY)
    state.put(1, "first")
    shop.drain()
    before = stored(shop)
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
        after = stored(shop)
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
    state = State(shop, schema={**KEY, "fields": [KEY["fields"][0], region]})
    for number in range(3):
        state.put(number, "first")
    shop.drain()
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


def test_an_append_table_does_not_become_a_state(shop_of: ShopOf) -> None:
    shop = shop_of(key_format="text")
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    with pytest.raises(WriteModeDiffers, match="made for write mode append, and the declaration has upsert"):
        shop.drain(replace(shop.pipeline, write=Upsert()))
    assert len(shop.landed()) == 1


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("double", "double"),
        pytest.param("float", "float", marks=pytest.mark.long),
        pytest.param({"type": "array", "items": "int"}, "list<int>", marks=pytest.mark.long),
        pytest.param({"type": "map", "values": "int"}, "map<string, int>", marks=pytest.mark.long),
    ],
    ids=["double", "float", "list", "map"],
)
def test_floats_lists_and_maps_are_no_fields_of_a_key(shop_of: ShopOf, kind: Any, said: str) -> None:
    shop = shop_of(write=Upsert(), key_format="avro")
    key = {"type": "record", "name": "Key", "fields": [KEY["fields"][0], {"name": "price", "type": kind}]}
    shop.register()
    shop.registry_admin.register(f"{shop.topic}-key", json.dumps(key))
    with pytest.raises(InvalidInput, match=f"price is of type {said}, which cannot be a key"):
        shop.drain()
    assert not shop.job().iceberg.exists(shop.pipeline.table.identifier)


def test_bytes_that_name_a_schema_are_no_key(shop_of: ShopOf) -> None:
    """Two versions of one key differ in their bytes."""
    shop = shop_of(write=Upsert())
    State(shop, schema=KEY).put(1, "first")
    with pytest.raises(InvalidInput, match="has a schema of the topic's keys"):
        shop.drain()


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
def test_a_key_keeps_its_row_when_its_column_widens(shop_of: ShopOf) -> None:
    narrow = {**ORDER, "fields": [{"name": "order_id", "type": "int"}, *ORDER["fields"][1:]]}
    shop = shop_of(write=Upsert(), key_format="avro")
    first = shop.register(narrow)
    state = State(shop, schema=KEY)
    for number in range(3):
        value = avro(narrow, {"order_id": number, "user": "first", "amount": None})
        shop.produce([frame(first, value)], partition=number % 2, key=state.key(number))
        state.now[number] = "first"
    shop.drain()
    state.put(1, "second")
    state.delete(2)
    shop.drain()
    state.check()


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "flaw"),
    [
        ("DELETE FROM {} WHERE order_id = 3", "missing"),
        ("INSERT INTO {} SELECT * FROM {} WHERE order_id = 3", "doubled"),
        ("UPDATE {} SET _kafka_key = 'other' WHERE order_id = 3", "other_keys"),
    ],
)
def test_verify_finds_what_another_engine_did(shop: Shop, statement: str, flaw: str) -> None:
    state = State(shop)
    for number in range(6):
        state.put(number, "first")
    shop.drain()
    state.put(1, "second")
    shop.drain()
    table = f"lake.{shop.pipeline.table.identifier}"
    shop.spark.sql(statement.format(table, table))
    for deep in (False, True):
        found = verified(shop, deep=deep)
        assert [finding.flaw for finding in found.findings] == [flaw]


@pytest.mark.long
def test_verify_finds_a_lost_dead_letter(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = State(shop)
    state.put(1, "first")
    shop.produce([b"bad!!", b"worse"], key=b"k1")
    shop.drain()
    state.check()
    shop.spark.sql(f"DELETE FROM lake.{shop.pipeline.table.dead_letters} WHERE value = CAST('worse' AS binary)")
    assert [finding.flaw for finding in verified(shop).findings] == ["missing"]


@pytest.mark.long
@pytest.mark.parametrize(("is_lost", "kind"), [(True, "delete"), (False, "data"), (True, "data"), (False, "delete")])
def test_verify_names_a_file_that_is_lost_or_spoilt(shop: Shop, kind: str, is_lost: bool) -> None:
    changed(shop)
    shop.drain()
    tasks = list(stored(shop).scan().plan_files())
    files = [task.file for task in tasks] if kind == "data" else [d for task in tasks for d in task.delete_files]
    path = Path(urlsplit(files[0].file_path).path)
    if is_lost:
        path.unlink()
    else:
        path.write_bytes(b"x" * path.stat().st_size)
    found = verified(shop, deep=True)
    assert found.outcome == "not_proven"
    assert {"file_lost" if is_lost else "file_unreadable"} <= {finding.flaw.value for finding in found.findings}
    assert any(path.name in finding.what for finding in found.findings)


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long)])
def test_compaction_takes_deleted_rows_away_and_brings_none_back(shop_of: ShopOf, version: int) -> None:
    shop = shop_of(write=Upsert(), key_format="text", table={"format_version": version})
    state = State(shop)
    for round_ in range(3):
        for number in range(6):
            state.put(number, f"of {round_}")
        state.delete(round_)
        shop.drain()
    before = stored(shop).current_snapshot().summary
    target = Target(shop.pipeline, is_dead_letter_table=False)
    done = compact(MaintenanceRun(shop.job(), Policy(grace_seconds=0)), target, Lease.of({}))
    assert done.ended is Status.DONE
    assert done.snapshots == 1
    state.check()
    after = stored(shop).current_snapshot().summary
    assert int(after["total-records"]) == len(state.now) < int(before["total-records"])
    state.put(5, "after")
    state.delete(4)
    shop.drain()
    state.check()


DIED = [step for step in STEPS if step.partition(".")[0] in ("plan", "stage", "decide", "publish")]


@pytest.mark.parametrize("step", first_short([*STATE_STEPS, *DIED]))
def test_a_driver_that_died_at_a_step_leaves_the_state_right(shop_of: ShopOf, step: str) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = changed(shop)
    shop.produce([b"bad!!"], key=b"k1")
    with pytest.raises(Crash):
        shop.drain(failpoint=crash_at(step))
    shop.drain()
    state.check()
    assert len(shop.dead()) == 1


@pytest.mark.long
@pytest.mark.parametrize("step", ["publish.searched", "stage.written", "plan.done", "publish.filled"])
def test_a_second_driver_that_lands_meanwhile_fences_the_first(shop: Shop, step: str) -> None:
    state = changed(shop)
    met: list[str] = []

    def twin(reached: str) -> None:
        if reached == step and not met:
            met.append(reached)
            shop.drain()

    total = shop.drain(failpoint=twin)
    assert total.fenced
    state.check()


def rolled_back(shop: Shop) -> State:
    """A state whose newest batch, with a dead letter, was undone by hand."""
    state = changed(shop)
    shop.produce([b"bad!!"], key=b"k1")
    shop.drain()
    state.check()
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit()
    return state


@pytest.mark.long
def test_a_rolled_back_state_is_landed_again(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = rolled_back(shop)
    accept(shop.pipeline, Accepted.ROLLED_BACK_REPLAY, "as the test says", shop.job())
    shop.drain()
    state.check()
    assert len(shop.dead()) == 1


@pytest.mark.long
def test_a_rolled_back_state_is_left_as_it_is(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = rolled_back(shop)
    accept(shop.pipeline, Accepted.ROLLED_BACK_HOLD, "as the test says", shop.job())
    shop.drain()
    state.now = dict.fromkeys(range(6), "first")
    state.check()
    state.put(1, "after")
    shop.drain()
    state.check()


@pytest.mark.long
def test_a_state_without_a_commit_in_its_history_is_not_left_as_it_is(shop: Shop) -> None:
    """Its newest account is of rows that the table does not have any more."""
    state = changed(shop)
    shop.drain()
    state.check()
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    newest = table.currentSnapshot().snapshotId()
    first = min(table.snapshots(), key=lambda snapshot: snapshot.sequenceNumber())
    table.manageSnapshots().rollbackTo(first.snapshotId()).commit()
    for _ in range(2):  # another engine's, the first of which expires with all before it
        shop.job().iceberg.load(shop.pipeline.table.identifier).newAppend().commit()
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    named = {ref.snapshotId() for ref in table.refs().values()}
    for snapshot in list(table.snapshots()):
        if snapshot.snapshotId() not in named:
            table.expireSnapshots().expireSnapshotId(snapshot.snapshotId()).commit()
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    current = Path(urlsplit(table.operations().current().metadataFileLocation()).path)
    for older in set(current.parent.glob("*.metadata.json")) - {current}:
        older.unlink()
    with pytest.raises(InvalidInput, match=f"Set the head to snapshot {newest} again"):
        accept(shop.pipeline, Accepted.ROLLED_BACK_HOLD, "as the test says", shop.job())
    shop.job().iceberg.load(shop.pipeline.table.identifier).manageSnapshots().setCurrentSnapshot(newest).commit()
    state.check()


@pytest.mark.long
def test_lost_dead_letters_of_a_state_are_given_up(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = State(shop)
    state.put(1, "first")
    shop.produce([b"bad!!", b"worse"], key=b"k1")
    shop.drain()
    shop.job().iceberg.drop(shop.pipeline.table.dead_letters, purge=True)
    accept(shop.pipeline, Accepted.SIDE_TABLE_REPLACED, "as the test says", shop.job())
    state.put(2, "second")
    shop.produce([b"bad!!"], key=b"k1")
    shop.drain()
    state.check()
    assert len(shop.dead()) == 1


@pytest.mark.long
def test_a_topic_that_was_made_again_continues_the_state(shop: Shop) -> None:
    state = State(shop)
    for number in range(8):
        state.put(number, "first")
    shop.drain()
    shop.delete()
    shop.create(1)
    shop.new_producer(1)
    accept(shop.pipeline, Accepted.TOPIC_RECREATED, "as the test says", shop.job())
    state.put(6, "second", partition=0)  # offsets are lower than those of the rows
    state.delete(4, partition=0)
    state.put(7, "second", partition=0)  # it was in the other partition before
    state.delete(5, partition=0)
    shop.drain()
    state.check()


@pytest.mark.long
def test_a_lost_ledger_of_a_state_is_not_guessed(shop: Shop) -> None:
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    table.manageSnapshots().removeTag(shop.pipeline.tag).commit()
    table.newAppend().set("other", "1").commit()
    shop.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{shop.pipeline.table.identifier}', "
        "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )
    with pytest.raises(InvalidInput, match="do not say which records were landed"):
        accept(shop.pipeline, Accepted.LEDGER_LOST, "as the test says", shop.job())


@pytest.mark.long
def test_a_run_that_ends_while_keys_are_searched_ends_well(shop: Shop) -> None:
    """Spark's jobs are cancelled then, and the search is one."""
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    state.put(1, "second")
    ending: list[str] = []

    def search_is_cancelled(reached: str) -> None:
        if reached == "publish.searched":
            ending.append(reached)
            raise AnalysisException("Job 7 cancelled part of cancelled job group", messageParameters={})

    total = shop.drain(failpoint=search_is_cancelled, stopping=lambda: bool(ending))
    assert (total.written, len(ending)) == (0, 1)
    shop.drain()
    state.check()


@pytest.mark.long
def test_a_state_that_began_late_says_that_it_is_not_complete(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", start=Latest())
    state = State(shop)
    state.put(1, "before")
    shop.drain()
    state.now.clear()
    state.put(2, "after")
    shop.drain()
    state.check()
    assert any("not the complete state: it begins at latest" in note for note in verified(shop).notes)


def test_a_proof_reads_no_other_key_than_the_tables(shop: Shop) -> None:
    """Without identifier fields no column would be read, and no row counted."""
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    table = shop.pipeline.table.identifier
    shop.spark.sql(f"ALTER TABLE lake.{table} DROP IDENTIFIER FIELDS _kafka_key")
    for deep in (False, True):
        with pytest.raises(WriteModeDiffers, match="the table has no identifier fields") as refused:
            verified(shop, deep=deep)
        assert f"ALTER TABLE {table} SET IDENTIFIER FIELDS _kafka_key" in refused.value.do
    shop.spark.sql(f"ALTER TABLE lake.{table} SET IDENTIFIER FIELDS _kafka_key")
    state.check()


@pytest.mark.long
def test_a_table_that_another_engine_replaced_says_what_helps(shop: Shop) -> None:
    state = State(shop)
    state.put(1, "first")
    shop.drain()
    table, head = f"lake.{shop.pipeline.table.identifier}", shop.job().iceberg.load(shop.pipeline.table.identifier)
    snapshot = head.currentSnapshot().snapshotId()
    shop.spark.sql(f"CREATE OR REPLACE TABLE {table} USING iceberg AS SELECT * FROM {table}")
    with pytest.raises(RolledBack, match="no commit of the pipeline is in the table's history") as refused:
        shop.drain()
    assert f"Set the head to snapshot {snapshot} again" in refused.value.do
    found = [finding.what for finding in verified(shop).findings if finding.flaw == "no_ledger"]
    assert found == ["no snapshot says which offsets the table holds"]


@pytest.mark.long
def test_a_format_that_only_engines_read_is_no_damage(shop: Shop) -> None:
    state = State(shop)
    for number in range(3):
        state.put(number, "first")
    shop.drain()
    table = shop.pipeline.table.identifier
    shop.spark.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.format.default' = 'avro')")
    options = "map('rewrite-all', 'true')"
    shop.spark.sql(f"CALL lake.system.rewrite_data_files(table => '{table}', options => {options})")
    found = verified(shop, deep=True)
    assert (found.outcome, {finding.flaw for finding in found.findings}) == ("unchecked", {"format_not_read"})
