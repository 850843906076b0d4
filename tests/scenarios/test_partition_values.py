"""Values that no partition of the table can hold: their records are rejected, and the others land."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frazil.declaration import Changelog, ErrorMode, Order, Upsert
from frazil.ingest.proof_landing import replay
from frazil.lake.commit.fence import StageAgain
from tests.scenarios.test_preview import previewed
from tests.scenarios.test_rows_deleted import decided
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame
from tests.support.topics import bodies
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
COLUMNS = ("id long", "who string", "amount decimal(14, 4)", "at struct<place: string>")
BY = ("who", "truncate(10, amount)", "at.place")


def test_a_value_that_no_partition_holds_is_a_dead_letter(shop_of: ShopOf) -> None:
    """Of three fields, one of them nested, and in a record whose other values fit."""
    shop = shop_of(value_format="json", columns=COLUMNS, table={"partition_by": BY})
    fit = (
        {"who": "w" * 251, "amount": -9999999999.9990, "at": {"place": "/é"}},
        {"who": "", "amount": 9999999999.9999, "at": None},
        {"who": None},
    )
    unfit = (
        {"who": "w" * 252},
        {"who": "中" * 30, "amount": 1},
        {"who": "a", "amount": -9999999999.9999},
        {"at": {"place": " " + "%" * 90}},
    )
    shop.produce(bodies(*({"id": n, **one} for n, one in enumerate(fit + unfit))), partition=0)
    assert shop.drain().rejected == {"partition_value": len(unfit)}
    assert sorted(row["id"] for row in shop.landed()) == [0, 1, 2]
    what = "no partition of the table can hold a value of the row: "
    assert [row["message"].removeprefix(what) for row in sorted(shop.dead(), key=lambda row: row["offset"])] == [
        f"who is too long for a partition, whose folder's name has at most 255 bytes: {'w' * 20}…",
        f"who is too long for a partition, whose folder's name has at most 255 bytes: {'中' * 20}…",
        "amount has too many digits for a partition, where it is truncated to 10: -9999999999.9999",
        f"at.place is too long for a partition, whose folder's name has at most 255 bytes:  {'%' * 19}…",
    ]
    shop.assert_proven(deep=False)


def test_a_key_that_no_partition_holds_has_no_row_and_its_delete_is_a_delete(shop_of: ShopOf) -> None:
    table = {"partition_by": ("_kafka_key",)}
    shop = shop_of(
        value_format="json",
        columns=("id long",),
        write=Upsert(),
        key_format="text",
        table=table,
        on_error=ErrorMode.DEAD_LETTER,
    )
    long = b"k" * 300
    shop.produce(bodies({"id": 1}), key=b"k", partition=0)
    shop.produce(bodies({"id": 2}), key=long, partition=0)
    shop.produce([None], key=long, partition=0)
    assert shop.drain().rejected == {"partition_value": 1}
    shop.produce(bodies({"id": 3}), key=b"k", partition=0)
    shop.drain()
    assert [row["id"] for row in shop.landed()] == [3]
    shop.assert_proven(deep=True)


def test_an_order_that_no_partition_holds_is_a_dead_letter(shop_of: ShopOf) -> None:
    shop = shop_of(
        value_format="json",
        columns=("id long", "at decimal(14, 4)"),
        write=Upsert(key=("id",), order_by=Order("at")),
        table={"partition_by": ("truncate(10, _order)",)},
        on_error=ErrorMode.DEAD_LETTER,
    )
    shop.produce(bodies({"id": 1, "at": 1}, {"id": 2, "at": -9999999999.9999}))
    assert shop.drain().rejected == {"partition_value": 1}
    assert [row["id"] for row in shop.landed()] == [1]


@pytest.mark.long
@pytest.mark.parametrize("soft", [False, True])
def test_changes_that_no_partition_holds_are_dead_letters(shop_of: ShopOf, soft: bool) -> None:
    """In a changelog, and as a soft delete of a key that has no row: both write one."""
    write = Upsert(key="who", order_by="_kafka_timestamp", on_tombstone="soft_delete") if soft else Changelog()
    shop = shop_of(
        value_format="json",
        columns=("id long", "who string"),
        write=write,
        key_format="json",
        key_columns=("who string",),
        table={"partition_by": ("who",)},
        on_error=ErrorMode.DEAD_LETTER,
    )
    for who in ("short", "w" * 300):
        key = json.dumps({"who": who}).encode()
        shop.produce(bodies({"id": 1, "who": who}), key=key, partition=0)
        shop.produce([None], key=key, partition=0)
    assert shop.drain().rejected == {"partition_value": 2}
    assert {row["who"] for row in shop.landed()} == {"short"}
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_a_records_key_and_avro_are_looked_at_and_previewed(shop_of: ShopOf) -> None:
    table = {"partition_by": ("_kafka.key", "truncate(50, user)"), "metadata_columns": "struct"}
    shop = shop_of(key_format="text", table=table)
    value_id = shop.register()
    for name, user in (("short", "é" * 30), ("n" * 300, "u"), ("short", "é" * 50)):
        value = frame(value_id, avro(ORDER, {"order_id": 1, "user": user, "amount": None}))
        shop.produce([value], key=name.encode(), partition=0)
    for _ in range(2):  # without the table, and with it
        found = previewed(shop, 3, from_start=True)
        assert [len(found.rows), [one.reason for one in found.rejected]] == [1, ["partition_value"] * 2]
        assert "_kafka.key is too long for a partition" in found.rejected[0].message
        shop.drain()
    assert [row["user"] for row in shop.landed()] == ["é" * 30]
    assert [row["reason"] for row in shop.dead()] == ["partition_value"] * 2


@pytest.mark.long
@pytest.mark.parametrize("write", [Upsert(key="id"), Upsert(key="id", order_by="_kafka_timestamp")])
def test_the_least_key_of_a_truncated_partition_has_one_row(shop_of: ShopOf, write: Upsert) -> None:
    """The partition of the least numbers is the last one, as Iceberg's truncate wraps."""
    table = {"partition_by": ("truncate(10, id)",)}
    shop = shop_of(value_format="json", columns=("id long", "word string"), write=write, table=table)
    ids = [-(2**63), -(2**63) + 3, *range(-(2**63) + 20, 2**63, 2**64 // 220)]
    for word in ("first", "second"):
        shop.produce(bodies(*({"id": number, "word": word} for number in ids)), partition=0)
        shop.drain()
    assert sorted((row["id"], row["word"]) for row in shop.landed()) == [(number, "second") for number in ids]
    for deep in (False, True):
        assert shop.verified(deep=deep).outcome == "proven"


def widened(shop: Shop) -> int:
    """Land three rows, then register a version that widens the key, and have the table follow; return the first version's id."""
    narrow, wide = ({"type": "record", "name": "R", "fields": [{"name": "id", "type": of}]} for of in ("int", "long"))
    schema_id = shop.register(narrow)
    shop.produce([frame(schema_id, avro(narrow, {"id": number})) for number in range(3)])
    shop.drain()
    shop.register(wide)
    shop.drain()
    return schema_id


@pytest.mark.parametrize("version", first_short([2, 3]))
def test_a_row_is_found_in_a_partition_whose_column_was_widened_since(shop_of: ShopOf, version: int) -> None:
    """No snapshot has the wide column yet."""
    table = {"partition_by": ("id",), "format_version": version}
    shop = shop_of(write=Upsert(key=("id",)), table=table, partitions=1)
    schema_id = widened(shop)
    shop.produce([frame(schema_id, b"\x00"), frame(schema_id, b"\x06")])
    shop.drain()
    assert sorted((row["id"], row["_kafka_offset"]) for row in shop.landed()) == [(0, 3), (1, 1), (2, 2), (3, 4)]
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_rows_are_compared_in_a_partition_whose_column_was_widened_since(shop_of: ShopOf, tmp_path: Path) -> None:
    shop = shop_of(write=Upsert(key=("id",)), table={"partition_by": ("id",)}, partitions=1)
    widened(shop)
    assert replay(shop.pipeline, shop.job(), shop.registry(), shop.environment, tmp_path).findings == ()
    shop.sql("DELETE FROM {} WHERE id = 1")
    with pytest.raises(StageAgain, match="a column that partitions the table was widened since"):
        decided(shop)


def test_a_row_is_found_when_a_key_was_renamed_and_a_partition_widened_since(shop_of: ShopOf) -> None:
    """The data files that the search omits are judged by the names that the table has now."""
    shop = shop_of(write=Upsert(key=("id", "p")), table={"partition_by": ("p",)}, partitions=1)
    first, later = (
        {"type": "record", "name": "R", "fields": [{**key, "type": "int"}, {"name": "p", "type": of}]}
        for key, of in (({"name": "id"}, "int"), ({"name": "kid", "aliases": ["id"]}, "long"))
    )
    schema_id = shop.register(first)
    shop.produce([frame(schema_id, avro(first, {"id": number, "p": number})) for number in range(3)])
    shop.drain()
    schema_id = shop.register(later)
    shop.produce([frame(schema_id, avro(later, {"kid": 0, "p": 0}))])
    shop.drain()
    assert sorted((row["kid"], row["_kafka_offset"]) for row in shop.landed()) == [(0, 3), (1, 1), (2, 2)]
    shop.assert_proven(deep=True)
