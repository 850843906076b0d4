"""The scan of a filtered table has the files that the filter leaves, and all their rows."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.pruned_scan import pruned

pytestmark = pytest.mark.spark
WANTED = ("id", "inside.b + 1 AS b", "_pos")


@pytest.fixture
def table(spark: SparkSession, iceberg: Iceberg, name: str) -> str:
    """Return a table of two files, of ids from 0 to 9 and from 100 to 109."""
    full = f"lake.pruned.{name}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.pruned")
    spark.sql(f"CREATE TABLE {full} (id INT NOT NULL, inside STRUCT<a: INT, b: INT>, day DATE) USING iceberg")
    for first in (0, 100):
        rows = spark.range(first, first + 10).selectExpr(
            "int(id) id", "named_struct('a', 1, 'b', int(id)) inside", "date'2026-01-01' day"
        )
        rows.coalesce(1).writeTo(full).append()
    return full


def read(spark: SparkSession, table: str, *filters: str) -> DataFrame:
    return pruned(spark.read.table(table), [*map(F.expr, filters)], [*map(F.expr, WANTED)])


def found(spark: SparkSession, table: str, *filters: str) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in read(spark, table, *filters).collect())


def test_all_rows_of_the_files_that_are_left_are_read(spark: SparkSession, table: str) -> None:
    first, second = ([(n, n + 1, n % 100) for n in range(begin, begin + 10)] for begin in (0, 100))
    assert found(spark, table) == first + second
    assert found(spark, table, "id BETWEEN 3 AND 5") == first
    assert found(spark, table, "id > 50", "day IS NOT NULL") == second
    assert found(spark, table, "id BETWEEN 20 AND 30") == []


def test_only_the_columns_that_are_needed_are_read(spark: SparkSession, table: str) -> None:
    scan = read(spark, table, "id < 5")._jdf.queryExecution().optimizedPlan().collectLeaves().apply(0)
    assert scan.schema().catalogString() == "struct<id:int,inside:struct<b:int>,_pos:bigint>"


@pytest.mark.parametrize("never", ["id > 1099511627776", "false"])
def test_a_filter_that_spark_knows_to_meet_no_row(spark: SparkSession, table: str, never: str) -> None:
    assert found(spark, table, never) == []
