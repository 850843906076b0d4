"""Trimming: metadata stays small, the ledger and every data file stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from frazil.declaration import Keep
from frazil.declaration.environment import Environment
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.ledger import entry as ledger
from frazil.lake.metadata_expiry import EVERY, Trimmed, due, finished_decisions, trim
from frazil.lake.snapshot_retention import History, Past
from frazil.maintain.compact import compact
from frazil.maintain.expire import expire
from frazil.maintain.lease import Lease
from tests.support.committed_table import Stock


@pytest.fixture
def stock(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str) -> Stock:
    return Stock(spark, iceberg, lake_environment, name, snapshots=Keep(10))


def trimmed(stock: Stock, *, keep: int = 10, at_least: int = 1) -> Trimmed:
    now = round(time.time() * 1000) + 1000
    return trim(stock.iceberg, stock.table, keep=keep, now_ms=now, at_least=at_least)


@pytest.mark.long
@pytest.mark.spark
def test_after_many_commits_metadata_is_small_and_every_data_file_exists(stock: Stock) -> None:
    seen: list[Trimmed] = []

    def every(number: int) -> None:
        if due(number):
            seen.append(trimmed(stock, at_least=EVERY - 15))

    stock.land(120, rows=3, after=every)
    assert [(t.snapshots, t.gave_up) for t in seen] == [(41, None), (50, None)]
    assert len(stock.history().snapshots) == 10 + 20
    lists = {file for file in stock.files("metadata") if Path(file).name.startswith("snap-")}
    assert len(lists) == 30
    assert len(stock.files("data")) == 120
    assert stock.live_files() == stock.files("data")
    stock.assert_nothing_changed()
    proof = stock.verified(deep=True)
    assert proof.outcome == "proven", proof.findings


@pytest.mark.spark
def test_little_is_left_until_it_is_worth_a_commit(stock: Stock) -> None:
    stock.land(14)
    before = stock.metadata()
    assert trimmed(stock, at_least=6) == Trimmed()
    assert stock.metadata() == before


@pytest.mark.long
@pytest.mark.spark
def test_files_that_compaction_replaced_are_left_for_maintenance_to_delete(stock: Stock) -> None:
    stock.land(4)
    compact(stock.maintenance(), stock.main, Lease())
    stock.land(12)
    assert trimmed(stock).snapshots > 0
    assert len(stock.files("data")) == 4 + 1 + 12
    outcome = expire(stock.maintenance(), stock.main)
    assert outcome.files_removed == 4
    assert stock.files("data") == stock.live_files()
    stock.assert_nothing_changed()


@pytest.mark.long
@pytest.mark.spark
def test_a_decision_that_a_dead_driver_left_behind_goes_with_its_snapshot(stock: Stock) -> None:
    def crash(step: str) -> None:
        if step == "finish.finished":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        stock.land_with_dead_letters(failpoint=crash)
    stock.at += 10
    decision = Path(urlsplit(stock.summary()[ledger.SIDE]).path)
    assert trimmed(stock) == Trimmed()
    stock.land(12)
    assert decision.exists()
    trimmed(stock)
    assert not decision.exists()
    proof = stock.verified()
    assert proof.outcome == "proven", proof.findings


@pytest.mark.long
@pytest.mark.spark
def test_a_refusal_is_told_and_not_thrown(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    stock.land(12)
    real: Callable[[str], object] = stock.iceberg.load

    def moved(table: str) -> object:
        """Somebody tags what is about to go, once the choice is made."""
        loaded = real(table)
        oldest = stock.iceberg.metadata(loaded)["snapshots"][0]["snapshot-id"]
        real(table).manageSnapshots().createTag("audit", oldest).commit()  # type: ignore[attr-defined]
        return loaded

    monkeypatch.setattr(stock.iceberg, "load", moved)
    found = trimmed(stock)
    assert found.snapshots == 0
    assert found.gave_up is not None
    assert "audit" in found.gave_up
    monkeypatch.undo()
    stock.assert_nothing_changed()


@pytest.mark.spark
def test_a_table_that_is_not_there_needs_no_trimming(iceberg: Iceberg, name: str) -> None:
    assert trim(iceberg, f"stock.{name}", keep=1, now_ms=0) == Trimmed()


def test_a_decision_that_a_kept_snapshot_names_too_is_not_removed() -> None:
    snapshots = tuple(
        Past(id=n, sequence=n, at_ms=n, summary={ledger.SIDE: location})
        for n, location in ((1, "a"), (2, "b"), (3, "b"))
    )
    assert finished_decisions(History(snapshots, {}, 3), (1, 2)) == ("a",)
