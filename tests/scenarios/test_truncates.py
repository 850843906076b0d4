"""A truncate of the source's table: with `on_truncate="delete_all"`, all rows go that the source had before it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from frazil.declaration import Changelog, Debezium, ErrorMode, Limits, Upsert
from frazil.errors import SourceTruncated
from tests.scenarios.test_debezium import check, debezium, land
from tests.support.connect_events import ORDERS as CONNECT_ORDERS
from tests.support.connect_events import ConnectSource, Written
from tests.support.connect_schemas import field as connect_field
from tests.support.debezium_events import ORDERS, PLACEHOLDER, Source, column, optional
from tests.support.jobs import once
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
DELETE_ALL = Upsert(on_truncate="delete_all")


def truncating(shop_of: ShopOf, **declared: Any) -> tuple[Shop, Source]:
    shop = debezium(shop_of, **{"write": DELETE_ALL, "partitions": 1, **declared})
    return shop, Source(shop)


def truncate(source: Source) -> None:
    source.produce(None, source.event("t", None))
    source.rows.clear()


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_all_rows_go_that_are_before_a_truncate(shop_of: ShopOf, version: int) -> None:
    """Those of the table and of the batch. Nothing is left of their files, and the account of the keys begins again."""
    shop, source = truncating(shop_of, table={"format_version": version})
    for number in range(6):
        source.write("c", number, customer="before", note=f"n{number}")
    shop.drain()
    source.write("u", 1, customer="updated")
    source.delete(2)
    source.write("c", 7, customer="before, in the batch")
    truncate(source)
    source.write("c", 1, customer="behind")
    source.write("c", 8, customer="behind")
    source.write("u", 8, customer="behind, again")
    total = shop.drain()
    assert total.skipped == {"truncated": 1}
    check(source)
    summary = shop.stored.current_snapshot().summary
    assert (summary["total-records"], summary["total-delete-files"]) == ("2", "0")
    assert shop.counts()["superseded"] == 5
    assert [event["event"] for event in shop.events].count("batch_retried") == 1
    source.write("u", 1, customer="later")
    source.delete(8)
    land(source)


@pytest.mark.long
def test_a_truncate_can_be_first_last_alone_or_repeated(shop_of: ShopOf) -> None:
    _, source = truncating(shop_of)
    truncate(source)
    land(source)
    source.write("c", 1, customer="first")
    truncate(source)
    land(source)
    source.write("c", 1, customer="second")
    land(source)
    truncate(source)
    land(source)
    source.write("c", 1, customer="third")
    truncate(source)
    source.write("c", 1, customer="fourth")
    truncate(source)
    source.write("c", 2, customer="fifth")
    land(source)


@pytest.mark.long
def test_a_truncate_ends_the_values_of_a_row(shop_of: ShopOf) -> None:
    shop, source = truncating(shop_of, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    source.write("c", 1, customer="first", note="n1")
    source.write("c", 2, customer="first", note="n2")
    shop.drain()
    source.write("u", 1, customer="left out", note=PLACEHOLDER)
    source.produce(3, source.event("x", {"id": 3, "customer": "unknown", "note": None}))
    land(source)
    source.write("u", 2, customer="left out", note=PLACEHOLDER)
    source.produce(3, source.event("x", {"id": 3, "customer": "unknown", "note": None}))
    truncate(source)
    source.write("u", 1, customer="nowhere", note=PLACEHOLDER)
    source.rows.clear()
    source.write("c", 2, customer="new", note="n")
    source.write("u", 2, customer="of the batch", note=PLACEHOLDER)
    assert shop.drain().rejected == {"operation_unknown": 1, "value_unavailable": 1}
    check(source)
    truncate(source)
    source.write("u", 2, customer="nowhere", note=PLACEHOLDER)
    source.rows.clear()
    assert shop.drain().rejected == {"value_unavailable": 1}
    check(source)


@pytest.mark.long
def test_a_topic_of_several_partitions_does_not_say_what_is_before_a_truncate(shop_of: ShopOf) -> None:
    shop, source = truncating(shop_of, partitions=2)
    source.write("c", 1, customer="before")
    shop.drain()
    source.produce(None, source.event("t", None))
    with pytest.raises(SourceTruncated, match="one partition"):
        land(source)


@pytest.mark.long
@pytest.mark.parametrize("step", ["stage.written", "publish.decided", "publish.filled", "publish.committed"])
def test_a_driver_that_dies_or_is_passed_lands_a_truncate_once(shop_of: ShopOf, step: str) -> None:
    """The driver dies at the step, after another one has landed the batch, and not."""

    shop, source = truncating(shop_of)
    for number in range(3):
        source.write("c", number, customer="before")
    shop.drain()
    truncate(source)
    source.write("c", 1, customer="behind")
    shop.die(step)
    land(source)
    truncate(source)
    source.write("c", 2, customer="behind")
    passed = list[int]()
    shop.drain(failpoint=once(step, lambda: passed.append(shop.drain().read)))
    assert passed
    check(source)


@pytest.mark.long
def test_a_driver_that_is_passed_while_it_stages_a_batch_again_takes_no_log_for_truncated(shop_of: ShopOf) -> None:
    """The other driver lands a record behind the end that the topic had when the first one began."""
    shop, source = truncating(shop_of)
    source.write("c", 1, customer="before")
    shop.drain()
    truncate(source)

    def pass_by() -> None:
        source.write("c", 2, customer="behind the end")
        shop.ingestion(run="other").drain()

    shop.drain(failpoint=once("stage.started", pass_by))
    check(source)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_any_changes_and_truncates_in_any_batches_end_in_the_rows_of_the_source(shop_of: ShopOf, seed: int) -> None:
    chance = random.Random(seed)
    rows = chance.choice([7, 30])
    shop, source = truncating(
        shop_of, limits=Limits(first_rows=rows, max_rows=rows), envelope=Debezium(operation_column=True)
    )
    truncates = 0
    for _ in range(4):
        for _ in range(25):
            number = chance.randrange(6)
            if chance.random() < 0.08:
                truncate(source)
                truncates += 1
            elif number not in source.rows:
                source.write("c", number, customer="c", note=chance.choice([None, "n"]))
            elif chance.random() < 0.25:
                source.delete(number, tombstone=chance.random() < 0.5)
            else:
                note = PLACEHOLDER if chance.random() < 0.5 else f"n{source.lsn}"
                source.write("u", number, customer=f"c{source.lsn}", note=note)
        land(source)
    shop.assert_proven(deep=True)
    assert truncates > 2


@pytest.mark.long
def test_a_truncate_says_nothing_of_a_partition_that_was_added(shop_of: ShopOf) -> None:
    """The offset of the last truncate occurs in each partition; the driver that met it goes on."""
    shop, source = truncating(shop_of)
    follower = shop.ingestion()
    for number in range(3):
        source.write("c", number, customer="before")
    truncate(source)
    for number in range(20, 24):
        source.write("c", number, customer="behind")
    follower.poll()
    check(source)
    shop.add_partitions(2)
    for number in range(30, 36):
        row = {"id": number, "customer": "added", "note": None}
        shop.produce([source.event("c", row)], key=source.key(number), partition=1)
        source.rows[number] = row
    follower.poll()
    check(source)
    source.produce(None, source.event("t", None))
    with pytest.raises(SourceTruncated):
        follower.poll()
    check(source)


@pytest.mark.long
def test_what_a_batch_teaches_is_no_failed_attempt(shop_of: ShopOf) -> None:
    """Versions of the schema, left-out values and a truncate, all met by the first batch of a driver."""
    _, source = truncating(shop_of)
    source.write("c", 1, customer="first", note="n")
    source.write("u", 1, customer="first", note=PLACEHOLDER)
    for name in ("a", "b", "c"):
        source.evolve([*ORDERS, column(name, optional("string"))])
    truncate(source)
    source.write("c", 2, customer="new", note="n", c="c")
    source.write("u", 2, customer="newer", note=PLACEHOLDER, c="c")
    land(source)


@pytest.mark.long
def test_truncates_are_no_rejected_records(shop_of: ShopOf) -> None:
    _, source = truncating(shop_of, max_rejected_percent=1)
    for _ in range(2):
        truncate(source)
        for number in range(50):
            source.write("c", number, customer="loaded")
    land(source)


def of_avro(shop_of: ShopOf, **declared: Any) -> Source:
    return Source(debezium(shop_of, partitions=1, on_error=ErrorMode.DEAD_LETTER, **declared))


def of_json_schema(shop_of: ShopOf, **declared: Any) -> Source:
    formats = {"value_format": "json_schema", "key_format": "json_schema"}
    return ConnectSource(debezium(shop_of, partitions=1, on_error=ErrorMode.DEAD_LETTER, **formats, **declared))


def of_connect_json(shop_of: ShopOf, **declared: Any) -> Source:
    formats = {"value_format": "connect_json", "key_format": "connect_json"}
    shop = debezium(shop_of, partitions=1, on_error=ErrorMode.DEAD_LETTER, **formats, **declared)
    return ConnectSource(shop, written=Written.CONNECT_JSON)


def misfit(source: Source) -> None:
    """Change the type of a column to one that the table's does not hold."""
    if isinstance(source, ConnectSource):
        source.evolve((*CONNECT_ORDERS[:2], connect_field("note", "int64")))
    else:
        source.evolve((*ORDERS[:2], column("note", optional("long"))))


FORMATS = (of_avro, of_json_schema, of_connect_json)


@pytest.mark.long
@pytest.mark.parametrize("of", FORMATS)
def test_a_truncate_whose_schema_does_not_fit_the_table_deletes_all_rows(
    shop_of: ShopOf, of: Callable[..., Source]
) -> None:
    source = of(shop_of, write=DELETE_ALL, max_rejected_percent=100)
    source.write("c", 1, customer="before", note="n")
    source.shop.drain()
    misfit(source)
    source.produce(2, source.event("c", {"id": 2, "customer": "misfit", "note": 7}))
    truncate(source)
    source.produce(3, source.event("c", {"id": 3, "customer": "misfit", "note": 7}))
    total = source.shop.drain()
    assert (total.skipped, total.rejected) == ({"truncated": 1}, {"incompatible_schema": 2})
    check(source)
    source.evolve(CONNECT_ORDERS if isinstance(source, ConnectSource) else ORDERS)
    source.write("c", 4, customer="behind", note="n")
    land(source)


def test_a_truncate_whose_schema_does_not_fit_the_table_stops_the_pipeline(shop_of: ShopOf) -> None:
    source = of_avro(shop_of, max_rejected_percent=100)
    source.write("c", 1, customer="before", note="n")
    source.shop.drain()
    misfit(source)
    source.produce(2, source.event("c", {"id": 2, "customer": "misfit", "note": 7}))
    source.produce(None, source.event("t", None))
    with pytest.raises(SourceTruncated):
        land(source)


@pytest.mark.long
@pytest.mark.parametrize("of", FORMATS)
def test_a_changelog_has_a_truncate_whose_schema_does_not_fit_the_table(
    shop_of: ShopOf, of: Callable[..., Source]
) -> None:
    source = of(shop_of, write=Changelog(), max_rejected_percent=100, envelope=Debezium(source_column=True))
    source.write("c", 1, customer="before", note="n")
    source.shop.drain()
    misfit(source)
    source.produce(2, source.event("c", {"id": 2, "customer": "misfit", "note": 7}))
    truncate(source)
    assert source.shop.drain().rejected == {"incompatible_schema": 1}
    rows = [row for row in source.shop.landed() if row["_op"] == "t"]
    assert [(row["id"], row["customer"], row["note"]) for row in rows] == [(None, None, None)]
    source.shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_changelog_has_a_truncate_whose_key_does_not_fit_the_table(shop_of: ShopOf) -> None:
    source = of_avro(shop_of, write=Changelog())
    source.write("c", 1, customer="before")
    source.shop.drain()
    source.identify((column("id", "string"),))
    source.produce("odd", source.event("t", None))
    assert source.shop.drain().rejected == {}
    assert {(row["_op"], row["id"]) for row in source.shop.landed()} == {("c", 1), ("t", None)}
    source.shop.assert_proven(deep=True)
