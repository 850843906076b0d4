"""The rows that a rewrite must have, by the delete files."""

from __future__ import annotations

import uuid

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.lake import rewrite
from frazil.lake.delete_files import live_rows as counted
from frazil.lake.delete_files.live_rows import live_rows
from frazil.lake.iceberg_java import Iceberg
from tests.support.foreign_deletes import delete_positions
from tests.support.keyed_table import KeyedTable
from tests.support.variants import first_short

pytestmark = pytest.mark.spark


def new_id() -> str:
    return uuid.uuid4().hex


def table_of(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, version: int
) -> KeyedTable:
    """Return a table whose delete files each name rows of several data files."""
    table = KeyedTable(spark, iceberg, lake_environment, f"live.{name}", version).create()
    table.apply(dict.fromkeys(range(20), (1, "first")))
    for round_ in range(3):
        table.apply({**dict.fromkeys(range(round_, 20, 3), (2, f"of {round_}")), round_ + 5: None})
    return table


@pytest.mark.parametrize("version", first_short([2, 3]))
@pytest.mark.parametrize(
    "most", [counted.BYTES_AT_MOST, pytest.param(10, marks=pytest.mark.long)], ids=["by the deletes", "by reading"]
)
def test_live_rows_are_counted_exactly(
    spark: SparkSession,
    iceberg: Iceberg,
    lake_environment: Environment,
    name: str,
    version: int,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of(spark, iceberg, lake_environment, name, version)
    java, read = iceberg.load(table.name), list[str]()
    monkeypatch.setattr(counted, "BYTES_AT_MOST", most)

    def named() -> str:
        read.append(new_id())
        return read[-1]

    tasks = list(java.newScan().planFiles().iterator())
    assert sum(int(task.file().recordCount()) for task in tasks) > len(table.state)
    assert live_rows(iceberg, java, tasks, new_id=named) == len(table.state)
    assert sum(live_rows(iceberg, java, [task], new_id=named) for task in tasks) == len(table.state)
    assert bool(read) is (version == 2 and most == 10)
    assert iceberg.task_sets().fetchSetIds(java).isEmpty()


@pytest.mark.long
def test_a_row_that_two_deletes_of_its_file_name_is_counted_once(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str
) -> None:
    """As if the `DELETE` of another engine was planned before a batch that deletes the row, and committed behind it."""
    table = KeyedTable(spark, iceberg, lake_environment, f"live.{name}", 2).create()
    table.apply(dict.fromkeys(range(6), (1, "first")))
    ((path, position),) = spark.sql(f"SELECT _file, _pos FROM lake.{table.name} WHERE id = 3").collect()
    table.apply({3: None})
    delete_positions(table, path, position)
    loaded = iceberg.load(table.name)
    (group,) = rewrite.plan(iceberg, loaded, group_bytes=1 << 30, target_bytes=1 << 28, with_deletes=True)
    assert (group.rows, group.deleted, group.maybe_deleted) == (6, 0, 2)
    live = live_rows(iceberg, loaded, group.java.fileScanTasks(), new_id=new_id)
    assert live == len(table.state) == rewrite.rewrite(spark, iceberg, loaded, group, unique_id=new_id()).rows
