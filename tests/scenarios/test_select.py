"""Declared columns: what the table has of the topic's, and what follows schemas, keys, orders and changes."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Append, Changelog, Debezium, ErrorMode, EventTime, Order, Redact, Shape, Upsert
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.ingest.preview.preview import preview
from frazil.ingest.proof_landing import replay
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_where import FORMATS, PAGE, PROTO, state_of, totals
from tests.support.debezium_events import PLACEHOLDER, Source
from tests.support.keyed_topic import record
from tests.support.proto import framed
from tests.support.shop import Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]

CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "fields": [{"name": "id", "type": "long"}, {"name": "land", "type": "string"}],
}
ROW = record("Order", order_id="long", customer=CUSTOMER, cents="long", note=["null", "string"], day="string")


def order(number: int, **more: Any) -> dict[str, Any]:
    """Return a value of `ROW`."""
    given = {"order_id": number, "customer": {"id": 10 + number, "land": "NO"}, "cents": 100 * number + 50}
    return {**given, "note": "n", "day": f"2026-01-{number + 1:02}", **more}


def columns(shop: Shop) -> list[str]:
    """Return the table's columns that are not Frazil's."""
    return [name for name in shop.landed()[0] if not name.startswith("_")]


def test_columns_are_flattened_renamed_cast_dropped_and_computed(shop_of: ShopOf) -> None:
    """By the example of the page."""
    example = re.search(r'Shape\(select="(.*?)"\)', PAGE.read_text("utf-8"))
    assert example is not None
    select = f"{example[1]}, cast(day as date) as at"
    shop = shop_of(shape=Shape(select=select, where="order_id <> 2"), partitions=1)
    schema = shop.register(ROW)
    shop.produce([frame(schema, avro(ROW, order(n))) for n in range(4)])
    shop.produce([frame(schema, avro(ROW, order(9, day="no day")))])
    total = shop.drain()
    assert columns(shop) == ["order_id", "cents", "day", "customer_id", "id", "land", "euros", "origin", "at"]
    rows = {row["order_id"]: row for row in shop.landed()}
    assert set(rows) == {0, 1, 3}
    assert [rows[3][name] for name in ("customer_id", "land", "euros", "origin")] == [13, "NO", 3.5, "web"]
    assert rows[3]["at"] == date(2026, 1, 4)
    assert (total.filtered, total.rejected) == ({"where": 1}, {"transform_failed": 1})
    (letter,) = shop.dead()
    assert letter["message"].endswith(": select cast(day as date) as at")
    assert totals(shop) == {"read": 5, "landed": 3, "dead_lettered": 1, "filtered": 1}
    shop.assert_proven(deep=True)


def test_a_struct_gives_all_its_fields(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(select="order_id, customer.*"))
    shop.produce([frame(shop.register(ROW), avro(ROW, order(1)))])
    shop.drain()
    assert columns(shop) == ["order_id", "id", "land"]
    assert [shop.landed()[0][name] for name in columns(shop)] == [1, 11, "NO"]


@pytest.mark.parametrize(
    "write", [Upsert(key="id", order_by=Order("rank")), Upsert(key="id", on_tombstone="soft_delete")]
)
def test_keys_orders_and_partitions_name_declared_columns(shop_of: ShopOf, write: Upsert) -> None:
    """The model is a dictionary."""
    shop = shop_of(
        write=write,
        shape=Shape(select="order_id as id, lower(`user`) as word, rank * 2 as rank", where="`user` <> 'GONE'"),
        table={"partition_by": ("word",)},
    )
    value = record("Order", order_id="long", user="string", rank="long")
    schema, drawn, model = shop.register(value), random.Random(5), dict[int, str]()
    for batch in range(3):
        for step in range(10):
            number, word = drawn.randrange(5), drawn.choice(["A", "B", "GONE"])
            body = avro(value, {"order_id": number, "user": word, "rank": batch * 100 + step})
            shop.produce([frame(schema, body)], partition=number % 2)
            model[number] = word.lower()
        shop.drain()
        found = {row["id"]: row["word"] for row in shop.landed() if row.get("_deleted_at") is None}
        assert found == {number: word for number, word in model.items() if word != "gone"}
        shop.assert_proven(deep=True)


@pytest.mark.parametrize("write", [Upsert(), Changelog()])
def test_the_record_key_stays_the_key_and_expressions_read_it(shop_of: ShopOf, write: Any) -> None:
    shop = shop_of(write=write, key_format="avro", shape=Shape(select="upper(word) as word, id + 1 as next"))
    key, value = record("K", id="long"), record("V", word="string", other="string")
    key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(key))
    schema = shop.register(value)
    for number, word in ((1, "a"), (2, "b"), (1, "c"), (2, None)):
        body = None if word is None else frame(schema, avro(value, {"word": word, "other": ""}))
        shop.produce([body], key=frame(key_id, avro(key, {"id": number})), partition=0)
    shop.drain()
    rows = [row for row in shop.landed() if row.get("_op") != "d"]
    assert [(row["id"], row["word"], row["next"]) for row in rows][-1] == (1, "C", 2)
    assert {"other", "_order"}.isdisjoint(rows[0])
    shop.assert_proven(deep=True)


def test_a_schema_that_grows_brings_its_columns_through_a_star(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(select="* except (`user`), order_id % 10 as last"))
    old = record("Order", order_id="int", user="string")
    new = record(
        "Order",
        order_id="long",
        user="string",
        more=[{"name": "more", "type": ["null", "string"], "default": None}][0]["type"],
    )
    new["fields"][-1]["default"] = None
    shop.produce([frame(shop.register(old), avro(old, {"order_id": 1, "user": "u"}))])
    shop.drain()
    assert columns(shop) == ["order_id", "last"]
    shop.produce([frame(shop.register(new), avro(new, {"order_id": 2**40 + 2, "user": "u", "more": "m"}))])
    shop.drain()
    assert {(row["order_id"], row["last"], row["more"]) for row in shop.landed()} == {(1, 1, None), (2**40 + 2, 8, "m")}
    shop.assert_proven(deep=True)


@pytest.mark.parametrize("select", ["order_id, customer.*", "*"])
def test_a_renamed_field_of_a_struct_stays_one_column(shop_of: ShopOf, select: str) -> None:
    renamed = json.loads(json.dumps(ROW))
    renamed["fields"][1]["type"]["fields"][1] = {"name": "country", "aliases": ["land"], "type": "string"}
    shop = shop_of(shape=Shape(select=select), partitions=1)
    old = shop.register(ROW)
    shop.produce([frame(old, avro(ROW, order(1)))])
    shop.drain()
    new = shop.register(renamed)
    shop.produce(
        [frame(new, avro(renamed, order(2, customer={"id": 1, "country": "SE"}))), frame(old, avro(ROW, order(3)))]
    )
    shop.drain()
    rows = sorted(shop.landed(), key=lambda row: row["order_id"])
    lands = [row["country"] if "country" in row else row["customer"]["country"] for row in rows]
    assert lands == ["NO", "SE", "NO"]


def test_a_version_that_an_expression_does_not_fit_stops_before_a_commit(shop_of: ShopOf) -> None:
    old = record("Order", order_id="long", user="string")
    new = record("Order", order_id="long", users="string")
    new["fields"][1]["aliases"] = ["user"]
    shop = shop_of(shape=Shape(select="order_id, lower(`user`) as `user`"))
    shop.produce([frame(shop.register(old), avro(old, {"order_id": 1, "user": "A"}))])
    shop.drain()
    shop.produce([frame(shop.register(new), avro(new, {"order_id": 2, "users": "B"}))])
    with pytest.raises(InvalidInput, match=r"lower\(`user`\) as user does not fit the rows: .*user") as refused:
        shop.drain()
    assert "order_id, users" in refused.value.do
    assert len(shop.landed()) == 1
    shop.pipeline = replace(shop.pipeline, shape=Shape(select="order_id, lower(users) as `user`"))
    shop.drain()
    assert {row["user"] for row in shop.landed()} == {"a", "b"}
    shop.assert_proven(deep=True)


@pytest.mark.parametrize(
    ("select", "what", "do"),
    [
        ("order_id, amont", r"amont as amont does not fit the rows", "order_id, user, amount"),
        ("* except (nothing)", r"there is no nothing", "order_id, user, amount"),
        ("amount.*", r"amount\.\* does not fit the rows: there is no struct amount", "order_id, user, amount"),
        ("*, amount as order_id", "order_id is selected twice", r"\* except \(order_id\)"),
        ("order_id, null as nothing", "null as nothing is of the type void", "cast"),
        ("order_id, cast(`user` as int) + 1 as y", "", ""),
    ],
)
def test_columns_that_do_not_fit_the_rows_stop_before_a_commit(
    shop_of: ShopOf, select: str, what: str, do: str
) -> None:
    shop = shop_of(shape=Shape(select=select))
    shop.produce(shop.orders(1, shop.register()))
    if not what:
        assert shop.drain().rejected == {"transform_failed": 1}
        return
    with pytest.raises(InvalidInput, match=what) as refused:
        shop.drain()
    assert "_frazil" not in str(refused.value)
    assert do.replace("\\", "") in refused.value.do


def test_a_changed_type_of_a_declared_column_is_refused(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(select="order_id, amount as x"))
    schema = shop.register()
    shop.produce(shop.orders(1, schema))
    shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(select="order_id, `user` as x"))
    shop.produce(shop.orders(1, schema, first=1))
    with pytest.raises(IncompatibleSchema, match="cannot become"):
        shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(select="order_id, `user` as y"))
    shop.drain()
    assert [(row["x"], row["y"]) for row in sorted(shop.landed(), key=lambda row: row["order_id"])] == [
        (0.0, None),
        (None, "u0"),
    ]
    (event,) = (one for one in shop.seen("table_differs") if one["field"] == "shape")
    assert 'rows landed with {"select":"order_id, amount as x"} until now' in event["message"]


def test_omitted_values_stay_in_plain_columns_and_reject_others(shop_of: ShopOf) -> None:
    shop = shop_of(
        write=Upsert(),
        key_format="avro",
        envelope=Debezium(operation_column=True),
        on_error=ErrorMode.DEAD_LETTER,
        shape=Shape(select="id, customer as who, note as remark"),
    )
    source = Source(shop)
    source.write("c", 1, customer="a", note="stays")
    source.write("u", 1, customer="b", note=PLACEHOLDER)
    source.write("c", 2, customer="c", note="x")
    source.delete(2)
    assert shop.drain().rejected == {}
    assert [(row["who"], row["remark"], row["_op"]) for row in shop.landed()] == [("b", "stays", "u")]
    shop.assert_proven(deep=True)
    shop.pipeline = replace(shop.pipeline, shape=Shape(select="id, customer as who, upper(note) as remark"))
    source.write("u", 1, customer="c", note=PLACEHOLDER)
    assert shop.drain().rejected == {"omitted_value": 1}
    shop.assert_proven(deep=True)


def test_the_state_of_a_changelog_of_declared_columns_is_the_upsert_table(shop_of: ShopOf) -> None:
    shape = Shape(where="customer <> 'out'", select="id, upper(customer) as customer, note")
    declared: dict[str, Any] = {"key_format": "avro", "envelope": Debezium(), "shape": shape}
    shop = shop_of(write=Changelog(), partitions=1, **declared)
    source = Source(shop)
    for number in range(6):
        source.write("c", number, customer="in" if number % 2 else "out", note="n")
    source.write("u", 1, customer="out")
    source.write("u", 2, customer="in")
    source.write("u", 5, customer="in", note=PLACEHOLDER)
    source.delete(3)
    shop.drain()
    expected = {key: row["customer"].upper() for key, row in source.rows.items() if row["customer"] == "in"}
    assert state_of(shop.landed()) == expected
    upsert = replace(
        shop.pipeline, write=Upsert(), name="selected", table=replace(shop.pipeline.table, identifier="shop.selected")
    )
    shop.assert_proven(deep=True)
    shop.drain(upsert)
    shop.pipeline = upsert
    shop.assert_proven(deep=True)


@pytest.mark.parametrize("value_format", [one for one in FORMATS if one != "connect_json"])
def test_each_format_has_declared_columns(shop_of: ShopOf, value_format: str) -> None:
    """Of Avro all other tests are."""
    values, schema = FORMATS[value_format]
    column = "value" if value_format == "text" else "word"
    more = {"columns": ("id long", "word string")} if value_format == "json" else {}
    shop = shop_of(value_format=value_format, shape=Shape(select=f"upper({column}) as word, {column} as plain"), **more)
    if schema is not None:
        kind = SchemaType.PROTOBUF if schema == PROTO else SchemaType.JSON
        schema_id = shop.registry_admin.register(f"{shop.topic}-value", schema, kind)
        values = [(framed if schema == PROTO else frame)(schema_id, value) for value in values]
    shop.produce(values)
    shop.drain()
    assert sorted((row["word"], row["plain"]) for row in shop.landed()) == [("IN", "in"), ("OUT", "out")]
    assert columns(shop) == ["word", "plain"]
    shop.assert_proven(deep=True)


@pytest.mark.parametrize("format_version", [2, 3])
def test_json_columns_are_text_for_expressions(shop_of: ShopOf, format_version: int) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "meta": {"type": "object"}}}
    select = "*, get_json_object(meta, '$.a') as a, meta as copy"
    shop = shop_of(value_format="json_schema", shape=Shape(select=select), table={"format_version": format_version})
    schema_id = shop.registry_admin.register(f"{shop.topic}-value", json.dumps(schema), SchemaType.JSON)
    shop.produce([frame(schema_id, b'{"id": 1, "meta": {"a": "x", "b": [1]}}')])
    shop.drain()
    (row,) = shop.landed()
    assert (row["id"], row["a"]) == (1, "x")
    assert str(row["meta"]) == str(row["copy"])
    assert "b" in str(row["copy"])
    shop.assert_proven(deep=True)


def test_times_of_events_are_declared_columns(shop_of: ShopOf) -> None:
    shape = Shape(select="order_id, cast(day as date) as day", event_time=EventTime("day", oldest="300 days"))
    shop = shop_of(shape=shape)
    schema = shop.register(ROW)
    shop.produce(
        [frame(schema, avro(ROW, order(1, day="2026-11-20"))), frame(schema, avro(ROW, order(2, day="1999-01-01")))]
    )
    assert shop.drain().rejected == {"event_time": 1}
    assert [row["order_id"] for row in shop.landed()] == [1]


@pytest.mark.parametrize("step", ["stage.written", pytest.param("publish.committed", marks=pytest.mark.long)])
def test_a_killed_batch_selects_once_and_a_replay_is_the_same(shop_of: ShopOf, step: str, tmp_path: Path) -> None:
    shop = shop_of(shape=Shape(where="order_id % 3 = 0", select="order_id, amount * 2 as twice"))
    schema = shop.register()
    for first in (0, 50):
        shop.produce(shop.orders(50, schema, first=first))
        shop.die(step)
    shop.drain()
    assert sorted((row["order_id"], row["twice"]) for row in shop.landed()) == [
        (n, n % 50 / 2) for n in range(0, 100, 3)
    ]
    assert totals(shop) == {"read": 100, "landed": 34, "filtered": 66}
    upsert = replace(
        shop.pipeline,
        write=Upsert(key="order_id"),
        name=f"{shop.pipeline.name}_again",
        table=replace(shop.pipeline.table, identifier=f"{shop.pipeline.table.identifier}_again"),
    )
    shop.drain(upsert)
    assert replay(upsert, shop.job(), shop.registry(), shop.environment, tmp_path).findings == ()


def test_a_preview_shows_declared_columns(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(select="order_id as id, 1 / (order_id - 1) as x"), partitions=1)
    shop.produce(shop.orders(3, shop.register()))
    found = preview(shop.pipeline, shop.job(), shop.registry(), count=3)
    assert [(row.values["id"], row.values["x"]) for row in found.rows] == [(0, -1.0), (2, 1.0)]
    (one,) = found.rejected
    assert (one.offset, one.reason) == (1, "transform_failed")
    assert "select 1 / (order_id - 1) as x" in one.message
    assert [name for name, _ in found.columns if not name.startswith("_")] == ["id", "x"]


def test_a_tombstone_that_is_a_row_of_nulls_has_no_declared_values(shop_of: ShopOf) -> None:
    shop = shop_of(write=Append(on_tombstone="null_row"), shape=Shape(select="order_id, 'x' as origin"))
    shop.produce([*shop.orders(1, shop.register()), None])
    shop.drain()
    assert sorted(str(row["origin"]) for row in shop.landed()) == ["None", "x"]


@pytest.mark.parametrize(
    ("before", "after", "column"),
    [
        (Shape(select="id, customer, note as remark"), Shape(select="id, customer, note as comment"), "comment"),
        (Shape(select="id, customer, upper(note) as remark"), Shape(select="id, customer, note as remark"), "remark"),
        (Shape(select="id, customer as note"), Shape(select="id, note"), "note"),
        (Shape(select="id, customer"), Shape(), "note"),
        (Shape(), Shape(mask={"note": Redact()}), "note"),
        (Shape(select="id, note"), Shape(select="*"), None),
        (Shape(select="* except (customer)"), Shape(select="note, id, upper(customer) as who"), None),
    ],
)
def test_an_omitted_value_stays_in_a_column_that_was_always_made_so(
    shop_of: ShopOf, before: Shape, after: Shape, column: str | None
) -> None:
    """Else the row would keep the value of another field, of another expression, a plain one, or null."""
    shop = shop_of(
        write=Upsert(),
        key_format="avro",
        envelope=Debezium(),
        shape=before,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    source = Source(shop)
    source.write("c", 1, customer="cust", note="big")
    shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=after)
    if after.mask:
        shop.accept(Accepted.MASK_FROM_NOW_ON)
    source.write("u", 1, customer="cust2", note=PLACEHOLDER)
    rejected = shop.drain().rejected
    (row,) = shop.landed()
    if column is None:
        assert (rejected, row["note"]) == ({}, "big")
        return
    assert rejected == {"omitted_value": 1}
    source.write("u", 1, customer="cust3", note="new")
    shop.drain()
    (row,) = shop.landed()
    assert row[column] == ("***" if after.mask else "new")


@pytest.mark.parametrize(
    ("before", "after", "stops"),
    [
        ("order_id as id, customer", "customer.id as id, customer", True),
        ("order_id + 0 as id, customer", "order_id + 1 as id, customer", True),
        ("order_id as id, customer", "* except (order_id, customer), customer.*", True),
        ("order_id as id, customer", "cents, order_id as id", False),
        ("order_id + 0 as id, customer", "cents, order_id + 0 as id", False),
        ("customer.id as id", "note, customer.*", False),
    ],
)
def test_a_column_of_the_key_stays_made_of_the_same(shop_of: ShopOf, before: str, after: str, stops: bool) -> None:
    """Else an order would have two rows, or two orders one."""
    shop = shop_of(write=Upsert(key="id"), shape=Shape(select=before))
    schema = shop.register(ROW)
    shop.produce([frame(schema, avro(ROW, order(1)))], partition=0)
    shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(select=after))
    shop.produce([frame(schema, avro(ROW, order(1)))], partition=0)
    if stops:
        with pytest.raises(
            InvalidInput, match="id is a column of the key, and earlier rows made it from something else"
        ):
            shop.drain()
        shop.pipeline = replace(shop.pipeline, shape=Shape(select=before))
    shop.drain()
    assert len(shop.landed()) == 1


def test_a_renamed_field_stays_the_key(shop_of: ShopOf) -> None:
    old, new = record("Order", number="long"), record("Order", order_number="long")
    new["fields"][0]["aliases"] = ["number"]
    shop = shop_of(write=Upsert(key="id"), shape=Shape(select="number as id"))
    for version, select in ((old, "number as id"), (new, "order_number as id")):
        shop.pipeline = replace(shop.pipeline, shape=Shape(select=select))
        value = {version["fields"][0]["name"]: 1}
        shop.produce([frame(shop.register(version), avro(version, value))], partition=0)
        shop.drain()
    assert [row["id"] for row in shop.landed()] == [1]
