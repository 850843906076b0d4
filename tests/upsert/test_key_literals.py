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
from pyspark.sql import functions as F

from frazil.lake.iceberg_java import Iceberg
from frazil.upsert import key_literals, pruned_scan
from frazil.upsert.key_literals import LISTED_AT_MOST, Truncation, conditions, intervals
from frazil.upsert.pruned_scan import check_omitted, pruned
from frazil.upsert.scan_resolver import partition_sources
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
DAY_US = 86_400_000_000


def edges(bits: int) -> list[int]:
    """Return the least and the greatest integers of so many bits and a sign, some near them and near zero, and some between."""
    near, between = (0, 1, 7, 9, 10, 11, 999, 1001), range(-(2**bits) + 5, 2**bits, 2**bits // 25)
    return sorted({*(n for k in near for n in (-(2**bits) + k, 2**bits - 1 - k, k, -k)), *between})


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
        self.partitioned = {"k": Truncation()} if partitioned else {}
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


TEXTS = [
    "",
    " ",
    "/",
    "%",
    "null",
    "\x00",
    "\x7f",
    "é",
    "日本語",
    "\uffff",
    "\U00010000x",
    "\U0010ffff",
    "a" * 40,
    "a" * 41 + "é",
]
DAYS = [-719_162, -366, -1, 0, 1, 365, 20_000, 2_932_896]
MICROS = sorted({max(day * DAY_US, -719_162 * DAY_US) + near for day in DAYS for near in (0, 1, DAY_US - 1)})
EDGES: dict[str, tuple[str, pa.DataType, tuple[str, ...], list[Any]]] = {
    "int": ("INT", pa.int32(), ("k", "truncate(10, k)", "bucket(4, k)"), edges(31)),
    "bigint": ("BIGINT", pa.int64(), ("truncate(1000, k)", "bucket(4, k)", "k"), edges(63)),
    "string": ("STRING", pa.string(), ("truncate(2, k)", "bucket(4, k)"), TEXTS),
    "int of large parts": ("INT", pa.int32(), ("truncate(1500000000, k)",), edges(31)),
    "text": ("STRING", pa.string(), ("k",), TEXTS),
    "decimal": (
        "DECIMAL(38,2)",
        pa.decimal128(38, 2),
        ("truncate(10, k)", "bucket(4, k)", "k"),
        [Decimal(n) / 100 for n in edges(100)],
    ),
    "binary": (
        "BINARY",
        pa.binary(),
        ("truncate(2, k)", "bucket(4, k)", "k"),
        [text.encode("utf-8", "surrogatepass") + b"\xff" * (len(text) % 4) for text in TEXTS],
    ),
    "boolean": ("BOOLEAN", pa.bool_(), ("k",), [False, True]),
    "years": ("DATE", pa.date32(), ("years(k)", "bucket(4, k)"), DAYS),
    "days": ("DATE", pa.date32(), ("days(k)", "k"), DAYS),
    "hours": ("TIMESTAMP", pa.timestamp("us", "UTC"), ("hours(k)", "bucket(4, k)"), MICROS),
    "months": ("TIMESTAMP_NTZ", pa.timestamp("us"), ("months(k)", "k"), MICROS),
}


@pytest.mark.spark
@pytest.mark.parametrize("case", first_short(EDGES, short=4))
def test_no_row_at_the_edge_of_a_type_is_omitted(spark: SparkSession, iceberg: Iceberg, name: str, case: str) -> None:
    sql, kind, transforms, values = EDGES[case]
    table, draw = f"literals.{name}", random.Random(case)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.literals")
    spark.sql(f"CREATE TABLE lake.{table} (k {sql}, n INT) USING iceberg PARTITIONED BY ({', '.join(transforms)})")
    schema = f"k {sql}, n INT"

    def frame(numbers: Sequence[int]) -> Any:
        is_time = pa.types.is_temporal(kind)
        base = pa.int64() if pa.types.is_timestamp(kind) else pa.int32() if is_time else kind
        keys = pa.array([values[n] for n in numbers], base)
        rows = pa.table([keys.cast(kind) if is_time else keys, pa.array(numbers, pa.int32())], names=["k", "n"])
        return rows, spark.createDataFrame(rows, schema=schema)

    frame(range(len(values)))[1].coalesce(1).writeTo(f"lake.{table}").option("fanout-enabled", "true").append()
    loaded = iceberg.load(table)
    sources, head = partition_sources(loaded), loaded.currentSnapshot().snapshotId()
    for most in (0, LISTED_AT_MOST, LISTED_AT_MOST, 0, 0, 0):
        some = draw.sample(range(len(values)), draw.randint(1, len(values)))
        keys, as_rows = frame(some)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(key_literals, "LISTED_AT_MOST", most)
            patch.setattr(pruned_scan, "LISTED_AT_MOST", most)
            found = conditions(keys, as_rows.schema, ["k"], partitioned_by=sources)
            read = pruned(spark.table(f"lake.{table}"), found, [F.col("n")])
            assert {row.n for row in read.collect()} >= set(some), [values[n] for n in some]
            if found:
                check_omitted(iceberg, loaded, head, read, keys.select(["k"]))


@pytest.mark.spark
def test_partitions_of_an_int_that_became_a_long_are_found(spark: SparkSession, iceberg: Iceberg, name: str) -> None:
    table = f"literals.{name}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.literals")
    by = "truncate(10, k), bucket(4, k), k"
    spark.sql(f"CREATE TABLE lake.{table} (k INT) USING iceberg PARTITIONED BY ({by})")
    keys = [-(2**31), -(2**31) + 5, 0, 7, 90]
    spark.createDataFrame([(key,) for key in keys], "k INT").writeTo(f"lake.{table}").append()
    spark.sql(f"ALTER TABLE lake.{table} ALTER COLUMN k TYPE BIGINT")
    for some in (keys, [*keys, *range(1000, 1000 + LISTED_AT_MOST)], [0, 90]):
        wanted = pa.table({"k": pa.array(some, pa.int64())})
        schema = spark.createDataFrame(wanted, schema="k BIGINT").schema
        found = conditions(wanted, schema, ["k"], partitioned_by=partition_sources(iceberg.load(table)))
        assert len(found) == (min(some) >= 0)
        read = pruned(spark.table(f"lake.{table}"), found, [F.col("k")])
        assert {row.k for row in read.collect()} >= set(keys).intersection(some)
