"""Scan tasks of many data files, and vectors of many data files in one commit."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.lake.delete_files import java_writers
from frazil.lake.delete_files.staged_deletes import Found, write
from frazil.lake.iceberg_java import Iceberg
from tests.support.foreign_deletes import delete_ids
from tests.support.keyed_table import KeyedTable

pytestmark = pytest.mark.spark
DAYS = 5


@pytest.fixture
def table(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str) -> KeyedTable:
    """A table of version 3 with a data file for each day, of six rows."""
    made = KeyedTable(spark, iceberg, lake_environment, f"writers.{name}", 3, partitioned=True).create()
    made.apply({10 * day + number: (day, f"first {number}") for day in range(DAYS) for number in range(6)})
    return made


def test_tasks_are_listed_in_parts(table: KeyedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_writers, "TASKS_AT_ONCE", 2)
    loaded = table.iceberg.load(table.name)
    head = int(loaded.currentSnapshot().snapshotId())
    paths = sorted(row[0] for row in table.spark.sql(f"SELECT file_path FROM lake.{table.name}.files").collect())
    assert len(paths) >= DAYS
    found = java_writers.tasks(table.iceberg, loaded, head, None)
    assert sorted(found) == paths
    assert {path: str(task.file().location()) for path, task in found.items()} == {path: path for path in paths}
    assert sorted(java_writers.tasks(table.iceberg, loaded, head, paths[1::2])) == paths[1::2]
    assert java_writers.tasks(table.iceberg, loaded, head, ["elsewhere"]) == {}


def test_each_data_file_gets_its_own_positions(table: KeyedTable) -> None:
    """Files of later batches have no vector before; the others have, and their vectors are merged."""
    for batch in range(3):
        gone = {10 * day + (day + batch) % 6: None for day in range(DAYS) if (day + batch) % DAYS}
        table.apply({**gone, 100 + batch: (batch, f"of batch {batch}")})
        table.check()
    vectors = table.spark.sql(f"SELECT record_count FROM lake.{table.name}.delete_files").collect()
    assert sum(row[0] for row in vectors) == 3 * (DAYS - 1)


@pytest.mark.long
def test_an_equality_delete_stays_beside_the_vectors(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str
) -> None:
    """The first batch makes the vector, the second merges it. PyIceberg does not read such a table."""
    made = KeyedTable(spark, iceberg, lake_environment, f"writers.{name}", 3).create()
    made.apply(dict.fromkeys(range(6), (0, "first")))
    delete_ids(made, 1)
    for key in (2, 3):
        made.apply({key: None, key + 10: (0, "new")})
    found = spark.table(f"lake.{made.name}").select("id").collect()
    assert sorted(row[0] for row in found) == [0, 4, 5, 12, 13]


def test_a_data_file_that_the_snapshot_lacks_is_an_error(table: KeyedTable) -> None:
    loaded = table.iceberg.load(table.name)
    head = int(loaded.currentSnapshot().snapshotId())
    (path, *_) = java_writers.tasks(table.iceberg, loaded, head, None)
    found = Found(at={path: np.array([0]), "elsewhere": np.array([1])})
    with pytest.raises(KeyError, match="elsewhere"):
        write(table.iceberg, loaded, head, found)
