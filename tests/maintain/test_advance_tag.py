"""Carrying tags: idle pipelines do not pin what compaction replaced, and their ledger says what it said."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.ledger import entry as ledger
from frazil.lake.stage import empty_commit
from frazil.maintain.compact import compact
from frazil.maintain.expire import carry, expire
from frazil.maintain.lease import Lease
from frazil.maintain.target import Status
from tests.support.committed_table import Stock
from tests.support.jobs import job

pytestmark = pytest.mark.spark


def idle(stock: Stock) -> None:
    """Compacted, and others committed so often that the pipeline's own commit is beyond the retention."""
    stock.land(3)
    compact(stock.maintenance(), stock.main, Lease())
    others(stock)


def others(stock: Stock) -> None:
    for number in range(6):
        stock.iceberg.load(stock.table).newAppend().set("other", str(number)).commit()


def test_an_idle_pipeline_does_not_pin_replaced_files(stock: Stock) -> None:
    idle(stock)
    expire(stock.maintenance(), stock.main)
    assert len(stock.files("data")) == 4
    before = dict(stock.summary())
    outcome = carry(stock.maintenance(), stock.main)
    assert (outcome.ended, outcome.snapshots) == (Status.DONE, 1)
    expire(stock.maintenance(), stock.main)
    assert stock.files("data") == stock.live_files()
    after = stock.summary()
    same = (ledger.END, ledger.TOTALS, ledger.VALID_THROUGH, ledger.SCHEMA_IDS, ledger.PIPELINE)
    assert [after[key] for key in same] == [before[key] for key in same]
    stock.assert_nothing_changed()


def test_the_offsets_of_a_decision_are_carried(stock: Stock) -> None:
    stock.land(1)
    windows = {name: stock.offsets(1000) for name in ledger.WINDOWS}
    commit(
        job(stock.iceberg),
        empty_commit(stock.iceberg, stock.table, at=time.time()),
        replace(stock.batch(0), windows=windows),
    )
    others(stock)
    assert carry(stock.maintenance(), stock.main).snapshots == 1
    assert {name: stock.summary().get(name) for name in windows} == {name: str(ends) for name, ends in windows.items()}


@pytest.mark.long
def test_the_pipeline_goes_on_after_its_tag_was_carried(stock: Stock) -> None:
    idle(stock)
    carry(stock.maintenance(), stock.main)
    stock.land(2)
    stock.assert_nothing_changed()


@pytest.mark.long
def test_a_batch_that_lands_meanwhile_wins(stock: Stock) -> None:
    idle(stock)

    def ingest(step: str) -> None:
        if step == "publish.filled" and stock.at == 30:
            stock.land(1)

    assert carry(stock.maintenance(failpoint=ingest), stock.main).ended is Status.CONFLICT
    stock.assert_nothing_changed()


def test_an_open_decision_is_not_carried_away(stock: Stock) -> None:
    def crash(step: str) -> None:
        if step == "decide.decided":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        stock.land_with_dead_letters(failpoint=crash)
    others(stock)
    outcome = carry(stock.maintenance(), stock.main)
    assert outcome.snapshots == 0
    assert "a decision on dead letters is open" in outcome.why
    assert ledger.SIDE in stock.summary()


@pytest.mark.long
def test_a_decision_that_is_made_meanwhile_stays_the_newest(stock: Stock) -> None:
    idle(stock)

    def decide(step: str) -> None:
        if step == "carry.decided":
            event = replace(stock.batch(0), accepted='{"event":"rejected-share"}')
            commit(job(stock.iceberg), empty_commit(stock.iceberg, stock.table, at=time.time()), event)

    assert carry(stock.maintenance(failpoint=decide), stock.main).ended is Status.CONFLICT
    assert ledger.EVENTS in stock.summary()


def test_the_dead_letters_tag_is_carried_with_the_decision_it_finished(stock: Stock) -> None:
    stock.land_with_dead_letters()
    for number in range(6):
        stock.iceberg.load(stock.dead_letters).newAppend().set("other", str(number)).commit()
    decided = stock.summary()[ledger.COMMIT_ID]
    assert carry(stock.maintenance(), stock.side).snapshots == 1
    history = stock.history(stock.dead_letters)
    assert history.head is not None
    assert history.head.summary[ledger.COMMIT_ID] == decided
    proof = stock.verified()
    assert proof.outcome == "proven", proof.findings


def test_a_dry_run_tells_and_changes_nothing(stock: Stock) -> None:
    idle(stock)
    before = stock.metadata()
    assert carry(stock.maintenance(dry_run=True), stock.main).ended is Status.DRY_RUN
    assert stock.metadata() == before
