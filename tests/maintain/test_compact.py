"""Compaction: fewer files, the same rows, the same offsets."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from frazil.declaration import Pipeline, Table, Topic, Upsert
from frazil.declaration.environment import Environment
from frazil.errors import RowsWouldChange
from frazil.lake import rewrite
from frazil.lake.delete_files import live_rows
from frazil.lake.iceberg_java import Iceberg
from frazil.maintain.compact import compact
from frazil.maintain.lease import Lease
from frazil.maintain.target import MaintenanceRun, Status, Target
from tests.support import oracle
from tests.support.committed_table import EAGER, Stock
from tests.support.jobs import job
from tests.support.keyed_table import KeyedTable

pytestmark = pytest.mark.spark


def test_properties_of_other_engines_change_neither_size_nor_format(stock: Stock) -> None:
    stock.land(6)
    update = stock.iceberg.load(stock.table).updateProperties().set("write.target-file-size-bytes", "1")
    update.set("write.format.default", "orc").set("write.distribution-mode", "range").commit()
    outcome = compact(stock.maintenance(), stock.main, Lease())
    assert outcome.files_added == 1, outcome
    (file,) = oracle.table(stock.environment, stock.table).inspect.files()["file_path"].to_pylist()
    assert file.endswith(".parquet")


def test_small_files_become_one_with_the_same_rows_and_offsets_once(stock: Stock) -> None:
    stock.land(6)
    before = dict(stock.summary())
    outcome = compact(stock.maintenance(), stock.main, Lease())
    assert (outcome.ended, outcome.files_removed, outcome.files_added, outcome.rows) == (Status.DONE, 6, 1, 60)
    assert stock.summary() == before
    (file,) = oracle.table(stock.environment, stock.table).inspect.files().to_pylist()
    bounds = file["readable_metrics"]["_kafka_offset"]
    assert (bounds["lower_bound"], bounds["upper_bound"]) == (0, 59)
    loaded = stock.iceberg.load(stock.table)
    assert stock.iceberg.table_cache().size() == 0
    assert stock.iceberg.coordinator().fetchSetIds(loaded).isEmpty()
    assert stock.iceberg.task_sets().fetchSetIds(loaded).isEmpty()
    head = stock.history().head_id
    again = compact(stock.maintenance(), stock.main, Lease())
    assert (again.files_removed, again.snapshots, stock.history().head_id) == (0, 0, head)
    stock.assert_nothing_changed()


def test_a_partition_that_is_still_written_is_left(stock: Stock) -> None:
    stock.land(3)
    outcome = compact(stock.maintenance(policy=replace(EAGER, closed_seconds=3600)), stock.main, Lease())
    assert (outcome.files_removed, outcome.left) == (0, {"open": 1})
    assert len(stock.live_files()) == 3


def test_many_small_files_are_compacted_though_their_partition_is_open(stock: Stock) -> None:
    stock.land(3)
    policy = replace(EAGER, closed_seconds=3600, many_files=3)
    assert compact(stock.maintenance(policy=policy), stock.main, Lease()).files_removed == 3
    stock.assert_nothing_changed()


@pytest.mark.long
def test_each_partition_keeps_its_own_files(stock_of: Callable[..., Stock]) -> None:
    stock = stock_of(partition_by=("bucket(2, order_id)",))
    stock.land(1, rows=40)
    stock.land(1, rows=40)
    outcome = compact(stock.maintenance(policy=replace(EAGER, groups_a_commit=1)), stock.main, Lease())
    assert (outcome.files_removed, outcome.files_added, outcome.snapshots) == (4, 2, 2)
    stock.assert_nothing_changed()


def test_rows_keep_the_declared_order_within_files(stock_of: Callable[..., Stock]) -> None:
    stock = stock_of(sort_by=("order_id desc",))
    stock.land(3)
    compact(stock.maintenance(), stock.main, Lease())
    (file,) = stock.live_files()
    assert pq.read_table(file)["order_id"].to_pylist() == list(range(29, -1, -1))
    stock.assert_nothing_changed()


@pytest.mark.long
def test_verify_reads_compacted_files_whose_offsets_have_holes(stock: Stock) -> None:
    stock.land_with_dead_letters(2)
    stock.land(1)
    compact(stock.maintenance(), stock.main, Lease())
    compact(stock.maintenance(), stock.side, Lease())
    proof = stock.verified()
    assert proof.outcome == "proven", proof.findings
    assert [(p.read, p.landed, p.dead_lettered) for p in proof.partitions] == [(30, 26, 4)]
    assert [(r.files_by_scan, r.rows_by_scan) for r in proof.reads] == [(1, 26), (1, 4)]


def test_a_batch_that_lands_meanwhile_is_no_conflict(stock: Stock) -> None:
    stock.land(3)

    def ingest(step: str) -> None:
        if step == "compact.rewritten":
            stock.land(1)

    outcome = compact(stock.maintenance(failpoint=ingest), stock.main, Lease())
    assert (outcome.ended, outcome.files_removed) == (Status.DONE, 3)
    assert len(stock.live_files()) == 2
    stock.assert_nothing_changed()


@pytest.mark.long
def test_a_rewrite_that_another_one_overtook_is_given_up_and_cleaned_up(stock: Stock) -> None:
    stock.land(3)

    def overtake(step: str) -> None:
        if step == "compact.rewritten":
            compact(stock.maintenance(), stock.main, Lease())

    outcome = compact(stock.maintenance(failpoint=overtake), stock.main, Lease())
    assert (outcome.ended, outcome.files_removed, outcome.snapshots) == (Status.CONFLICT, 0, 0)
    assert len(stock.files("data")) == 4  # three small ones, and the winner's
    stock.assert_nothing_changed()


def test_other_rows_than_before_are_refused_and_not_committed(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    stock.land(3)
    head, real = stock.history().head_id, rewrite.rewrite

    def lossy(*arguments: Any, **options: Any) -> rewrite.Rewritten:
        return replace(real(*arguments, **options), rows=29)

    monkeypatch.setattr(rewrite, "rewrite", lossy)
    with pytest.raises(
        RowsWouldChange, match="hold 30 rows by their manifests and deletes, what was written for them holds 29"
    ):
        compact(stock.maintenance(), stock.main, Lease())
    assert stock.history().head_id == head
    assert stock.files("data") == stock.live_files()


@pytest.mark.long
def test_rows_are_counted_exactly_though_the_deletes_are_large(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delete file of version 2 may name rows of other files; that of a state does."""
    table = KeyedTable(spark, iceberg, lake_environment, f"compact.{name}").create()
    table.apply(dict.fromkeys(range(20), (1, "first")))
    table.apply(dict.fromkeys(range(0, 20, 3), (1, "second")))
    table.apply(dict.fromkeys(range(0, 20, 4)))
    pipeline = Pipeline(topic=Topic("orders", value="avro"), table=Table(table.name), write=Upsert(), name="p")
    run = MaintenanceRun(job(iceberg, clock=lambda: time.time() + 1), EAGER)
    target, real = Target(pipeline, is_dead_letter_table=False), rewrite.rewrite
    monkeypatch.setattr(live_rows, "BYTES_AT_MOST", 10)

    def lossy(*arguments: Any, **options: Any) -> rewrite.Rewritten:
        written = real(*arguments, **options)
        return replace(written, rows=written.rows + 1)

    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "rewrite", lossy)
        with pytest.raises(RowsWouldChange, match=f"hold {len(table.state)} rows by their manifests and deletes"):
            compact(run, target, Lease())
    table.check()
    outcome = compact(run, target, Lease())
    assert (outcome.ended, outcome.rows) == (Status.DONE, len(table.state))
    table.check()


def test_rows_that_another_engine_deleted_are_left_to_it(stock: Stock) -> None:
    stock.land(2)
    stock.spark.sql(f"ALTER TABLE lake.{stock.table} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    stock.spark.sql(f"DELETE FROM lake.{stock.table} WHERE order_id = 3")
    outcome = compact(stock.maintenance(), stock.main, Lease())
    assert (outcome.files_removed, outcome.left) == (0, {"deletes": 1})
