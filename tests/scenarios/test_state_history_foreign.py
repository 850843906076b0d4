"""What another engine does to a table of current state whose history is declared, beyond rows that it writes and deletes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import KeyFormat, Upsert
from frazil.errors import IncompatibleSchema
from frazil.lake.java_classes import items
from tests.scenarios.test_state_history import OWN, WITH_HISTORY, Row, ShopOf, by_key, changes
from tests.scenarios.test_upserts import State
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
MERGE_ON_READ = "SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
LONG = pytest.mark.long


def filled(shop_of: ShopOf, version: int) -> Shop:
    """Return a table of one file with six rows."""
    shop = shop_of(write=WITH_HISTORY, key_format=KeyFormat.TEXT, partitions=1, table={"format_version": version})
    state = State(shop)
    for number in range(6):
        state.put(number, "first", partition=0)
    shop.drain()
    shop.spark.sql(f"ALTER TABLE {name_of(shop)} {MERGE_ON_READ}")
    return shop


def name_of(shop: Shop) -> str:
    return f"lake.{shop.pipeline.table.identifier}"


def loaded(shop: Shop) -> Any:
    return shop.job().iceberg.load(shop.pipeline.table.identifier)


def deletes_of_head(table: Any) -> list[Any]:
    return list(items(table.currentSnapshot().addedDeleteFiles(table.io())))


def take_back(shop: Shop, deletes: Iterable[Any], *, instead: Iterable[Any] = ()) -> None:
    """Commit that the table loses these delete files, and has others in place of them."""
    table = loaded(shop)
    delta = table.newRowDelta().validateFromSnapshot(table.currentSnapshot().snapshotId())
    for file in deletes:
        delta.removeDeletes(file)
    for file in instead:
        delta.addDeletes(file)
    delta.commit()


def check_changes(shop: Shop) -> list[tuple[str, str, str | None]]:
    """Assert that the changes, one after the other, make the state; return key, operation and word before of each."""
    now: dict[str, Row] = {}
    found = changes(shop)
    for row in found:
        assert row["_before"] == now.get(row["_kafka_key"]), row
        if row["_op"] == "d":
            del now[row["_kafka_key"]]
        else:
            now[row["_kafka_key"]] = {name: value for name, value in row.items() if name not in OWN}
    assert now == by_key(shop.landed())
    return [(row["_kafka_key"], row["_op"], (row["_before"] or {}).get("user")) for row in found[6:]]


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_a_row_whose_delete_is_taken_back_is_a_change(shop_of: ShopOf, version: int) -> None:
    shop = filled(shop_of, version)
    shop.spark.sql(f"DELETE FROM {name_of(shop)} WHERE order_id = 0")
    take_back(shop, deletes_of_head(loaded(shop)))
    State(shop).put(0, "second", partition=0)
    shop.drain()
    assert check_changes(shop) == [("k0", "d", "first"), ("k0", "c", None), ("k0", "u", "first")]


@LONG
def test_a_delete_of_a_file_that_went_before_brings_nothing_back(shop_of: ShopOf) -> None:
    """Deletes name rows of two data files, of which one is gone when they are taken back."""
    shop = filled(shop_of, 2)
    State(shop).put(9, "first", partition=0)
    shop.drain()
    shop.spark.sql(f"ALTER TABLE {name_of(shop)} SET TBLPROPERTIES ('write.delete.granularity' = 'partition')")
    shop.spark.sql(f"DELETE FROM {name_of(shop)} WHERE order_id IN (0, 9)")
    both = deletes_of_head(loaded(shop))
    shop.spark.sql(f"DELETE FROM {name_of(shop)} WHERE order_id < 9")  # all rows of the first file
    take_back(shop, both)
    State(shop).put(9, "second", partition=0)
    shop.drain()
    assert check_changes(shop)[-2:] == [("k9", "c", None), ("k9", "u", "first")]


@LONG
def test_a_smaller_vector_brings_rows_back(shop_of: ShopOf) -> None:
    shop = filled(shop_of, 3)
    shop.spark.sql(f"DELETE FROM {name_of(shop)} WHERE order_id = 0")
    smaller = deletes_of_head(loaded(shop))
    shop.spark.sql(f"DELETE FROM {name_of(shop)} WHERE order_id IN (1, 2)")
    take_back(shop, deletes_of_head(loaded(shop)), instead=smaller)
    State(shop).put(1, "second", partition=0)
    shop.drain()
    assert check_changes(shop) == [
        ("k0", "d", "first"),
        ("k1", "d", "first"),
        ("k2", "d", "first"),
        ("k1", "c", None),
        ("k2", "c", None),
        ("k1", "u", "first"),
    ]


@LONG
def test_a_column_of_a_type_that_no_history_has_is_named(shop_of: ShopOf) -> None:
    """A history has version 2. The state lands without one."""
    shop = filled(shop_of, 3)
    shop.spark.sql(f"ALTER TABLE {name_of(shop)} ADD COLUMN notes variant")
    State(shop).put(0, "second", partition=0)
    with pytest.raises(IncompatibleSchema, match=r"(?s)Invalid schema for v2.*notes.*variant"):
        shop.drain()
    shop.drain(replace(shop.pipeline, write=Upsert()))
    assert shop.spark.table(name_of(shop)).where("order_id = 0").select("user").collect() == [("second",)]
