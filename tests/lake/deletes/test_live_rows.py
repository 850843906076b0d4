"""The rows that a rewrite must have, by the delete files."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.lake.deletes import live_rows as counted
from frazil.lake.deletes.live_rows import live_rows
from frazil.lake.iceberg_java import Iceberg
from tests.support.keyed_table import KeyedTable
from tests.support.variants import first_short

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", first_short([2, 3]))
def test_live_rows_are_counted_exactly(
    spark: SparkSession,
    iceberg: Iceberg,
    lake_environment: Environment,
    name: str,
    version: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = KeyedTable(spark, iceberg, lake_environment, f"live.{name}", version).create()
    table.apply(dict.fromkeys(range(20), (1, "first")))
    for round_ in range(3):  # each names rows of several data files
        table.apply({**dict.fromkeys(range(round_, 20, 3), (2, f"of {round_}")), round_ + 5: None})
    java = iceberg.load(table.name)
    tasks = list(java.newScan().planFiles().iterator())
    assert sum(int(task.file().recordCount()) for task in tasks) > len(table.state)
    assert live_rows(java, tasks) == len(table.state)
    assert sum(live_rows(java, [task]) or 0 for task in tasks) == len(table.state)
    monkeypatch.setattr(counted, "BYTES_AT_MOST", 10)
    assert live_rows(java, tasks) == (None if version == 2 else len(table.state))
