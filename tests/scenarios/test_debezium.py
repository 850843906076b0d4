"""Upsert tables from Debezium's change events, on a real broker and registry."""

from __future__ import annotations

import copy
import json
from datetime import date
from typing import Any

import pytest

from frazil.declaration import Debezium, ErrorMode, Upsert
from frazil.errors import InvalidInput, SourceTruncated
from frazil.recovery.decisions import Accepted
from tests.support.debezium_events import ORDERS, PLACEHOLDER, STARTED_MS, Source, column, named, optional
from tests.support.shop import Shop, ShopOf, avro, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def debezium(shop_of: ShopOf, **declared: Any) -> Shop:
    choices = {"write": Upsert(), "key_format": "avro", "envelope": Debezium(), **declared}
    return shop_of(**choices)


def check(source: Source, *columns: str) -> None:
    """Check that the table is the source's, and that its account agrees."""
    names = columns or ("id", "customer", "note")
    found = {row[names[0]]: {name: row[name] for name in names} for row in source.shop.landed()}
    assert found == {key: {name: row.get(name) for name in names} for key, row in source.rows.items()}
    shop = source.shop
    assert shop.account().rows == len(source.rows)
    shop.assert_proven()


@pytest.mark.long
def test_a_table_is_that_of_the_source(shop_of: ShopOf) -> None:
    shop = debezium(shop_of)
    source = Source(shop, partitions=2)
    for number in range(6):
        source.write("r", number, customer=f"c{number}")
    land(source)
    source.write("u", 1, customer="changed", note="n")
    source.write("c", 7, customer="new")
    source.write("u", 7, customer="new and changed")
    source.delete(2)
    source.delete(3, event=False)  # compaction left the tombstone
    source.delete(4, tombstone=False)
    source.delete(99)  # was never there
    source.produce(0, source.event("m", None))
    land(source)
    found = shop.counts()
    names = ("read", "written", "deletes", "repeated_deletes", "superseded")
    assert tuple(found[name] for name in names) == (10, 2, 4, 2, 1)
    assert found["skipped"] == {"no_change": 1}
    assert {"before", "after", "op", "source", "ts_ms"}.isdisjoint(shop.landed()[0])


@pytest.mark.long
def test_a_tombstone_is_a_repeated_delete_only_in_the_batch_of_its_event(shop_of: ShopOf) -> None:
    """In a later batch it is a delete of a missing key: nothing says that there was a row."""
    shop = debezium(shop_of)
    source = Source(shop)
    for number in (1, 2):
        source.write("c", number, customer="first")
    shop.drain()
    source.delete(1, tombstone=False)
    source.delete(2)
    land(source)
    assert of_deletes(shop) == {"deletes": 2, "repeated_deletes": 1, "deleted": 2, "absent": 0}
    source.produce(1, None)
    land(source)
    assert of_deletes(shop) == {"deletes": 1, "repeated_deletes": 0, "deleted": 0, "absent": 1}


def of_deletes(shop: Shop) -> dict[str, int]:
    """Return what the newest commit counts of deletes."""
    keys = json.loads(shop.stored.current_snapshot().summary["frazil.keys"])
    of_records = {name: shop.counts().get(name, 0) for name in ("deletes", "repeated_deletes")}
    return of_records | {name: keys[name] for name in ("deleted", "absent")}


def land(source: Source, *columns: str) -> None:
    """Land all that waits, and check the table."""
    source.shop.drain()
    check(source, *columns)


LARGE = (
    *ORDERS,
    column("blob", optional("bytes")),
    column("tags", optional({"type": "array", "items": ["null", "string"]})),
)
NAMES = ("id", "customer", "note", "blob", "tags")
GONE = PLACEHOLDER
ALL_GONE = {"note": GONE, "blob": GONE.encode(), "tags": [GONE]}


@pytest.mark.long
def test_a_value_that_is_left_out_is_that_of_the_change_or_the_row_before(shop_of: ShopOf) -> None:
    shop = debezium(shop_of)
    source = Source(shop, LARGE)
    for number in range(5):
        source.write("r", number, customer="first", note=f"n{number}", blob=b"b", tags=["t", None])
    shop.drain()
    source.write("u", 1, customer="of the table", **ALL_GONE)
    source.write("u", 2, customer="x", note="new", blob=b"new", tags=["new"])
    source.write("u", 2, customer="of the change before", **ALL_GONE)
    source.write("u", 3, customer="x", note=GONE, blob=b"newer", tags=[GONE])
    source.write("u", 3, customer="of both", note="newer", blob=GONE.encode(), tags=[GONE])
    source.write("u", 4, customer="x", note=None, blob=GONE.encode(), tags=None)
    source.write("u", 4, customer="a null is a value", **ALL_GONE)
    source.write("c", 5, customer="c", note="made", blob=b"made", tags=[])
    source.write("u", 5, customer="made in the batch", **ALL_GONE)
    source.write("u", 0, customer="x", **ALL_GONE)
    source.delete(0)
    land(source, *NAMES)
    assert len(shop.seen("batch_retried")) == 1
    source.write("u", 1, customer="again", **ALL_GONE)
    source.write("u", 4, customer="again", note="n", **{k: v for k, v in ALL_GONE.items() if k != "note"})
    land(source, *NAMES)


UNAVAILABLE = "ünavailable"
"""A placeholder whose first bytes are negative numbers in Java."""
OCTETS = [int.from_bytes([octet], signed=True) for octet in UNAVAILABLE.encode()]
OTHERS = (
    *ORDERS[:2],
    column("days", optional({"type": "array", "items": ["null", named("int", "io.debezium.time.Date")]})),
    column("numbers", optional({"type": "array", "items": ["null", "long"]})),
    column("parts", optional({"type": "array", "items": ["null", "bytes"]})),
    column("labels", optional({"type": "map", "values": ["null", "string"]})),
)
OTHERS_GONE = {"days": OCTETS, "numbers": OCTETS, "parts": [UNAVAILABLE.encode()], "labels": {UNAVAILABLE: UNAVAILABLE}}


def others(number: int) -> dict[str, Any]:
    """Return values of these columns; each has the placeholder beside something else."""
    labels = {UNAVAILABLE: UNAVAILABLE, "n": str(number)}
    values = {"days": [*OCTETS, number, None], "numbers": [*OCTETS, number, None]}
    return {**values, "parts": [UNAVAILABLE.encode(), b"%d" % number], "labels": labels}


@pytest.mark.long
def test_lists_and_maps_that_are_left_out_are_those_of_the_change_or_the_row_before(shop_of: ShopOf) -> None:
    """Of each other type that has a placeholder: lists of dates, of numbers and of bytes, and maps of texts."""
    shop = debezium(shop_of, envelope=Debezium(unavailable_value=UNAVAILABLE))
    source = Source(shop, OTHERS)
    for number in (1, 2):
        source.write("r", number, customer="first", **others(number))
    shop.drain()
    source.write("u", 1, customer="of the table", **OTHERS_GONE)
    source.write("u", 2, customer="x", **others(20))
    source.write("u", 2, customer="of the change before", **OTHERS_GONE)
    source.write("c", 3, customer="c", **others(3))
    source.write("u", 3, customer="made in the batch", **OTHERS_GONE)
    source.write("c", 4, customer="nulls are values")
    shop.drain()
    landed = {}
    for row in shop.landed():
        days = row["days"] and [day and (day - date(1970, 1, 1)).days for day in row["days"]]
        labels = row["labels"] and dict(row["labels"])
        values = {name: row[name] for name in OTHERS_GONE}
        landed[row["id"]] = (row["customer"], {**values, "days": days, "labels": labels})
    assert landed == {
        1: ("of the table", others(1)),
        2: ("of the change before", others(20)),
        3: ("made in the batch", others(3)),
        4: ("nulls are values", dict.fromkeys(OTHERS_GONE)),
    }
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_value_that_is_nowhere_is_a_dead_letter(shop_of: ShopOf) -> None:
    """A topic that begins behind the row's insert. Until one change has the value, there is no row."""
    shop = debezium(shop_of, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    source = Source(shop)
    source.write("u", 1, customer="never", note=GONE)
    source.write("u", 1, customer="never", note=GONE)
    source.write("r", 2, customer="there", note="n")
    source.delete(2)
    source.write("u", 2, customer="behind its delete", note=GONE)
    source.write("u", 3, customer="x", note=GONE)
    source.write("u", 3, customer="with its value", note="n")
    source.write("c", 4, customer="c", note="n")
    for number in (1, 2):
        source.rows.pop(number)
    assert shop.drain().rejected == {"value_unavailable": 3}
    check(source)
    assert sorted(row["offset"] for row in shop.dead()) == [0, 1, 5]
    source.write("u", 1, customer="never", note=GONE)
    source.rows.pop(1)
    source.write("u", 4, customer="known", note=GONE)
    assert shop.drain().rejected == {"value_unavailable": 1}
    check(source)


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_a_soft_delete_keeps_the_values_that_were_left_out(shop_of: ShopOf, version: int) -> None:
    write, table = Upsert(on_tombstone="soft_delete"), {"format_version": version}
    shop = debezium(shop_of, write=write, table=table, envelope=Debezium(operation_column=True, source_column=True))
    source = Source(shop)
    for number in (1, 2):
        source.write("c", number, customer="first", note=f"n{number}")
    shop.drain()
    source.write("u", 1, customer="last", note=GONE)
    source.delete(1)
    deleted_at = STARTED_MS + source.lsn % 100_000
    source.write("u", 2, customer="left", note=GONE)
    shop.drain()
    source.produce(1, None)  # a tombstone of a batch of its own
    shop.drain()
    found = {row["id"]: row for row in shop.landed()}
    assert [(row["customer"], row["note"], row["_op"]) for _, row in sorted(found.items())] == [
        ("last", "n1", "d"),
        ("left", "n2", "u"),
    ]
    assert found[1]["_deleted_at"].timestamp() * 1000 == deleted_at
    assert found[1]["_source"]["lsn"] == source.lsn - 152
    assert (found[2]["_deleted_at"], found[2]["_source"]["lsn"]) == (None, source.lsn)
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_row_marked_as_deleted_gives_no_value_to_one_of_its_key(shop_of: ShopOf) -> None:
    """A row's key changes to one that was deleted: the event leaves out a value that no event of this key has."""
    write = Upsert(on_tombstone="soft_delete")
    shop = debezium(shop_of, write=write, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    source = Source(shop)
    for number in (1, 2, 3, 4):
        source.write("c", number, customer=f"first {number}", note=f"n{number}")
        source.delete(number)
    assert shop.drain().rejected == {}
    deleted = {row["id"]: row for row in shop.landed()}
    source.write("c", 1, customer="of another key", note=GONE)
    source.write("c", 2, customer="of another key", note=GONE)
    source.delete(2)
    source.write("c", 3, customer="of another key", note=GONE)
    source.write("u", 3, customer="of another key", note="all of it")
    source.write("c", 4, customer="again", note="n")
    source.delete(4)
    source.write("c", 4, customer="of another key", note=GONE)
    assert shop.drain().rejected == {"value_unavailable": 2}
    assert {row["offset"] for row in shop.dead()} == {12, 21}
    found = {row["id"]: row for row in shop.landed()}
    assert found[1] == deleted[1]
    assert (found[2]["customer"], found[2]["note"]) == ("first 2", "n2")
    assert found[2]["_deleted_at"] > deleted[2]["_deleted_at"]
    assert (found[3]["note"], found[3]["_deleted_at"]) == ("all of it", None)
    assert (found[4]["customer"], found[4]["note"]) == ("again", "n")
    assert found[4]["_deleted_at"] > deleted[4]["_deleted_at"]
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_truncate_stops_the_pipeline_until_it_is_accepted(shop_of: ShopOf) -> None:
    shop = debezium(shop_of, on_error=ErrorMode.SKIP)
    source = Source(shop)
    source.write("c", 1, customer="before")
    shop.drain()
    source.produce(None, source.event("t", None))
    source.write("c", 2, customer="behind")
    with pytest.raises(SourceTruncated, match="frazil accept .* source-truncated"):
        shop.drain()
    assert [row["id"] for row in shop.landed()] == [1]
    shop.accept(Accepted.SOURCE_TRUNCATED)
    assert shop.drain().rejected == {"truncated": 1}
    check(source)


@pytest.mark.parametrize("name", first_short(("ts_ms", "op")))
def test_a_version_whose_own_fields_have_another_type_holds_up_no_topic(shop_of: ShopOf, name: str) -> None:
    shop = debezium(shop_of, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    source = Source(shop)
    source.write("c", 1, customer="first")
    shop.drain()
    odd = copy.deepcopy(source._schema)
    of_source = next(field for field in odd["fields"] if field["name"] == "source")["type"]
    fields = odd["fields"] if name == "op" else of_source["fields"]
    next(field for field in fields if field["name"] == name)["type"] = {"op": "int", "ts_ms": "string"}[name]
    schema_id = shop.register(odd)
    source.write("c", 2, customer="of the version before")
    land(source)
    event = source.change("c", {"id": 3, "customer": "odd", "note": None}, None)
    event |= {"op": 7} if name == "op" else {"source": {**event["source"], "ts_ms": "noon"}}
    source.produce(3, frame(schema_id, avro(odd, event)))
    source.write("c", 4, customer="last")
    assert shop.drain().rejected == {"unreadable_schema": 1}
    check(source)


def test_events_that_say_nothing_of_a_row_are_dead_letters(shop_of: ShopOf) -> None:
    shop = debezium(shop_of, on_error=ErrorMode.DEAD_LETTER)
    source = Source(shop)
    source.write("c", 1, customer="good")
    row = {"id": 2, "customer": "x", "note": None}
    for event in (source.event("x", row), source.event("u", None), source.event("c", {**row, "id": 3})):
        source.produce(2, event)
    source.produce(None, source.event("c", row))
    assert shop.drain().rejected == {"operation_unknown": 2, "key_mismatch": 1, "key_missing": 1}
    check(source)


@pytest.mark.timeout(120)
@pytest.mark.long
def test_a_row_of_many_columns_is_planned_in_a_moment(shop_of: ShopOf) -> None:
    """Spark's optimizer would derive constraints from each subset of the columns that may be left out."""
    columns = tuple(column(f"c{number}", optional("string")) for number in range(60))
    source = Source(debezium(shop_of), columns=(column("id", "long"), *columns))
    for number in range(3):
        source.write("r", number, c1="one", c59="last")
    source.write("u", 1, c1=PLACEHOLDER, c59="changed")
    land(source, "id", *(each["name"] for each in columns))


def test_a_topic_without_rows_is_refused(shop_of: ShopOf) -> None:
    shop = debezium(shop_of)
    fields = [{"name": name, "type": "string"} for name in ("status", "id", "event_count", "data_collections")]
    shop.register({"type": "record", "name": "Event", "fields": fields})
    with pytest.raises(InvalidInput, match="a connector's transactions"):
        shop.drain()


@pytest.mark.long
def test_a_key_is_what_its_type_means(shop_of: ShopOf) -> None:
    """The key of the record and the column of the row are dates: a delete, which has no row, finds it."""
    shop = debezium(shop_of)
    day = column("day", named("int", "io.debezium.time.Date"))
    source = Source(shop, (day, column("customer", optional("string"))), (day,))
    for number in (20_454, 20_455, 20_456):
        source.write("r", number, customer="first")
    shop.drain()
    source.write("u", 20_454, customer="second")
    source.delete(20_455)
    source.delete(20_456, event=False)
    shop.drain()
    assert [(str(row["day"]), row["customer"]) for row in shop.landed()] == [("2026-01-01", "second")]
    shop.assert_proven(deep=True)
