"""Another engine deletes rows on purpose: `rows-deleted` makes the proof hold again, and is for deleted rows only."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from frazil.clients.secrets import Secrets
from frazil.declaration import Changelog, ErrorMode, Upsert
from frazil.errors import Fenced, InvalidInput
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.decisions import Acceptance, Accepted
from frazil.recovery.recount import filled, rows_deleted
from frazil.status.pipeline_status import status_of
from tests.scenarios.test_upserts import State
from tests.support.failpoint_steps import ACCEPT_STEPS
from tests.support.jobs import Crash, crash_at, nothing, once
from tests.support.ledgers import Ledgers
from tests.support.shop import Shop, ShopOf

pytestmark = pytest.mark.spark


def accepted(stock: Ledgers, failpoint: Callable[[str], None] = nothing) -> Acceptance:
    lake = Lake(stock.environment, Secrets({}).read)
    return rows_deleted(stock.pipeline, lake, "erased, ticket 7", stock.job(failpoint=failpoint))


def delete(stock: Ledgers, *offsets: int, table: str = "") -> None:
    offset = "offset" if table else "_kafka_offset"
    listed = ", ".join(map(str, offsets))
    stock.spark.sql(f"DELETE FROM lake.{table or stock.table} WHERE {offset} IN ({listed})")


def test_deleted_rows_are_accepted_once_and_later_batches_carry_them_on(stock: Ledgers) -> None:
    with pytest.raises(InvalidInput, match="there is nothing to accept: rows-deleted has not happened"):
        accepted(stock)
    delete(stock, 2, 13)
    assert (stock.verified().exit_code, accepted(stock).rows) == (1, 2)
    stock.goes_on()
    found = stock.verified()
    assert (found.sum_of("deleted"), all(one.adds_up for one in found.partitions)) == (2, True)
    lake = Lake(stock.environment, Secrets({}).read)
    status = status_of(stock.pipeline, lake.table(stock.table))
    assert (status.deleted_by_others, status.foreign_commits) == (2, 0)
    with pytest.raises(InvalidInput, match="nothing to accept"):
        accepted(stock)
    delete(stock, 8, table=stock.dead_letters)
    assert accepted(stock).rows == 1
    stock.assert_proven()
    assert stock.verified().sum_of("deleted") == 3


def test_rows_that_were_added_or_changed_are_not_accepted(stock: Ledgers) -> None:
    columns = stock.spark.table(f"lake.{stock.table}").columns
    changed = next(name for name in columns if not name.startswith("_"))
    delete(stock, 2)
    stock.spark.sql(f"UPDATE lake.{stock.table} SET {changed} = {changed} + 1 WHERE _kafka_offset IN (3, 4)")
    with pytest.raises(InvalidInput, match="of another engine, added or changed 2 rows"):
        accepted(stock)
    stock.spark.sql(f"INSERT INTO lake.{stock.table} SELECT * FROM lake.{stock.table} WHERE _kafka_offset = 5")
    with pytest.raises(InvalidInput, match="rows-deleted is for missing rows only"):
        accepted(stock)


@pytest.mark.parametrize("step", ["accept.decided", "publish.filled", "publish.committed"])
def test_a_killed_decision_is_made_once(stock: Ledgers, step: str) -> None:
    assert step in ACCEPT_STEPS
    delete(stock, 2)
    with pytest.raises(Crash):
        accepted(stock, crash_at(step))
    if step == "publish.committed":
        with pytest.raises(InvalidInput, match="nothing to accept"):
            accepted(stock)
    else:
        accepted(stock)
    stock.goes_on()
    assert stock.verified().sum_of("deleted") == 1


def test_a_row_that_goes_while_an_operator_decides_is_not_accepted_with_the_others(stock: Ledgers) -> None:
    delete(stock, 2)
    with pytest.raises(Fenced):
        accepted(stock, once("accept.decided", lambda: delete(stock, 3)))
    assert accepted(stock).rows == 2
    stock.assert_proven()


def test_what_an_operators_replay_removes_is_no_commit_of_another_engine(stock: Ledgers) -> None:
    stock.roll_back(1)
    stock.accept(Accepted.ROLLED_BACK_REPLAY)
    stock.start()
    stock.land_with_dead_letters()
    found = stock.verified()
    assert (found.exit_code, found.cautions) == (0, ())
    stock.spark.sql(f"DELETE FROM lake.{stock.dead_letters} WHERE offset = 8")
    (text,) = stock.verified().cautions[:1]
    assert f"{stock.dead_letters}, snapshot" in text
    assert "by spark" in text


# ── Keyed tables ────────────────────────────────────────────────────────────────────────────────
def decided(shop: Shop) -> Acceptance:
    return rows_deleted(shop.pipeline, Lake(shop.lake, Secrets({}).read), "erased", shop.job())


@pytest.mark.e2e
def test_rows_of_an_upsert_table_are_accepted_and_an_exchange_is_not(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    state = State(shop).land("first", range(6))
    shop.sql("DELETE FROM {} WHERE order_id IN (2, 3)")
    state.put(3, "again")
    state.land("new", [7])
    assert [finding.flaw for finding in shop.verified().findings] == ["missing"]
    assert decided(shop).rows == 2
    state.now.pop(2)
    state.check()
    state.put(2, "back")
    state.delete(4)
    state.settle()
    shop.sql("UPDATE {} SET _kafka_key = 'other' WHERE order_id = 5")
    with pytest.raises(InvalidInput, match="rows-deleted is for missing rows only"):
        decided(shop)
    shop.sql("DELETE FROM {} WHERE order_id = 7")
    with pytest.raises(InvalidInput, match="added or changed 1 rows"):
        decided(shop)


@pytest.mark.e2e
def test_rows_of_a_changelog_are_accepted(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format="text")
    State(shop).land("first", range(4))
    shop.sql("DELETE FROM {} WHERE order_id = 2")
    assert json.dumps(decided(shop).rows) == "1"
    found = shop.verified()
    assert (found.exit_code, found.sum_of("deleted")) == (0, 1)


def test_rows_that_pyiceberg_deletes_are_accepted(stock: Ledgers) -> None:
    """It writes the file's other rows again, and their null lists as empty ones."""
    table = Lake(stock.environment, Secrets({}).read).table(stock.table)
    assert table is not None
    table.iceberg.delete("_kafka_offset == 2")
    assert accepted(stock).rows == 1
    stock.assert_proven()


def test_a_changed_value_of_a_renamed_column_is_seen(stock: Ledgers) -> None:
    """In one commit another engine deletes a row, and changes a value of another."""
    named = f"lake.{stock.table}"
    stock.spark.sql(f"ALTER TABLE {named} RENAME COLUMN day TO renamed")
    stock.spark.sql(
        f"MERGE INTO {named} t USING (SELECT explode(array(2, 3)) AS at) s ON t._kafka_offset = s.at "
        "WHEN MATCHED AND s.at = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET renamed = 7"
    )
    with pytest.raises(InvalidInput, match="added or changed 1 rows"):
        accepted(stock)


def test_empty_values_are_null_and_text_that_looks_like_one_stays(spark: SparkSession) -> None:
    kind = "v struct<t: string, l: array<struct<m: map<string, int>>>, s: struct<x: int>>"
    rows = [
        [((None, [], (None,)),), (None,)],
        [(('{"a":{}}', None, None),), (('{"a":{}}', [], (None,)),)],
        [((None, [({},), None], None),), ((None, [(None,), None], (None,)),)],
    ]
    for equal in rows:
        made = spark.createDataFrame(equal, kind)
        assert made.select(filled(made["v"], made.schema["v"].dataType)).distinct().count() == 1
    other = spark.createDataFrame([(('{"a":{}}', None, None),), (('{"b":{}}', None, None),)], kind)
    assert other.select(filled(other["v"], other.schema["v"].dataType).alias("v")).distinct().count() == 2
    empty = spark.createDataFrame([((None, [], (None,)),)], kind)
    assert empty.select(filled(empty["v"], empty.schema["v"].dataType)).first() == (None,)


@pytest.mark.e2e
def test_deleted_dead_letters_of_an_upsert_table_are_said_to_be_missing_without_a_command(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", max_rejected_percent=100, on_error=ErrorMode.DEAD_LETTER)
    State(shop).put(1, "first")
    shop.produce([b"bad"], key=b"2")
    shop.drain()
    shop.spark.sql(f"DELETE FROM lake.{shop.pipeline.table.dead_letters}")
    (note,) = (note for note in shop.verified().notes if "missing" in note)
    assert note.startswith(f"dead letters are missing in table {shop.pipeline.table.dead_letters}: no decision counts")
    with pytest.raises(InvalidInput, match="dead letters are missing"):
        decided(shop)
