"""A table that was rolled back by hand waits for an operator: maintenance neither works at it nor hides the rollback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from frazil.declaration import Keep
from frazil.errors import RolledBack
from frazil.ingest.setup.table_setup import read_ledger
from frazil.maintain.compact import compact
from frazil.maintain.expire import carry, expire
from frazil.maintain.lease import Lease
from frazil.maintain.run import maintain
from tests.support.committed_table import Stock

pytestmark = pytest.mark.spark


def lines(stock: Stock, **overrides: Any) -> list[Mapping[str, Any]]:
    told: list[Mapping[str, Any]] = []
    maintain([stock.pipeline], stock.maintenance(**overrides), told.append, orphans=True)
    return told


def roll_back(stock: Stock, commits: int, table: str = "") -> None:
    target = stock.history(table).snapshots[-1 - commits].id
    stock.iceberg.load(table or stock.table).manageSnapshots().rollbackTo(target).commit()


@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_done_while_a_table_is_rolled_back(stock: Stock, dry_run: bool) -> None:
    stock.land(10)
    stock.land_with_dead_letters()
    roll_back(stock, 6)
    before = [stock.metadata(table) for table in (stock.table, stock.dead_letters)]
    told = lines(stock, dry_run=dry_run)
    assert [(t["table"], t["ended"]) for t in told] == [
        (stock.table, "decision_required"),
        (stock.dead_letters, "decision_required"),
    ]
    assert f"frazil accept {stock.pipeline.name} rolled-back-replay" in told[0]["why"]
    assert [stock.metadata(table) for table in (stock.table, stock.dead_letters)] == before
    with pytest.raises(RolledBack):
        read_ledger(stock.iceberg, stock.pipeline)


def test_nothing_is_done_while_the_dead_letters_are_rolled_back(stock: Stock) -> None:
    stock.land_with_dead_letters(2)
    roll_back(stock, 1, stock.dead_letters)
    assert {t["ended"] for t in lines(stock)} == {"decision_required"}


def test_a_rollback_in_the_midst_of_maintenance_stops_it(stock: Stock) -> None:
    stock.land(10)

    def operator(step: str) -> None:
        if step == "compact.committed":
            roll_back(stock, 6)

    assert [t["ended"] for t in lines(stock, failpoint=operator)] == ["done", *["decision_required"] * 1]
    with pytest.raises(RolledBack):
        read_ledger(stock.iceberg, stock.pipeline)


@pytest.mark.long
def test_each_action_by_itself_leaves_a_rollback_to_be_seen(stock: Stock) -> None:
    stock.land(10)
    roll_back(stock, 6)
    compact(stock.maintenance(), stock.main, Lease())
    carry(stock.maintenance(), stock.main)
    assert expire(stock.maintenance(), stock.main).snapshots == 0
    with pytest.raises(RolledBack):
        read_ledger(stock.iceberg, stock.pipeline)


def expired_between(stock: Stock) -> None:
    """Two commits of another tool after the pipeline's last, and the first of them expired."""
    for number in range(2):
        stock.iceberg.load(stock.table).newAppend().set("other", str(number)).commit()
    between = stock.history().snapshots[-2].id
    stock.iceberg.load(stock.table).expireSnapshots().expireSnapshotId(between).commit()


def test_snapshots_that_another_tool_expired_are_no_rollback(stock: Stock) -> None:
    stock.land(3)
    expired_between(stock)
    stock.land(1)
    stock.assert_nothing_changed()


@pytest.mark.long
def test_maintenance_moves_the_tag_over_snapshots_that_another_tool_expired(stock: Stock) -> None:
    stock.land(3)
    expired_between(stock)
    lines(stock)
    history = stock.history()
    assert history.ledger is not None
    assert history.ledger.id == history.head_id
    stock.assert_nothing_changed()


def test_where_no_metadata_file_tells_what_was_between_an_operator_decides(stock: Stock) -> None:
    stock.land(3)
    expired_between(stock)
    for number in range(21):  # more than the table keeps older metadata files
        stock.iceberg.load(stock.table).updateProperties().set("other", str(number)).commit()
    with pytest.raises(RolledBack, match="another tool expired"):
        read_ledger(stock.iceberg, stock.pipeline)


def test_a_table_that_was_replaced_under_its_tag_is_rolled_back(stock: Stock) -> None:
    stock.land(3)
    stock.spark.sql(
        f"CREATE OR REPLACE TABLE lake.{stock.table} USING iceberg AS SELECT * FROM lake.{stock.table} LIMIT 1"
    )
    with pytest.raises(RolledBack):
        read_ledger(stock.iceberg, stock.pipeline)


@pytest.mark.long
def test_a_ledger_without_its_tag_is_not_expired(stock_of: Callable[..., Stock]) -> None:
    stock = stock_of(snapshots=Keep(1))
    stock.land(3)
    stock.iceberg.load(stock.table).manageSnapshots().removeTag(f"frazil_{stock.pipeline.name}").commit()
    for number in range(3):
        stock.iceberg.load(stock.table).newAppend().set("other", str(number)).commit()
    expire(stock.maintenance(), stock.main)
    found = read_ledger(stock.iceberg, stock.pipeline)
    assert found is not None
    assert found.end == stock.offsets(stock.at)
