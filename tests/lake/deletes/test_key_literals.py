"""Which data files the search for keys reads, and that it misses no row."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession

from frazil.lake.deletes.key_literals import LISTED_AT_MOST, conditions, intervals
from frazil.lake.iceberg_java import Iceberg
from tests.support.variants import first_short

DAY, MOMENT = date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)
KINDS: dict[str, tuple[str, pa.DataType, Callable[[int], Any]]] = {
    "int": ("INT", pa.int32(), lambda n: n),
    "bigint": ("BIGINT", pa.int64(), lambda n: n - 2**62),
    "date": ("DATE", pa.date32(), lambda n: DAY + timedelta(n)),
    "timestamp": ("TIMESTAMP", pa.timestamp("us", "UTC"), lambda n: MOMENT + timedelta(minutes=n, microseconds=n)),
    "decimal": ("DECIMAL(12,2)", pa.decimal128(12, 2), lambda n: Decimal(n) / 100),
    "string": ("STRING", pa.string(), lambda n: f"k{n:06d}ü"),
    "binary": ("BINARY", pa.binary(), lambda n: b"\xff" + n.to_bytes(4, "big")),
}
FILES, ROWS = 10, 1000


def test_intervals_end_at_the_largest_gaps() -> None:
    values = pa.chunked_array([pa.array([1, 2, 3, 50, 51, 900, 2, 51])])
    assert intervals(values, 3) == [(1, 3), (50, 51), (900, 900)]
    assert intervals(values, 2) == [(1, 51), (900, 900)]
    assert intervals(values, 99) == [(1, 1), (2, 2), (3, 3), (50, 50), (51, 51), (900, 900)]


def test_a_gap_of_more_than_63_bits_is_a_gap() -> None:
    values = pa.chunked_array([pa.array([-(2**63), -(2**63) + 5, 2**63 - 1])])
    assert intervals(values, 2) == [(-(2**63), -(2**63) + 5), (2**63 - 1, 2**63 - 1)]


def test_every_value_is_in_an_interval() -> None:
    draw = random.Random(11)
    for _ in range(200):
        values = [draw.randrange(-(2 ** draw.choice((3, 20, 63))), 2 ** draw.choice((3, 20, 63))) for _ in range(40)]
        found = intervals(pa.chunked_array([pa.array(values)]), draw.randrange(2, 20))
        assert all(any(low <= value <= high for low, high in found) for value in values)


class Searched:
    """A table of ten files of a hundred keys each, and how many of them are planned for some keys."""

    def __init__(self, spark: SparkSession, name: str, kind: str, partitioned: str = "") -> None:
        self.spark, self.name, (self.sql, self.arrow, self.value) = spark, f"lake.literals.{name}", KINDS[kind]
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.literals")
        by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
        spark.sql(f"CREATE TABLE {self.name} (k {self.sql}, n INT) USING iceberg {by}")
        self.partitioned = ("k",) if partitioned else ()
        rows = self._frame(range(ROWS)).repartitionByRange(FILES, "k")
        rows.writeTo(self.name).option("fanout-enabled", "true").append()

    def _arrow(self, numbers: Sequence[int]) -> pa.Table:
        columns = [pa.array([self.value(n) for n in numbers], self.arrow), pa.array(numbers, pa.int32())]
        return pa.table(columns, names=["k", "n"])

    def _frame(self, numbers: Sequence[int]) -> Any:
        return self.spark.createDataFrame(self._arrow(numbers), schema=f"k {self.sql}, n INT")

    def files(self, *numbers: int) -> int:
        """Return how many data files are planned; assert that the rows of all keys are among those that are read."""
        keys = self._arrow(numbers)
        found = conditions(keys, self._frame(numbers).schema, ["k"], partitioned_by=self.partitioned)
        rows = self.spark.table(self.name)
        rows = rows.where(reduce(Column.__and__, found)) if found else rows
        assert {row.n for row in rows.collect()} >= set(numbers)
        metrics = rows._jdf.queryExecution().executedPlan().collectLeaves().apply(0).metrics()
        return int(metrics.apply("resultDataFiles").value())


@pytest.mark.spark
@pytest.mark.parametrize("kind", first_short(KINDS, short=2))
def test_keys_of_one_file_have_one_file_read(spark: SparkSession, iceberg: Iceberg, name: str, kind: str) -> None:
    table = Searched(spark, name, kind)
    first = table.files(3, 40)
    assert first <= 2  # where files end is drawn by Spark
    if kind not in ("decimal", "string", "binary"):  # an old key beside the newest: the files in between are not read
        assert table.files(5, *range(960, 990)) <= 3


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["string", "binary"])
def test_few_keys_have_their_buckets_read(spark: SparkSession, iceberg: Iceberg, name: str, kind: str) -> None:
    table = Searched(spark, name, kind, "bucket(16, k)")
    every = table.files(*range(0, ROWS, 3))  # more than are listed: their range is that of all rows
    assert len(range(0, ROWS, 3)) > LISTED_AT_MOST
    assert table.files(1, 998) * 4 <= every


@pytest.mark.spark
def test_days_of_keys_are_the_partitions_read(spark: SparkSession, iceberg: Iceberg, name: str) -> None:
    table = Searched(spark, name, "timestamp", "hours(k)")
    assert table.files(0, 999) <= 4  # the first and the last of 17 hours, each in two files at most
    assert table.files(*range(130), *range(800, 900)) <= 12  # more than are listed: two intervals
