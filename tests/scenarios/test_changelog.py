"""Changelogs of keyed topics and of Debezium's events, on a real broker and registry."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from frazil.declaration import Append, Changelog, Debezium, ErrorMode, Upsert
from frazil.declaration.options import SchemaEvolution
from frazil.errors import DeletesLost, InvalidInput, KeysMissing, RejectedRecords, WriteModeDiffers
from frazil.lake.ledger.entry import KEY
from frazil.lake.sql.changelog_sql import ChangelogTable
from frazil.lake.sql.sql_engine import SqlEngine
from frazil.recovery.decisions import Accepted
from tests.scenarios import test_lost_deletes
from tests.scenarios.test_upserts import KEY as KEY_SCHEMA
from tests.scenarios.test_upserts import State
from tests.scenarios.test_value_keys import LINE, RENAMED, Lines, line
from tests.support.debezium_events import ORDERS, PLACEHOLDER, Source, column, optional
from tests.support.jobs import once
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame
from tests.support.state_replay import EPOCH_MS, seconds
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def proven(shop: Shop) -> None:
    """Check that the table has each record of the journal once, and that `verify` proves it."""
    shop.assert_each_record_once()
    shop.assert_proven()


def key_of(shop: Shop) -> list[str]:
    """Return the columns of the table's key, which its property lists by field id."""
    table = shop.stored
    return [table.schema().find_field(number).name for number in json.loads(table.properties[KEY])]


def in_order(shop: Shop) -> list[dict[str, Any]]:
    return sorted(shop.landed(), key=lambda row: (row["_kafka_partition"], row["_kafka_offset"]))


def test_each_record_of_a_keyed_topic_is_a_change(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format="text")
    state = State(shop)
    for number, word in ((1, "a"), (1, "b"), (2, "x")):
        state.put(number, word, partition=0, timestamp=EPOCH_MS + number * 1000)
    shop.drain()
    state.delete(1, partition=0, timestamp=EPOCH_MS + 5000)
    state.delete(1, partition=0)
    state.land("c", [1], partition=0)
    rows = in_order(shop)
    assert [(row["_op"], row["_kafka_key"], row["order_id"], row["user"]) for row in rows] == [
        ("w", "k1", 1, "a"),
        ("w", "k1", 1, "b"),
        ("w", "k2", 2, "x"),
        ("d", "k1", None, None),
        ("d", "k1", None, None),
        ("w", "k1", 1, "c"),
    ]
    assert [seconds(row["_changed_at"]) for row in rows[:4]] == [1, 1, 2, 5]
    assert "_order" not in rows[0]
    assert "_unavailable" not in rows[0]
    table = shop.stored
    assert table.schema().find_field("_kafka_key").required
    assert table.schema().identifier_field_ids == []
    assert key_of(shop) == ["_kafka_key"]
    assert table.current_snapshot().summary.operation.value == "append"
    assert "frazil.keys" not in table.current_snapshot().summary.additional_properties
    proven(shop)


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_a_delete_has_the_fields_of_its_key(shop_of: ShopOf, version: int) -> None:
    table = {
        "format_version": version,
        "partition_by": ("bucket(4, order_id)", "days(_changed_at)"),
        "sort_by": ("_op",),
    }
    shop = shop_of(write=Changelog(), key_format="avro", on_error=ErrorMode.DEAD_LETTER, table=table)
    state = State(shop, schema=KEY_SCHEMA)
    state.put(1, "good")
    state.delete(1)
    other = avro(ORDER, {"order_id": 2, "user": "of another key", "amount": None})
    shop.produce([frame(state.schema_id, other)], key=state.key(3))
    shop.produce([frame(state.schema_id, other), None], key=None)
    without = frame(state.key_id, avro(KEY_SCHEMA, {"order_id": 2, "region": None}))
    shop.produce([frame(state.schema_id, other), None], key=without)
    assert shop.drain().rejected == {"key_mismatch": 1, "key_missing": 2, "key_null": 2}
    found = [(row["_op"], row["order_id"], row["region"], row["user"]) for row in in_order(shop)]
    assert found == [("w", 1, "r1", "good"), ("d", 1, "r1", None)]
    assert all(shop.stored.schema().find_field(name).required for name in ("order_id", "region"))
    proven(shop)


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_columns_of_the_value_are_a_key(shop_of: ShopOf, version: int) -> None:
    write, table = Changelog(key=("line", "order_id")), {"format_version": version}
    shop = shop_of(write=write, on_error=ErrorMode.DEAD_LETTER, table=table)
    lines = Lines(shop, LINE)
    for word in ("first", "second"):
        lines.put(line(1, 1, word))
    lines.put(None, b"no column")
    assert shop.drain().rejected == {"tombstone_names_no_row": 1}
    assert [(row["_op"], row["word"]) for row in in_order(shop)] == [("w", "first"), ("w", "second")]
    assert key_of(shop) == ["order_id", "line"]
    proven(shop)


WIDE = (*ORDERS, column("tags", optional({"type": "array", "items": ["null", "string"]})))


def change_data(shop_of: ShopOf, **declared: Any) -> Shop:
    choices = {"write": Changelog(), "key_format": "avro", "envelope": Debezium(), **declared}
    return shop_of(**choices)


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_each_event_of_a_source_is_a_change(shop_of: ShopOf, version: int) -> None:
    shop = change_data(shop_of, envelope=Debezium(source_column=True), table={"format_version": version})
    source = Source(shop, WIDE)
    source.write("r", 1, customer="read", note="n1", tags=["t"])
    source.write("c", 2, customer="made", note="n2")
    source.write("u", 1, customer="changed", note=PLACEHOLDER, tags=[PLACEHOLDER])
    source.write("u", 2, customer=None, note=None)
    source.delete(2)
    source.produce(None, source.event("t", None))
    source.produce(0, source.event("m", None))
    source.write("c", 2, customer="again", note="n3")
    shop.drain()
    rows = in_order(shop)
    names = ("_op", "id", "customer", "note", "tags", "_unavailable")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("r", 1, "read", "n1", ["t"], None),
        ("c", 2, "made", "n2", None, None),
        ("u", 1, "changed", None, None, ["note", "tags"]),
        ("u", 2, None, None, None, None),
        ("d", 2, None, None, None, None),
        ("d", 2, None, None, None, None),  # its tombstone
        ("t", None, None, None, None, None),
        ("c", 2, "again", "n3", None, None),
    ]
    of_source = [row["_source"] for row in rows]
    assert of_source[5] is None
    assert of_source[6]["lsn"] == of_source[4]["lsn"] + 152
    for row in (rows[0], rows[4], rows[6]):
        assert row["_changed_at"] == datetime.fromtimestamp(row["_source"]["ts_ms"] / 1000, UTC)
    assert rows[5]["_changed_at"] == rows[5]["_kafka_timestamp"]
    assert not shop.stored.schema().find_field("id").required  # a truncate has none
    counts = shop.counts()
    assert counts["skipped"] == {"no_change": 1}
    shop.assert_proven(deep=True)
    assert len(rows) + 1 == len(shop.journal)
    with pytest.raises(InvalidInput, match="there is nothing to accept"):
        shop.accept(Accepted.SOURCE_TRUNCATED)


FULL = Debezium(replica_identity="full")


@pytest.mark.long
def test_with_a_full_replica_identity_a_change_has_the_row_before(shop_of: ShopOf) -> None:
    shop = change_data(shop_of)
    source = Source(shop)
    source.write("c", 1, customer="a", note="n")
    source.write("u", 1, customer="b", note="n")
    shop.drain()
    shop.pipeline = replace(shop.pipeline, envelope=FULL)
    source.is_full = True
    source.evolve((*ORDERS, column("grade", "int")))
    source.rows[1]["grade"] = 3
    source.write("u", 1, customer="c", note=None, grade=4)
    source.write("c", 2, customer="", note=None, grade=0)
    source.delete(1)
    source.delete(2)
    source.produce(None, source.event("t", None))
    shop.drain()
    rows = in_order(shop)
    assert [(row["_op"], row["id"], row["_before"]) for row in rows] == [
        ("c", 1, None),
        ("u", 1, None),
        ("u", 1, {"id": 1, "customer": "b", "note": "n", "grade": 3}),
        ("c", 2, None),
        ("d", 1, {"id": 1, "customer": "c", "note": None, "grade": 4}),
        ("d", 1, None),  # its tombstone
        ("d", 2, None),  # what it has may be invented
        ("d", 2, None),
        ("t", None, None),
    ]
    proven(shop)
    shop.pipeline = replace(shop.pipeline, envelope=Debezium())
    source.write("c", 3, customer="d", grade=1)
    source.write("u", 3, customer="e", grade=1)
    shop.drain()
    assert [row["_before"] for row in in_order(shop)[-2:]] == [None, None]
    proven(shop)


@pytest.mark.long
def test_an_update_or_delete_without_the_row_before_shows_that_the_identity_is_not_full(shop_of: ShopOf) -> None:
    shop = change_data(shop_of, envelope=FULL)
    source = Source(shop)
    source.write("c", 1, customer="a", note="n")
    shop.drain()
    source.write("u", 1, customer="b")
    with pytest.raises(RejectedRecords, match="before_missing"):
        shop.drain()
    shop.pipeline = replace(shop.pipeline, envelope=FULL, on_error=ErrorMode.DEAD_LETTER)
    source.produce(1, source.event("d", None))
    source.produce(
        1, source.event("u", {"id": 1, "customer": "c", "note": None}, {"id": 0, "customer": "b", "note": None})
    )
    gone = {"id": 1, "customer": "b", "note": PLACEHOLDER}
    source.produce(1, source.event("u", {"id": 1, "customer": "c", "note": None}, gone))
    source.produce(1, source.event("u", {"id": 1, "customer": "c", "note": None}, {**gone, "note": None}))
    assert shop.drain().rejected == {"before_missing": 4}
    last = in_order(shop)[-1]
    assert (last["customer"], last["_before"]) == ("c", {"id": 1, "customer": "b", "note": None})
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_flattened_events_that_do_not_say_what_they_are_are_writes(shop_of: ShopOf) -> None:
    shop = change_data(shop_of)
    source = Source(shop)
    row = {"type": "record", "name": "Row", "fields": [column("id", "long"), column("customer", optional("string"))]}
    schema_id = shop.register(row)
    source.produce(1, frame(schema_id, avro(row, {"id": 1, "customer": "a"})))
    source.produce(1, None)
    shop.drain()
    found = [(row["_op"], row["id"], row["customer"]) for row in in_order(shop)]
    assert found == [("w", 1, "a"), ("d", 1, None)]
    proven(shop)


@pytest.mark.long
@pytest.mark.parametrize("value_format", ["text", "json", "bytes"])
def test_values_without_a_schema_are_changes(shop_of: ShopOf, value_format: str) -> None:
    shop = shop_of(write=Changelog(), key_format="text", value_format=value_format, partitions=1)
    shop.produce([b'{"a":1}', None, b'{"a":2}'], key=b"k")
    shop.drain()
    as_stored = (lambda text: text.encode()) if value_format == "bytes" else str
    found = [(row["_op"], row["_kafka_key"], row["value"]) for row in in_order(shop)]
    assert found == [("w", "k", as_stored('{"a":1}')), ("d", "k", None), ("w", "k", as_stored('{"a":2}'))]
    proven(shop)


@pytest.mark.long
def test_declared_columns_of_json_are_a_changelogs_key_and_row(shop_of: ShopOf) -> None:
    json_of: dict[str, Any] = {"value_format": "json", "columns": ("Id long", "word string")}
    json_of |= {"key_format": "json", "key_columns": ("Id long",)}
    shop = shop_of(write=Changelog(), on_error=ErrorMode.DEAD_LETTER, partitions=1, **json_of)
    shop.produce([b'{"Id": 1, "word": "a"}', None, b'{"word": "b"}', b'{"Id": 7, "word": "c"}'], key=b'{"Id": 1}')
    assert shop.drain().rejected == {"key_mismatch": 1}
    found = [(row["_op"], row["id"], row["word"]) for row in in_order(shop)]
    assert found == [("w", 1, "a"), ("d", 1, None), ("w", 1, "b")]
    assert key_of(shop) == ["id"]
    proven(shop)


@pytest.mark.long
def test_the_order_of_a_changelog_widens_with_its_column(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(order_by="order_id"), key_format="text")
    narrow = {**ORDER, "fields": [{"name": "order_id", "type": "int"}, *ORDER["fields"][1:]]}
    for schema, number in ((narrow, 1), (ORDER, 2**40)):
        body = avro(schema, {"order_id": number, "user": "u", "amount": None})
        shop.produce([frame(shop.register(schema), body)], key=b"k", partition=0)
        shop.drain()
    assert [row["_order"] for row in in_order(shop)] == [1, 2**40]
    assert str(shop.stored.schema().find_field("_order").field_type) == "long"
    proven(shop)


@pytest.mark.long
def test_the_mode_and_the_key_of_a_changelog_never_change(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format="avro")
    State(shop, schema=KEY_SCHEMA).land("first", [1])
    for write, declared in (
        (Append(), "append"),
        (Upsert(), "upsert"),
        (Changelog(order_by="order_id"), "changelog by order_id, region ordered by order_id"),
        (Changelog(key="order_id"), "changelog by order_id"),
    ):
        with pytest.raises(WriteModeDiffers, match=f"the declaration has {declared}"):
            shop.drain(replace(shop.pipeline, write=write))
    assert len(shop.landed()) == 1


def test_the_key_is_compared_inside_the_commit(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format="text")
    State(shop).put(1, "first")

    def change() -> None:
        order_id = shop.table.schema().findField("order_id").fieldId()
        shop.table.updateProperties().set(KEY, f"[{order_id}]").commit()

    with pytest.raises(WriteModeDiffers, match="made for write mode changelog by order_id"):
        shop.drain(failpoint=once("stage.done", change))
    assert shop.landed() == []


@pytest.mark.long
@pytest.mark.parametrize("evolution", [SchemaEvolution.WIDEN, SchemaEvolution.ADD_COLUMNS, SchemaEvolution.FREEZE])
def test_a_key_column_of_a_changelog_is_renamed_by_an_alias(shop_of: ShopOf, evolution: SchemaEvolution) -> None:
    shop = shop_of(write=Changelog(key=("order_id", "line")), table={"schema_evolution": evolution})
    lines = Lines(shop, LINE)
    lines.put(line(1, 1, "first"))
    shop.drain()
    lines.evolve(RENAMED)
    for word in ("second", "third"):  # the first batch renames the column, and the second one finds it renamed
        lines.put({"order_id": 1, "number": 1, "word": word})
        shop.drain()
    shop.pipeline = replace(shop.pipeline, write=Changelog(key=("order_id", "number")))
    lines.put({"order_id": 1, "number": 2, "word": "of another row"})
    shop.drain()
    column = "line" if evolution is SchemaEvolution.FREEZE else "number"
    assert key_of(shop) == ["order_id", column]
    schema = json.loads(shop.stored.schema().model_dump_json())
    table = ChangelogTable.of("s.t", schema, shop.stored.properties)
    assert f'PARTITION BY "order_id", "{column}"' in table.history(SqlEngine.DUCKDB, "t")
    found = [(row[column], row["word"]) for row in in_order(shop)]
    assert found == [(1, "first"), (1, "second"), (1, "third"), (2, "of another row")]
    proven(shop)


@pytest.mark.long
def test_a_rename_between_staging_and_commit_changes_no_key(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(key=("order_id", "line")))
    lines = Lines(shop, LINE)
    lines.put(line(1, 1, "first"))
    shop.drain(failpoint=once("stage.done", lambda: shop.sql("ALTER TABLE {} RENAME COLUMN line TO number")))
    assert [(row["number"], row["word"]) for row in shop.landed()] == [(1, "first")]
    assert key_of(shop) == ["order_id", "number"]
    lines.evolve(RENAMED)
    lines.put({"order_id": 1, "number": 1, "word": "second"})
    shop.pipeline = replace(shop.pipeline, write=Changelog(key=("order_id", "number")))
    shop.drain()
    assert [(row["number"], row["word"]) for row in in_order(shop)] == [(1, "first"), (1, "second")]


@pytest.mark.long
def test_a_topic_without_keys_stops_only_before_the_first_change(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = State(shop)
    state.put(1, "nothing", key=None)
    with pytest.raises(KeysMissing):
        shop.drain()
    state.put(1, "first")
    assert shop.drain().rejected == {"key_missing": 1}
    state.put(1, "nothing", key=None)
    assert shop.drain().rejected == {"key_missing": 1}
    proven(shop)


@pytest.mark.parametrize(
    "step", first_short(["decide.decided", "stage.written", "publish.filled", "publish.committed"])
)
def test_a_driver_that_died_at_a_step_lands_each_change_once(shop_of: ShopOf, step: str) -> None:
    shop = shop_of(write=Changelog(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    state = State(shop)
    state.put(1, "first")
    state.delete(1)
    shop.produce([b"bad!!"], key=b"k1")
    shop.die(step)
    shop.drain()
    assert len(shop.dead()) == 1
    proven(shop)


@pytest.mark.long
@pytest.mark.parametrize("step", ["stage.written", "publish.filled"])
def test_of_two_drivers_one_lands_each_change(shop_of: ShopOf, step: str) -> None:
    shop = shop_of(write=Changelog(), key_format="text")
    state = State(shop).land("before", [1])
    state.put(1, "first")
    state.delete(1)
    assert shop.drain(failpoint=once(step, shop.drain)).fenced
    assert [row["_op"] for row in in_order(shop)] == ["w", "w", "d"]
    proven(shop)


@pytest.mark.long
def test_a_changelog_that_may_lack_deletes_stops_until_it_is_accepted(shop_of: ShopOf) -> None:
    shop = test_lost_deletes.state_of(shop_of, Changelog())
    test_lost_deletes.lose_delete(shop)
    clock = shop.job().clock

    def later() -> float:
        return clock() + 1.1 * test_lost_deletes.DAY_MS / 1000

    with pytest.raises(DeletesLost, match="`frazil accept .* deletes-lost"):
        shop.drain(clock=later)
    shop.accept(Accepted.DELETES_LOST, clock=later)
    shop.drain(clock=later)
    assert [(row["_op"], row["order_id"]) for row in in_order(shop) if row["_kafka_key"] == "k1"] == [
        ("w", 1),
        ("w", 10),
    ]
