"""A declared condition: which records become rows, which rows leave a table, and what is counted of the others."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import (
    Append,
    Changelog,
    Debezium,
    Encrypted,
    ErrorMode,
    EventTime,
    Hmac,
    Limits,
    Nullify,
    Order,
    Redact,
    Secret,
    Shape,
    Truncate,
    Upsert,
)
from frazil.errors import InvalidInput, RejectedRecords
from frazil.ingest.preview.preview import preview
from frazil.ingest.proof_landing import replay
from tests.support.debezium_events import PLACEHOLDER, Source
from tests.support.keyed_topic import record
from tests.support.proto import framed, protobuf
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.topics import redeclared

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def totals(shop: Shop) -> dict[str, int]:
    """Return the terms of the proof, which must hold."""
    found = shop.verified(deep=True)
    assert not found.findings, [str(one) for one in found.findings]
    assert all(one.adds_up for one in found.partitions)
    terms = {term: found.sum_of(term) for term in ("read", "landed", "dead_lettered", "filtered")}
    return {term: number for term, number in terms.items() if number}


def test_an_append_table_has_the_rows_that_match_and_the_others_are_counted(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(where="amount >= 1 and `user` <> 'u3'"), limits=Limits(first_rows=30))
    shop.produce(shop.orders(100, shop.register()))
    total = shop.drain()
    kept = {n for n in range(100) if n / 4 >= 1 and n % 7 != 3}
    assert {row["order_id"] for row in shop.landed()} == kept
    assert (total.filtered, total.rejected, total.skipped) == ({"where": 100 - len(kept)}, {}, {})
    assert totals(shop) == {"read": 100, "landed": len(kept), "filtered": 100 - len(kept)}
    events = [event["filtered"]["where"] for event in shop.seen("batch_committed")]
    assert sum(events) == 100 - len(kept)


def test_a_record_for_which_the_condition_fails_is_rejected_with_the_part_that_fails(shop_of: ShopOf) -> None:
    where = "cast(`user` as int) > 1 and order_id <> 4"
    shop = shop_of(shape=Shape(where=where))
    schema, text = shop.register(), ["1", "2", "x", None, "9"]
    optional = record("Order", order_id="long", user=["null", "string"])
    schema = shop.register(optional)
    shop.produce([frame(schema, avro(optional, {"order_id": n, "user": one})) for n, one in enumerate(text)])
    total = shop.drain()
    assert {row["order_id"] for row in shop.landed()} == {1}
    assert (total.filtered, total.rejected) == ({"where": 3}, {"transform_failed": 1})
    (letter,) = shop.dead()
    assert letter["message"].endswith(f": where {where}, for which these fail by themselves: CAST(`user` AS INT)")
    assert totals(shop) == {"read": 5, "landed": 1, "dead_lettered": 1, "filtered": 3}
    shop.pipeline = replace(shop.pipeline, on_error=ErrorMode.SUSPEND)
    shop.produce([frame(schema, avro(optional, {"order_id": 7, "user": "a secret"}))])
    with pytest.raises(
        RejectedRecords, match=r"a declared expression fails.*by themselves: CAST\(`user` AS INT\)"
    ) as refused:
        shop.drain()
    assert "a secret" not in str(refused.value)


def test_any_expression_lets_other_records_be_rejected(shop_of: ShopOf) -> None:
    """Not each part of it has a type by itself."""
    where = (
        "case when order_id = 1 then true else cast(`user` as int) > 0 end and timestamp_seconds(order_id) is not null"
    )
    shop = shop_of(shape=Shape(where=where))
    shop.produce([b"bad!!", *shop.orders(2, shop.register())])
    assert shop.drain().rejected == {"wrong_magic": 1, "transform_failed": 1}
    assert [row["order_id"] for row in shop.landed()] == [1]


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("amont > 1", r"does not fit the rows: .*amont"),
        ("amount", "is double, not true or false"),
        ("`user`.name = 'a'", "does not fit the rows"),
        ("timestamp_seconds(order_id) > 'now'", "Spark makes the time at which it runs"),
        ("timestamp_seconds(order_id) in ('now', 'epoch')", "Spark makes the time at which it runs"),
        ("timestamp_seconds(order_id) between 'yesterday' and '2026-01-01'", "Spark makes the time at which it runs"),
        ("ifnull(date_add(to_date(`user`), 1), 'today') is null", "Spark makes the time at which it runs"),
        ("coalesce(date_add(to_date(`user`), 1), 'Today ') = `user`", "Spark makes the time at which it runs"),
    ],
)
def test_a_condition_that_does_not_fit_the_rows_stops_before_a_commit(shop_of: ShopOf, where: str, what: str) -> None:
    shop = shop_of(shape=Shape(where=where))
    shop.produce(shop.orders(1, shop.register()))
    with pytest.raises(InvalidInput, match=what) as refused:
        shop.drain()
    assert "_frazil" not in str(refused.value)
    assert "order_id, user, amount" in refused.value.do or refused.value.do.startswith(("Compare", "Write a date"))


def test_a_text_that_names_a_day_is_a_text(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(where="`user` in ('today', 'u1')"))
    shop.produce(shop.orders(3, shop.register()))
    shop.drain()
    assert [row["order_id"] for row in shop.landed()] == [1]


ROW = record("Order", order_id="long", user="string", rank="long")


@pytest.mark.parametrize("write", [Upsert(), Upsert(on_tombstone="soft_delete"), Upsert(order_by=Order("rank"))])
def test_a_row_that_stops_matching_leaves_an_upsert_table(shop_of: ShopOf, write: Upsert) -> None:
    """The model is a dictionary; batches, deletes and rows that match again are drawn."""
    shop = shop_of(write=write, key_format="text", shape=Shape(where="`user` <> 'gone'"))
    schema, now, drawn, unmatched = shop.register(ROW), dict[int, str](), random.Random(7), 0
    for batch in range(4):
        for step in range(12):
            number, word = drawn.randrange(6), drawn.choice(["a", "b", "gone"])
            value = {"order_id": number, "user": word, "rank": batch * 100 + step}
            if write.order_by is None and drawn.random() < 0.2:
                shop.produce([None], partition=number % 2, key=b"%d" % number)
                now.pop(number, None)
                continue
            shop.produce([frame(schema, avro(ROW, value))], partition=number % 2, key=b"%d" % number)
            now[number] = word
            unmatched += word == "gone"
        shop.drain()
        found = {row["order_id"]: row["user"] for row in shop.landed() if row.get("_deleted_at") is None}
        assert found == {number: word for number, word in now.items() if word != "gone"}
        shop.assert_proven(deep=True)
    commits = [event for event in shop.seen("batch_committed") if "unmatched" in event]
    assert sum(event["unmatched"] for event in commits) == unmatched
    assert "filtered" not in totals(shop)


def test_a_late_record_does_not_bring_back_a_row_that_stopped_matching(shop_of: ShopOf) -> None:
    write = Upsert(order_by=Order("rank", remember_deletes="7 days"))
    shop = shop_of(write=write, key_format="text", partitions=1, shape=Shape(where="`user` <> 'gone'"))
    schema = shop.register(ROW)
    for word, rank in (("first", 1), ("gone", 5), ("late", 3)):
        value = {"order_id": 1, "user": word, "rank": rank}
        shop.produce([frame(schema, avro(ROW, value))], key=b"k")
        shop.drain()
    assert shop.landed() == []
    shop.assert_proven(deep=True)


@pytest.mark.parametrize("write", [Upsert(), Changelog()])
def test_a_condition_reads_a_column_of_the_records_key(shop_of: ShopOf, write: Any) -> None:
    """The value lacks it."""
    shop = shop_of(write=write, key_format="avro", shape=Shape(where="id < 10 and word = 'in'"))
    key, value = record("K", id="long"), record("V", word="string")
    key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(key))
    schema = shop.register(value)
    for number, word in ((1, "in"), (2, "out"), (99, "in"), (3, "in")):
        body = frame(schema, avro(value, {"word": word}))
        shop.produce([body], key=frame(key_id, avro(key, {"id": number})), partition=0)
    shop.drain()
    rows = shop.landed()
    assert {row["id"] for row in rows if row.get("_op") != "d"} == {1, 3}
    assert {row["id"] for row in rows if row.get("_op") == "d"} == (set() if isinstance(write, Upsert) else {2, 99})
    shop.assert_proven(deep=True)


def test_a_tombstone_that_is_a_row_of_nulls_is_not_asked(shop_of: ShopOf) -> None:
    shop = shop_of(write=Append(on_tombstone="null_row"), shape=Shape(where="order_id > 0"))
    shop.produce([*shop.orders(2, shop.register()), None])
    assert shop.drain().filtered == {"where": 1}
    assert sorted(str(row["order_id"]) for row in shop.landed()) == ["1", "None"]


def changes(source: Source) -> None:
    """Write changes of each kind, some of which match the condition."""
    for number in range(4):
        source.write("r", number, customer="in" if number % 2 else "out")
    source.write("c", 4, customer="in")
    source.write("c", 5, customer="out")
    source.write("u", 1, customer="out")
    source.write("u", 0, customer="in")
    source.write("u", 2, customer="out")
    source.delete(3)
    source.delete(5)
    source.write("u", 4, customer="in", note="n")


def state_of(changelog: list[dict[str, Any]]) -> dict[int, str]:
    """Return the state that the rows of a changelog come to, in their order."""
    state: dict[int, str] = {}
    for row in sorted(changelog, key=lambda row: (row["_kafka_partition"], row["_kafka_offset"])):
        state.pop(row["id"], None) if row["_op"] == "d" else state.__setitem__(row["id"], row["customer"])
    return state


def test_the_state_of_a_changelog_is_the_upsert_table(shop_of: ShopOf) -> None:
    declared: dict[str, Any] = {"key_format": "avro", "envelope": Debezium(), "shape": Shape(where="customer = 'in'")}
    shop = shop_of(write=Changelog(), partitions=1, **declared)
    source = Source(shop)
    changes(source)
    total = shop.drain()
    rows = shop.landed()
    assert total.filtered == {"where": 3}, "an insert and rows of the snapshot that do not match were never there"
    assert totals(shop)["filtered"] == 3
    assert all(row["customer"] is None for row in rows if row["_op"] == "d")
    expected = {key: row["customer"] for key, row in source.rows.items() if row["customer"] == "in"}
    assert state_of(rows) == expected
    upsert = replace(
        shop.pipeline, write=Upsert(), name="again", table=replace(shop.pipeline.table, identifier="shop.again")
    )
    shop.drain(upsert)
    shop.pipeline = upsert
    assert {row["id"]: row["customer"] for row in shop.landed()} == expected
    shop.assert_proven(deep=True)


def test_a_condition_reads_no_placeholder(shop_of: ShopOf) -> None:
    shop = shop_of(
        write=Upsert(),
        key_format="avro",
        envelope=Debezium(),
        on_error=ErrorMode.DEAD_LETTER,
        shape=Shape(where="note <> 'gone'"),
    )
    source = Source(shop)
    source.write("c", 1, customer="a", note="stays")
    source.write("u", 1, customer="b", note=PLACEHOLDER)
    total = shop.drain()
    assert total.rejected == {"omitted_value": 1}
    assert [(row["customer"], row["note"]) for row in shop.landed()] == [("a", "stays")]
    shop.pipeline = replace(shop.pipeline, shape=Shape(where="customer <> 'gone'"))
    source.write("u", 1, customer="c", note=PLACEHOLDER)
    source.write("u", 1, customer="gone", note=PLACEHOLDER)
    shop.drain()
    assert shop.landed() == []
    shop.assert_proven(deep=True)


PAGE = Path(__file__).parents[2] / "docs" / "shape-rows.md"


@pytest.mark.parametrize("write", [Upsert(key="id"), Append()])
def test_the_example_of_the_page_does_what_its_table_says(shop_of: ShopOf, write: Any) -> None:
    page, declared = PAGE.read_text("utf-8"), dict[str, Any]()
    block, *shapes = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(block, declared)  # of the page
    assert all(
        eval(
            one,
            {each.__name__: each for each in (Shape, EventTime, Encrypted, Hmac, Secret, Redact, Nullify, Truncate)},
        )
        for one in shapes
    )
    orders = declared["orders"]
    lines = re.findall(r"^\| `(\{.*?\})` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    columns = orders.topic.value.columns
    shop = shop_of(value_format="json", columns=columns, write=write, shape=orders.shape, partitions=1)
    rows = set[int]()
    for number, (text, upserted, appended) in enumerate(lines):
        shop.produce([text.encode()])
        shop.drain()
        key = json.loads(text)["id"]
        if isinstance(write, Append):
            assert len(shop.landed()) == sum(one == "row" for *_, one in lines[: number + 1]), appended
            continue
        rows = rows | {key} if upserted == f"row {key}" else rows - {key}
        assert {row["id"] for row in shop.landed()} == rows, upserted
    assert len(lines) == 5
    shop.assert_proven(deep=True)


PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; string word = 2; }'


LINES = [b'{"id": 1, "word": "in"}', b'{"id": 2, "word": "out"}']
CONNECT = b'{"schema": {"type": "struct", "fields": [{"field": "word", "type": "string"}]}, "payload": {"word": "%s"}}'
JSON_SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "word": {"type": "string"}}}
FORMATS: dict[str, tuple[list[bytes], str | None]] = {
    "json": (LINES, None),
    "text": ([b"in", b"out"], None),
    "connect_json": ([CONNECT % word for word in (b"in", b"out")], None),
    "json_schema": (LINES, json.dumps(JSON_SCHEMA)),
    "protobuf": ([protobuf(PROTO, {"id": "1", "word": word}) for word in ("in", "out")], PROTO),
}


@pytest.mark.parametrize("value_format", FORMATS)
def test_each_format_has_conditions(shop_of: ShopOf, value_format: str) -> None:
    """Of Avro all other tests are."""
    values, schema = FORMATS[value_format]
    where = "value = 'in'" if value_format == "text" else "word = 'in'"
    more = {"columns": ("id long", "word string")} if value_format == "json" else {}
    shop = shop_of(value_format=value_format, shape=Shape(where=where), **more)
    if schema is not None:
        kind = SchemaType.PROTOBUF if schema == PROTO else SchemaType.JSON
        schema_id = shop.registry_admin.register(f"{shop.topic}-value", schema, kind)
        values = [(framed if schema == PROTO else frame)(schema_id, value) for value in values]
    shop.produce(values)
    assert shop.drain().filtered == {"where": 1}
    assert [row.get("word", row.get("value")) for row in shop.landed()] == ["in"]
    assert totals(shop) == {"read": 2, "landed": 1, "filtered": 1}


@pytest.mark.parametrize("step", ["stage.written", pytest.param("publish.committed", marks=pytest.mark.long)])
def test_a_killed_batch_filters_once(shop_of: ShopOf, step: str) -> None:
    shop = shop_of(shape=Shape(where="order_id % 3 = 0"))
    schema = shop.register()
    for first in (0, 50):
        shop.produce(shop.orders(50, schema, first=first))
        shop.die(step)
    shop.drain()
    assert sorted(row["order_id"] for row in shop.landed()) == [n for n in range(100) if n % 3 == 0]
    assert totals(shop) == {"read": 100, "landed": 34, "filtered": 66}


def test_a_changed_condition_holds_from_now_on_and_is_said(shop_of: ShopOf, tmp_path: Path) -> None:
    shop = shop_of(shape=Shape(where="order_id < 10"), write=Upsert(), key_format="text")
    schema = shop.register()
    shop.produce(shop.orders(20, schema))
    shop.drain()
    assert replay(shop.pipeline, shop.job(), shop.registry(), shop.environment, tmp_path).findings == ()
    shop.pipeline = replace(shop.pipeline, shape=Shape())
    (found,) = replay(shop.pipeline, shop.job(), shop.registry(), shop.environment, tmp_path).findings
    assert "shape of its rows was changed" in found.what
    shop.produce(shop.orders(5, schema, first=100))
    shop.drain()
    (event,) = (one for one in shop.seen("table_differs") if one["field"] == "shape")
    assert 'rows landed with {"where":"order_id < 10"} until now. The table was changed' in event["message"]
    assert len(shop.landed()) == 10, "records of five keys that are there"
    shop.assert_proven(deep=True)
    (found,) = replay(shop.pipeline, shop.job(), shop.registry(), shop.environment, tmp_path).findings
    assert "shape of its rows was changed" in found.what


def test_a_condition_that_no_row_met_leaves_no_trace(shop_of: ShopOf, tmp_path: Path) -> None:
    shop = shop_of(shape=Shape(where="nothing < 10"), write=Upsert(), key_format="text")
    shop.produce(shop.orders(20, shop.register()))
    with pytest.raises(InvalidInput, match="nothing"):
        shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(where="order_id < 10"))
    shop.drain()
    assert len(shop.landed()) == 10
    assert shop.seen("table_differs") == []
    assert replay(shop.pipeline, shop.job(), shop.registry(), shop.environment, tmp_path).findings == ()


def test_rows_judged_in_a_narrower_type_are_not_replayed(shop_of: ShopOf, tmp_path: Path) -> None:
    shop = shop_of(shape=Shape(where="n * 2 > 5"), write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    for kind, number in (("int", 2**31 - 1), ("long", 7)):
        value = record("Order", n=kind)
        shop.produce([frame(shop.register(value), avro(value, {"n": number}))], key=kind.encode())
        shop.drain()
    assert [row["n"] for row in shop.landed()] == [7], "the double of the other is no int"
    (found,) = replay(shop.pipeline, shop.job(), shop.registry(), shop.environment, tmp_path).findings
    assert "a column was widened" in found.what


def test_a_preview_shows_what_is_filtered(shop_of: ShopOf) -> None:
    shop = shop_of(shape=Shape(where="order_id <> 1"), partitions=1)
    shop.produce(shop.orders(3, shop.register()))
    found = preview(shop.pipeline, shop.job(), shop.registry(), count=3)
    assert [row.offset for row in found.rows] == [0, 2]
    (one,) = found.rejected
    assert (one.offset, one.reason, one.message) == (1, "where", "the record does not match where order_id <> 1")
    upsert = replace(shop.pipeline, write=Upsert(key="order_id"), name="again")
    found = preview(upsert, shop.job(), shop.registry(), count=3)
    assert [row.operation for row in found.rows] == ["write", "delete", "write"]
    assert found.rows[1].values["user"] is None


def test_a_version_that_lost_a_field_of_the_condition_stops(shop_of: ShopOf) -> None:
    """Each of its records would delete the row of its key."""
    old, new = record("Order", id="long", status="string", at=record("At", day="int")), record("Order", id="long")
    new["fields"].append({"name": "at", "type": record("At", hour="int")})
    shop = shop_of(write=Upsert(key="id"), shape=Shape(where="status <> 'test' and at.day > 0"), partitions=1)
    first = shop.register(old)
    shop.produce([frame(first, avro(old, {"id": 1, "status": "paid", "at": {"day": 1}}))])
    shop.drain()
    shop.produce([frame(shop.register(new), avro(new, {"id": 1, "at": {"hour": 1}}))])
    with pytest.raises(InvalidInput, match="the newest version of the schema has no field status"):
        shop.drain()
    declared = shop.pipeline
    for condition in ("lower(status) <> 'test'", "coalesce(status, cast(at.day as string)) <> 'test'"):
        shop.pipeline = replace(declared, shape=Shape(where=condition))
        with pytest.raises(InvalidInput, match="has no field status"):
            shop.drain()
    assert [row["id"] for row in shop.landed()] == [1]
    shop.pipeline = replace(declared, shape=Shape(where="at.day > 0"))
    with pytest.raises(InvalidInput, match=r"has no field at\.day"):
        shop.drain()
    shop.pipeline = replace(
        declared, shape=Shape(where="(status is null or status <> 'test') and coalesce(at.day, at.hour) > 0")
    )
    shop.drain()
    assert [(row["id"], row["status"]) for row in shop.landed()] == [(1, None)]


def test_a_condition_that_is_never_true_by_its_constants_without_the_lost_field_stops(shop_of: ShopOf) -> None:
    old = record("Order", id="long", status="string", amount="long", ok="boolean", n="long")
    new = record("Order", id="long", n="long")
    shop = shop_of(write=Upsert(key="id"), shape=Shape(where="coalesce(amount, 0) > 5"), partitions=1)
    first = shop.register(old)
    shop.produce([frame(first, avro(old, {"id": 1, "status": "paid", "amount": 9, "ok": True, "n": 1}))])
    shop.drain()
    shop.produce([frame(shop.register(new), avro(new, {"id": 1, "n": 2}))])
    for condition, field in {
        "coalesce(amount, 0) > 5": "amount",
        "ifnull(status, '') = 'paid' and n > 0": "status",
        "case when status = 'paid' then 'y' else 'n' end = 'y' and coalesce(ok, false)": "ok and status",
    }.items():
        shop.pipeline = replace(shop.pipeline, shape=Shape(where=condition))
        with pytest.raises(InvalidInput, match=f"has no field {field}, "):
            shop.drain()
    assert [row["n"] for row in shop.landed()] == [1]
    shop.pipeline = replace(shop.pipeline, shape=Shape(where="coalesce(amount, 7) > 5"))
    shop.drain()
    assert [row["n"] for row in shop.landed()] == [2]


@pytest.mark.parametrize(
    ("write", "effect"),
    [(Append(), "are filtered"), (Upsert(key="id"), "delete the rows"), (Changelog(key="id"), "land as deletes")],
)
def test_a_version_with_the_lost_field_does_not_save_the_records_without_it(
    shop_of: ShopOf, write: Append | Upsert | Changelog, effect: str
) -> None:
    old, new = record("Order", id="long", status="string"), record("Order", id="long")
    shop = shop_of(write=write, shape=Shape(where="status <> 'test'"), partitions=1)
    shop.produce([frame(shop.register(old), avro(old, {"id": 1, "status": "paid"}))])
    shop.drain()
    shop.produce([frame(shop.register(new), avro(new, {"id": 1}))])
    with pytest.raises(InvalidInput, match="has no field status") as raised:
        shop.drain()
    assert f"register a version with it: records that were written without it {effect}" in str(raised.value.do)
    again = record("Order", id="long", status=["null", "string"])
    again["fields"][1]["default"] = None
    shop.register(again)
    total = shop.drain()
    assert (
        sorted(str(row.get("_op")) for row in shop.landed())
        == {
            "are filtered": ["None"],
            "delete the rows": [],
            "land as deletes": ["d", "w"],
        }[effect]
    )
    assert bool(total.filtered) == (effect == "are filtered")


@pytest.mark.parametrize(
    "names",
    [
        {"namespace": "com.shop.v2"},
        {"name": "OrderEvent", "aliases": ["Order"]},
        {"name": "OrderEvent", "namespace": "com.shop.v2", "aliases": ["com.shop.Order"]},
    ],
)
def test_a_record_of_another_namespace_or_alias_that_lost_a_field_of_the_condition_stops(
    shop_of: ShopOf, names: dict[str, Any]
) -> None:
    old, new = record("Order", id="long", status="string"), record("Order", id="long")
    old["namespace"] = new["namespace"] = "com.shop"
    new |= names
    shop = shop_of(write=Upsert(key="id"), shape=Shape(where="status <> 'test'"), partitions=1)
    shop.produce([frame(shop.register(old), avro(old, {"id": 1, "status": "paid"}))])
    shop.drain()
    shop.produce([frame(shop.register(new), avro(new, {"id": 1}))])
    with pytest.raises(InvalidInput, match="has no field status") as raised:
        shop.drain()
    assert ("If com.shop.v2.Order is another record" in str(raised.value.do)) == ("name" not in names)
    assert [row["status"] for row in shop.landed()] == ["paid"]


def test_a_field_in_upper_case_is_the_column_of_the_condition_in_each_run(shop_of: ShopOf) -> None:
    schema = record("O", Id="long", Kind="string", Cust=record("C", Name="string"))
    condition = "kind = 'k' and cust.name <> 'x' and id >= 0"
    shop = shop_of(shape=Shape(where=condition), write=Upsert(key="id"), partitions=1)
    first = shop.register(schema)
    for number in range(3):
        shop.produce([frame(first, avro(schema, {"Id": number, "Kind": "k", "Cust": {"Name": "y"}}))])
        shop.drain()
    assert sorted(row["id"] for row in shop.landed()) == [0, 1, 2]


@pytest.mark.parametrize(
    "condition",
    [
        "lines[0].sku <> 'x'",
        "element_at(lines, 1).sku <> 'x'",
        "m['a'].sku = 'a' or lines[0].sku = 'b'",
        "map_values(m)[0].sku <> 'x'",
        "coalesce(m['a'], m['b']).sku = 'a' and array_max(lines).sku = 'a'",
        "array_contains(lines.sku, 'a')",
        "lines.sku[0] = 'a'",
        "array_contains(map_values(m).sku, 'a')",
        "concat_ws(',', lines.sku) like '%a%'",
    ],
)
def test_a_version_that_lost_a_field_inside_a_list_or_map_stops(shop_of: ShopOf, condition: str) -> None:
    def schema(name: str) -> dict[str, Any]:
        lists = {"type": "array", "items": record("Line", **{name: "string"})}
        maps = {"type": "map", "values": record("Value", **{name: "string"})}
        made = record("Order", id="long")
        made["fields"] += [{"name": "lines", "type": lists}, {"name": "m", "type": maps}]
        return made

    shop = shop_of(write=Upsert(key="id"), shape=Shape(where=condition), partitions=1)
    for name in ("sku", "code"):
        of = schema(name)
        row = {"id": 1, "lines": [{name: "a"}], "m": {"a": {name: "a"}}}
        shop.produce([frame(shop.register(of), avro(of, row))])
        if name == "sku":
            shop.drain()
    with pytest.raises(InvalidInput, match=r"has no field (m|lines)(\[\])?\.sku"):
        shop.drain()
    assert [row["id"] for row in shop.landed()] == [1]


@pytest.mark.parametrize("condition", ["lines.sku is not null", "array_join(lines.sku, ',') = ''"])
def test_a_list_of_a_lost_field_is_a_list_of_nulls(shop_of: ShopOf, condition: str) -> None:
    shop = shop_of(write=Upsert(key="id"), shape=Shape(where=condition), partitions=1)
    for number, name in enumerate(("sku", "code")):
        of = record("Order", id="long")
        of["fields"] += [{"name": "lines", "type": {"type": "array", "items": record("Line", **{name: "string"})}}]
        shop.produce([frame(shop.register(of), avro(of, {"id": number, "lines": [{name: ""}]}))])
        shop.drain()
    assert sorted(row["id"] for row in shop.landed()) == [0, 1]


def test_declared_columns_without_a_field_of_the_condition_stop(shop_of: ShopOf) -> None:
    columns = ("id long", "status string", "c struct<a: long>")
    shape = Shape(where="lower(status) <> 'test'")
    shop = shop_of(value_format="json", columns=columns, write=Upsert(key="id"), shape=shape, partitions=1)
    shop.produce([b'{"id": 1, "status": "paid", "c": {"a": 1}}'])
    shop.drain()
    shop.produce([b'{"id": 1}'])
    shop.pipeline = redeclared(shop.pipeline, columns=("id long",))
    with pytest.raises(InvalidInput, match="has no field status"):
        shop.drain()
    shop.pipeline = replace(shop.pipeline, shape=Shape(where="c.a > 0"))
    with pytest.raises(InvalidInput, match=r"has no field c"):
        shop.drain()
    assert [row["id"] for row in shop.landed()] == [1]


def test_a_record_that_lost_a_field_of_the_condition_stops_whatever_another_one_has(shop_of: ShopOf) -> None:
    paid, without, sent = record("Paid", id="long", amount="long"), record("Paid", id="long"), record("Sent", id="long")
    shop = shop_of(
        write=Upsert(key="id"), shape=Shape(where="amount > 0"), partitions=1, subject_strategy="topic_record"
    )
    subjects = {name: f"{shop.topic}-{name}" for name in ("Paid", "Sent")}
    first = shop.registry_admin.register(subjects["Paid"], json.dumps(paid))
    shop.produce([frame(first, avro(paid, {"id": 1, "amount": 5}))])
    shop.drain()
    second = shop.registry_admin.register(subjects["Paid"], json.dumps(without))
    shop.registry_admin.register(subjects["Sent"], json.dumps(sent))
    shop.produce([frame(second, avro(without, {"id": 1}))])
    with pytest.raises(InvalidInput, match="has no field amount"):
        shop.drain()
    assert [row["id"] for row in shop.landed()] == [1]


def test_messages_of_one_file_and_a_renamed_field_have_what_the_condition_reads(shop_of: ShopOf) -> None:
    head = 'syntax = "proto3"; package s; '
    both = head + "message A { int64 id = 1; int64 amount = 2; } message B { int64 id = 1; string s = 3; }"
    renamed = both.replace("amount", "total")
    shop = shop_of(value_format="protobuf", shape=Shape(where="amount > 5"), partitions=1)
    first, second = (
        shop.registry_admin.register(f"{shop.topic}-value", text, SchemaType.PROTOBUF) for text in (both, renamed)
    )
    shop.produce([framed(first, protobuf(both, {"id": "1", "amount": "9"}, message="s.A"), 0)])
    shop.produce([framed(first, protobuf(both, {"id": "2", "s": "x"}, message="s.B"), 1)])
    shop.produce([framed(second, protobuf(renamed, {"id": "3", "total": "9"}, message="s.A"), 0)])
    shop.drain()
    assert sorted(row["id"] for row in shop.landed()) == [1, 3]
    shop.assert_proven(deep=True)


def test_versions_of_other_records_may_lack_a_field_of_the_condition(shop_of: ShopOf) -> None:
    paid, sent = record("Paid", id="long", amount="long"), record("Sent", id="long")
    shop = shop_of(shape=Shape(where="amount > 5"), partitions=1)
    for schema, value in ((paid, {"id": 1, "amount": 9}), (sent, {"id": 2})):
        shop.produce([frame(shop.register(schema), avro(schema, value))])
    shop.drain()
    assert ([row["id"] for row in shop.landed()], totals(shop)["filtered"]) == ([1], 1)
