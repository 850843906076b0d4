"""Expiry: to the declared retention, the ledger kept, no file that something still refers to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from frazil.declaration import Keep
from frazil.maintain.compact import compact
from frazil.maintain.expire import carry, expire
from frazil.maintain.lease import Lease
from frazil.maintain.target import Status
from tests.support.committed_table import EAGER, Stock

pytestmark = pytest.mark.spark


def test_the_newest_snapshots_stay_and_replaced_files_are_deleted(stock: Stock) -> None:
    stock.land(6)
    small = stock.live_files()
    compact(stock.maintenance(), stock.main, Lease())
    assert expire(stock.maintenance(), stock.main).files_removed == 0
    assert small <= stock.files("data"), "kept snapshots have them"
    stock.land(5)
    outcome = expire(stock.maintenance(), stock.main)
    assert (outcome.ended, outcome.snapshots, outcome.files_removed) == (Status.DONE, 5, 6)
    assert len(stock.history().snapshots) == 5
    assert stock.files("data") == stock.live_files()
    assert not stock.files("data") & small
    stock.assert_nothing_changed()


def test_young_snapshots_stay_whatever_is_declared(stock: Stock) -> None:
    stock.land(8)
    outcome = expire(stock.maintenance(policy=replace(EAGER, grace_seconds=3600)), stock.main)
    assert outcome.snapshots == 0


def test_declared_days_keep_more_than_the_declared_number(stock_of: Callable[..., Stock]) -> None:
    stock = stock_of(snapshots=Keep(1, days=1))
    stock.land(3)
    assert expire(stock.maintenance(), stock.main).snapshots == 0


@pytest.mark.long
def test_the_ledger_stays_behind_many_commits_of_others(stock: Stock) -> None:
    stock.land(1)
    for number in range(7):
        stock.iceberg.load(stock.table).newAppend().set("other", str(number)).commit()
    expire(stock.maintenance(), stock.main)
    assert len(stock.history().snapshots) == 8  # what is newer than the ledger shows that nothing was rolled back
    carry(stock.maintenance(), stock.main)
    expire(stock.maintenance(), stock.main)
    assert len(stock.history().snapshots) == 5
    stock.assert_nothing_changed()


@pytest.mark.long
def test_a_batch_that_lands_meanwhile_is_kept(stock: Stock) -> None:
    stock.land(8)

    def ingest(step: str) -> None:
        if step == "expire.decided":
            stock.land(1)

    assert expire(stock.maintenance(failpoint=ingest), stock.main).ended is Status.DONE
    stock.assert_nothing_changed()


@pytest.mark.long
def test_a_snapshot_that_somebody_tags_meanwhile_is_a_conflict_and_stays(stock: Stock) -> None:
    stock.land(8)
    oldest = stock.history().snapshots[0].id

    def tag(step: str) -> None:
        if step == "expire.decided":
            stock.iceberg.load(stock.table).manageSnapshots().createTag("audit", oldest).commit()

    outcome = expire(stock.maintenance(failpoint=tag), stock.main)
    assert (outcome.ended, outcome.snapshots, outcome.files_removed) == (Status.CONFLICT, 0, 0)
    assert "audit" in outcome.why
    assert stock.history().snapshots[0].id == oldest
    stock.assert_nothing_changed()
