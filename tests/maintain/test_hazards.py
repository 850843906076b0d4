"""Upkeep all the while a pipeline lands real records: none is lost, none is doubled, the proof holds."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Keep, Limits
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.read.stored_tables import Lake
from frazil.maintain.run import maintain
from frazil.maintain.target import MaintenanceRun
from tests.support.committed_table import EAGER
from tests.support.jobs import job
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
Upkeep = Callable[[Shop, Iceberg, Counter[str]], None]


def icebergs_own(shop: Shop, iceberg: Iceberg, done: Counter[str]) -> None:
    """Compaction, and an expirer that keeps one snapshot: Iceberg's procedures, as anybody may run them."""
    for table in (shop.pipeline.table.identifier, shop.pipeline.table.dead_letters):
        for procedure, more in (
            ("rewrite_data_files", "options => map('min-input-files', '2')"),
            ("expire_snapshots", "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"),
        ):
            try:
                (row,) = shop.spark.sql(f"CALL lake.system.{procedure}(table => '{table}', {more})").collect()
            except (Py4JJavaError, PySparkException):
                done["refused"] += 1  # a table that is not there yet, or a conflict that the ingest won
            else:
                done[procedure] += row[0] > 0


def ours(shop: Shop, iceberg: Iceberg, done: Counter[str]) -> None:
    """A maintainer without grace."""
    late = job(iceberg, clock=lambda: time.time() + 1, wait=time.sleep)
    run = MaintenanceRun(late, EAGER)
    for outcome in maintain([shop.pipeline], run, lambda line: None, orphans=False)[shop.pipeline.name]:
        done[outcome.ended] += 1
        if outcome.ended == "failed":
            done[f"{outcome.action}: {outcome.why}"] += 1
        done["rewrite_data_files"] += outcome.action == "compact" and outcome.files_removed > 0
        done["expire_snapshots"] += outcome.action == "expire" and outcome.files_removed > 0


@pytest.mark.long
@pytest.mark.parametrize(("upkeep", "orders"), [(icebergs_own, 250), (ours, 250), (ours, 60)])
def test_upkeep_all_the_while_loses_and_doubles_nothing(
    shop_of: Callable[..., Shop], iceberg: Iceberg, upkeep: Upkeep, orders: int
) -> None:
    shop = shop_of(limits=Limits(first_rows=50, max_rows=50), table={"snapshots": Keep(1)})
    schema_id, ended, done = shop.register(), threading.Event(), Counter[str]()

    def all_the_while() -> int:
        rounds = 0
        while not ended.is_set():
            upkeep(shop, iceberg, done)
            rounds += 1
        return rounds

    landed = 0
    with ThreadPoolExecutor(1, thread_name_prefix="upkeep") as pool:
        worker = pool.submit(all_the_while)
        try:
            for part in range(3):
                values = [*shop.orders(orders, schema_id, first=part * orders), *[b"bad!!"] * 10]
                shop.produce(values)
                total = shop.drain(wait=time.sleep)
                assert not total.fenced, shop.seen("fenced")
                landed += total.read
        finally:
            ended.set()
        assert worker.result(120) > 1
    assert landed == 3 * (orders + 10)
    upkeep(shop, iceberg, done)  # once more at rest
    assert done["rewrite_data_files"] > 0, done
    assert done["expire_snapshots"] > 0, done
    assert done["failed"] == 0, "\n".join(map(str, done.items()))
    shop.assert_each_record_once()
    proof = verify(shop.pipeline, Lake(shop.environment, Secrets({}).read))
    assert proof.outcome == "proven", proof.findings
    assert sum(one.read for one in proof.partitions) == 3 * (orders + 10)
    assert sum(one.dead_lettered for one in proof.partitions) == 30
