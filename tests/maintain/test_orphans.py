"""Orphans: only what nothing refers to, only what is old, and never what an open decision names."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from frazil.errors import FrazilError, InvalidInput
from frazil.lake.commit.dead_letters.decide import finish_open
from frazil.lake.data_location import DATA_LOCATION
from frazil.lake.ledger import entry as ledger
from frazil.maintain.orphans import orphans
from frazil.maintain.target import Policy, Status
from tests.support.committed_table import Stock
from tests.support.jobs import job

pytestmark = pytest.mark.spark
OLD = time.time() - 4 * 86_400


def age(stock: Stock, table: str = "") -> None:
    """Make all files of a table old."""
    for folder in ("data", "metadata"):
        for file in stock.files(folder, table):
            os.utime(file, (OLD, OLD))


def paths(stock: Stock) -> set[str]:
    return stock.files("data") | stock.files("metadata")


def test_a_staged_batch_that_nobody_published_goes_after_days(stock: Stock) -> None:
    stock.land(2)
    stock.staged(1, 10)
    stray = stock.files("data") - stock.live_files()
    age(stock)
    outcome = orphans(stock.maintenance(policy=Policy()), stock.main, remove=True)
    assert (outcome.ended, outcome.files_removed) == (Status.DONE, 1)
    assert outcome.bytes_removed > 0
    assert len(stray) == 1
    assert not paths(stock) & stray
    stock.assert_nothing_changed()


@pytest.mark.long
def test_orphans_of_a_data_folder_of_its_own_go_and_of_no_other_table(
    spark: SparkSession, stock_of: Callable[..., Stock], tmp_path: Path
) -> None:
    option = f"spark.sql.catalog.lake.{DATA_LOCATION}"
    spark.conf.set(option, tmp_path.as_uri())
    try:
        stock = stock_of(format_version=3)
    finally:
        spark.conf.unset(option)
    stock.land(2)
    stock.staged(1, 10)
    (folder,) = (tmp_path / "stock").iterdir()
    strange = folder.with_name(f"{folder.name}-other") / "a.parquet"
    strange.parent.mkdir()
    strange.touch()
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        os.utime(file, (OLD, OLD))
    before = set(folder.rglob("*.parquet"))
    outcome = orphans(stock.maintenance(policy=Policy()), stock.main, remove=True)
    assert (outcome.ended, outcome.files_removed) == (Status.DONE, 1)
    assert len(before - set(folder.rglob("*.parquet"))) == 1
    assert strange.exists()
    stock.assert_nothing_changed()


@pytest.mark.long
def test_young_files_stay(stock: Stock) -> None:
    stock.land(1)
    stock.staged(1, 10)
    assert orphans(stock.maintenance(policy=Policy()), stock.main, remove=True).files_removed == 0
    assert len(stock.files("data")) == 2


@pytest.mark.long
def test_files_may_come_and_go_while_it_lists(stock: Stock) -> None:
    stock.land(1)
    folder, ended = Path(next(iter(stock.files("metadata")))).parent, threading.Event()

    def churn() -> int:
        rounds = 0
        while not ended.is_set():
            made = [folder / f"passing-{rounds}-{i}.avro" for i in range(500)]
            for file in made:
                file.touch()
            for file in made:
                file.unlink()
            rounds += 1
        return rounds

    with ThreadPoolExecutor(1) as pool:
        churning = pool.submit(churn)
        try:
            told = [orphans(stock.maintenance(policy=Policy()), stock.main, remove=False) for _ in range(2)]
        finally:
            ended.set()
        assert churning.result() > 0
    assert [outcome.files_removed for outcome in told] == [0, 0]


def test_files_of_a_renamed_table_are_no_orphans_of_its_successor(stock: Stock, stock_of: Callable[..., Stock]) -> None:
    """The renamed table keeps its location, and the new table of its name gets the same."""
    stock.land(2)
    renamed = f"{stock.table}_before"
    before = paths(stock)
    stock.spark.sql(f"ALTER TABLE lake.{stock.table} RENAME TO {renamed}")
    successor = stock_of()
    successor.land(1)
    age(successor)
    told = orphans(successor.maintenance(policy=Policy()), successor.main, remove=False)
    assert (told.ended, told.files_removed) == (Status.DRY_RUN, 0)
    assert "is metadata of table" in told.why
    with pytest.raises(InvalidInput, match="whose files are no orphans as long as it exists"):
        orphans(successor.maintenance(policy=Policy()), successor.main, remove=True)
    assert before <= paths(successor)
    assert stock.spark.table(f"lake.{renamed}").count() == 20


@pytest.mark.long
def test_files_of_a_dropped_table_are_orphans_once_its_metadata_is_gone(
    stock: Stock, stock_of: Callable[..., Stock]
) -> None:
    stock.land(1)
    left = paths(stock)
    stock.iceberg.drop(stock.table, purge=False)
    successor = stock_of()
    successor.land(1)
    age(successor)
    for file in left:
        if file.endswith(".metadata.json"):
            Path(urlsplit(file).path).unlink()
    done = orphans(successor.maintenance(policy=Policy()), successor.main, remove=True)
    assert done.ended is Status.DONE
    assert done.files_removed >= 1
    successor.assert_nothing_changed()


def test_less_than_three_days_is_refused(stock: Stock) -> None:
    stock.land(1)
    stock.staged(1, 10)
    age(stock)
    with pytest.raises(FrazilError, match="at least 3 days"):
        orphans(stock.maintenance(policy=Policy(orphan_seconds=3 * 86_400 - 1)), stock.main, remove=True)
    assert len(stock.files("data")) == 2


@pytest.mark.long
@pytest.mark.parametrize("dry_run", [False, True])
def test_they_are_only_told_unless_removal_is_asked_for_and_in_a_dry_run(stock: Stock, dry_run: bool) -> None:
    stock.land(1)
    stock.staged(1, 10)
    age(stock)
    before = paths(stock)
    outcome = orphans(stock.maintenance(policy=Policy(), dry_run=dry_run), stock.main, remove=dry_run)
    assert (outcome.ended, outcome.files_removed) == (Status.DRY_RUN, 1)
    assert outcome.why.endswith(".parquet")
    assert paths(stock) == before


@pytest.mark.long
def test_many_orphans_are_never_held_all_at_once(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    stock.land(1)
    folder, most = Path(next(iter(stock.files("data")))).parent, 0

    def found(*_: object, **__: object) -> Iterator[str]:
        nonlocal most
        for number in range(1_000):
            (folder / f"stray-{number:04}.parquet").write_bytes(b"12")
            most = max(most, len(list(folder.glob("stray-*"))))
            yield f"file:{folder}/stray-{number:04}.parquet"

    monkeypatch.setattr("frazil.maintain.orphans._unreferred", found)
    outcome = orphans(stock.maintenance(policy=Policy()), stock.main, remove=True)
    assert (outcome.files_removed, outcome.bytes_removed, most) == (1_000, 2_000, 1)
    assert outcome.why.count("stray-000") == 5
    assert outcome.why.endswith(", …")


@pytest.mark.long
def test_more_orphans_than_one_batch_of_rows_are_all_deleted(stock: Stock) -> None:
    stock.land(1)
    folder = Path(next(iter(stock.files("data")))).parent
    for number in range(2_500):
        file = folder / f"stray-{number:04}.parquet"
        file.touch()
        os.utime(file, (OLD, OLD))
    assert orphans(stock.maintenance(policy=Policy()), stock.main, remove=True).files_removed == 2_500
    assert len(stock.files("data")) == 1


def leave_open(stock: Stock) -> None:
    """Land dead letters with a decision that the driver does not finish."""

    def crash(step: str) -> None:
        if step == "decide.decided":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        stock.land_with_dead_letters(failpoint=crash)


def test_what_an_open_decision_names_stays_at_both_tables(stock: Stock) -> None:
    leave_open(stock)
    decision = Path(urlsplit(stock.summary()[ledger.SIDE]).path)
    named = stock.files("data", stock.dead_letters)
    assert named
    age(stock)
    age(stock, stock.dead_letters)
    stock.iceberg.load(stock.dead_letters).newAppend().commit()  # else it has no snapshot at all
    age(stock, stock.dead_letters)
    for kept in (stock.main, stock.side):
        outcome = orphans(stock.maintenance(policy=Policy()), kept, remove=True)
        assert (outcome.files_removed, outcome.left) == (0, {"named_by_open_decision": 1})
    assert decision.exists()
    assert stock.files("data", stock.dead_letters) == named
    finish_open(job(stock.iceberg), stock.table, stock.dead_letters, stock.pipeline.name)
    proof = stock.verified()
    assert proof.outcome == "proven", proof.findings
    assert [(p.landed, p.dead_lettered) for p in proof.partitions] == [(8, 2)]


def test_what_a_decision_named_that_is_finished_meanwhile_stays(stock: Stock) -> None:
    """The listing saw its files where nothing refers to them yet."""
    leave_open(stock)
    named = stock.files("data", stock.dead_letters)
    stock.iceberg.load(stock.dead_letters).newAppend().commit()
    age(stock, stock.dead_letters)

    def finish(step: str) -> None:
        if step == "orphans.listed":
            finish_open(job(stock.iceberg), stock.table, stock.dead_letters, stock.pipeline.name)

    assert orphans(stock.maintenance(policy=Policy(), failpoint=finish), stock.side, remove=True).files_removed == 0
    assert named
    assert stock.files("data", stock.dead_letters) == named
    assert stock.verified().outcome == "proven"


def test_an_open_decision_that_cannot_be_read_stops_the_removal(stock: Stock) -> None:
    leave_open(stock)
    Path(urlsplit(stock.summary()[ledger.SIDE]).path).unlink()
    age(stock, stock.dead_letters)
    with pytest.raises(FrazilError, match="cannot be read"):
        orphans(stock.maintenance(policy=Policy()), stock.side, remove=True)
    assert stock.files("data", stock.dead_letters)
