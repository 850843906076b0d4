"""The scan of a filtered table has the files that the filter leaves, and all their rows."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.errors import Fault
from frazil.lake.iceberg_java import Iceberg
from frazil.upsert import pruned_scan
from frazil.upsert.pruned_scan import check_omitted, pruned

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


def omitted(
    spark: SparkSession, iceberg: Iceberg, name: str, by: str, keys: list[object], condition: str, *wanted: object
) -> None:
    """Check what a condition leaves of a table of `keys` that is partitioned, for a batch with the keys `wanted`."""
    kind = "STRING" if isinstance(keys[0], str) else "BIGINT"
    table = f"pruned.{name}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.pruned")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.{table} (k {kind}) USING iceberg PARTITIONED BY ({by})")
    loaded = iceberg.load(table)
    if loaded.currentSnapshot() is None:
        rows = spark.createDataFrame([(key,) for key in keys], f"k {kind}").coalesce(1)
        rows.writeTo(f"lake.{table}").option("fanout-enabled", "true").append()
        loaded.refresh()
    batch = pa.table({"k": pa.array(wanted)})
    read = pruned(spark.read.table(f"lake.{table}"), [F.expr(condition)], [F.col("k")])
    check_omitted(iceberg, loaded, loaded.currentSnapshot().snapshotId(), read, batch)


def test_a_search_that_omits_a_file_of_a_key_is_a_defect(spark: SparkSession, iceberg: Iceberg, name: str) -> None:
    args = (spark, iceberg, name, "truncate(10, k)", [1, 4, 50, 58, 90])
    omitted(*args, "k >= 50", 52, 95)
    omitted(*args, "k >= 50", 5, 7, 30)  # new keys, in gaps between files
    omitted(*args, "k = 1", 1)
    with pytest.raises(Fault, match="omits 1 data files that may have some.*k_trunc=0"):
        omitted(*args, "k >= 50", 3, 52)
    with pytest.raises(Fault, match="omits 3 data files"):
        omitted(*args, "false", 4, 50, 90)


def test_a_file_with_wider_bounds_than_its_values_may_be_omitted(
    spark: SparkSession, iceberg: Iceberg, name: str
) -> None:
    """As ORC's milliseconds make them: the upper bound of an hour's last moment is in the next hour."""
    kind = pa.timestamp("us", "UTC")
    hour = {"id": 1, "name": "k", "type": "timestamptz"}
    keys = pruned_scan._Values(pa.chunked_array([pa.array([3_600_000_001, 7_200_000_000], kind)]), hour)
    low, high = (base64.b64encode(n.to_bytes(8, "little")).decode() for n in (0, 3_600_000_999))
    assert keys.has_between(low, high)
    assert keys.partitions("hour") == {1, 2}
    assert keys.partitions("truncate[10]") is None


def test_files_of_other_buckets_and_of_longer_texts_may_be_omitted(
    spark: SparkSession, iceberg: Iceberg, name: str
) -> None:
    of_buckets = (spark, iceberg, f"{name}_b", "bucket(4, k)", [*range(100)])
    omitted(*of_buckets, "k IN (3, 7)", 3, 7)
    with pytest.raises(Fault, match="omits 1 data files"):
        omitted(*of_buckets, "k = 3", 3, 4)
    long = "a" * 16  # as long as a bound is
    of_texts = (spark, iceberg, f"{name}_t", "k", [long + "b", long + "x", "c"])
    omitted(*of_texts, f"k = '{long}x'", long + "x", long + "c")
    with pytest.raises(Fault, match=r"omits 1 data files.*k=a{16}b"):
        omitted(*of_texts, f"k = '{long}x'", long + "x", long + "b")
