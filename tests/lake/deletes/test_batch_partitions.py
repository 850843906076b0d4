"""Which rows and files a search reads in a table whose keys keep their partition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.declaration.partitioning import partition_field
from frazil.lake.deletes import batch_partitions
from frazil.lake.deletes.batch_partitions import BatchPartitions, PartitionSources
from frazil.lake.deletes.folding import REMOVED
from frazil.lake.deletes.positions import KNOWN, LEFT_OUT
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.key_account import KeyAccount

BEGIN = datetime(1969, 12, 30, 23, 30, tzinfo=UTC)  # partitions of times before 1970 have negative numbers
COLUMNS = (
    "id long, at timestamp, local timestamp_ntz, day date, word string, number int, price decimal(12,2), bytes binary, "
    "flag boolean, part struct<zip: string>, ratio double"
)


def rows(spark: SparkSession, count: int = 240) -> Any:
    """An hour and a half lie between two rows; the last one has nulls only."""
    at = [BEGIN + timedelta(minutes=90 * n) for n in range(count)]
    made = {
        "id": pa.array(range(count + 1)),
        "at": pa.array([*at, None], pa.timestamp("us", "UTC")),
        "local": pa.array([*(t.replace(tzinfo=None) for t in at), None], pa.timestamp("us")),
        "day": pa.array([*(t.date() for t in at), None], pa.date32()),
        "word": pa.array([*(f"{'äbcd'[n % 4]}{'_%x'[n % 3]}{n}" for n in range(count)), None]),
        "number": pa.array([*(n * 7 - 800 for n in range(count)), None], pa.int32()),
    }
    frame = spark.createDataFrame(pa.table(made), schema=", ".join(COLUMNS.split(", ")[:6]))
    return frame.withColumns(
        {
            "price": (F.col("number") / 100).cast("decimal(12,2)"),
            "bytes": F.encode("word", "UTF-8"),
            "flag": F.col("id") % 2 == 0,
            "part": F.when(F.col("word").isNotNull(), F.struct(F.col("word").alias("zip"))),
            "ratio": F.col("number") / 8,
        }
    )


class Partitioned:
    """A table that is partitioned by a field, and the search for the rows of a batch in it."""

    def __init__(self, spark: SparkSession, iceberg: Iceberg, name: str, field: str, declared: str = "") -> None:
        self.spark, self.table, self.iceberg = spark, f"lake.stable.{name}", iceberg
        self.field, self.rows = partition_field(declared or field), rows(spark)
        if not name:
            return  # only the conditions are asked for
        iceberg.create_namespace("stable")
        spark.sql(f"CREATE TABLE {self.table} ({COLUMNS}) USING iceberg PARTITIONED BY ({field})")
        self.rows.writeTo(self.table).option("fanout-enabled", "true").append()

    def partitions(self, batch: Any, key: str = "id", **options: bool) -> BatchPartitions | None:
        folded = batch.withColumn(REMOVED, F.lit(False))
        sources = PartitionSources(folded.schema, [key], [self.field], "lake", **options)
        keys, found = sources.of(folded.select(key, *sources.values(folded)).toArrow())
        assert keys.column_names == [key, *([KNOWN] if KNOWN in keys.column_names else [])]
        return found

    def read(self, batch: Any) -> tuple[set[int], int]:
        """Return the ids of the rows that are read for a batch, and how many data files are planned."""
        found = self.partitions(batch)
        assert found is not None
        read = self.spark.table(self.table).where(found.condition).select("id")
        ids = {row[0] for row in read.collect()}
        metrics = read._jdf.queryExecution().executedPlan().collectLeaves().apply(0).metrics()
        return ids, int(metrics.apply("resultDataFiles").value())

    def files(self) -> int:
        return int(self.spark.table(f"{self.table}.data_files").count())

    def of_partitions(self, batch: Any, transform: str) -> set[int]:
        """Return the ids of all rows in the partitions of a batch, by Iceberg's own functions."""
        places = [row[0] for row in batch.selectExpr(f"{transform} AS place").distinct().collect()]
        every = self.rows.selectExpr("id", f"{transform} AS place").collect()
        return {row[0] for row in every if row[1] in places}


FIELDS = {
    "years(at)": "year(at)",
    "months(at)": "trunc(at, 'MM')",
    "days(at)": "to_date(at)",
    "hours(at)": "date_trunc('HOUR', at)",
    "days(local)": "to_date(local)",
    "days(day)": "day",
    "months(day)": "trunc(day, 'MM')",
    "day": "day",
    "word": "word",
    "flag": "flag",
    "bucket(5, word)": "lake.system.bucket(5, word)",
    "bucket(5, number)": "lake.system.bucket(5, number)",
    "truncate(1, word)": "substring(word, 1, 1)",
    "truncate(100, number)": "floor(number / 100)",
    "truncate(100, price)": "floor(number / 100)",
    "truncate(2, bytes)": "lake.system.truncate(2, bytes)",
    "part.zip": "part.zip",
    "truncate(1, part.zip)": "substring(part.zip, 1, 1)",
}


@pytest.mark.spark
@pytest.mark.parametrize(
    "field",
    [pytest.param(field, marks=() if field == "word" else pytest.mark.long) for field in FIELDS],
)
def test_the_partitions_of_a_batch_are_read_and_no_others(
    spark: SparkSession, iceberg: Iceberg, name: str, field: str
) -> None:
    table = Partitioned(spark, iceberg, name, field)
    for ids in ([16], [16, 20], [16, 17, 200, 240], [240]):
        batch = table.rows.where(F.col("id").isin(ids))
        read, files = table.read(batch)
        assert read == table.of_partitions(batch, FIELDS[field])
        if ids != [16, 17, 200, 240]:
            assert files * 2 <= table.files() or table.files() <= 3
    every, _ = table.read(table.rows)
    assert every == set(range(241))


@pytest.mark.long
@pytest.mark.spark
def test_rows_of_files_of_an_earlier_spec_are_read(spark: SparkSession, iceberg: Iceberg, name: str) -> None:
    """A condition is on the source: files by month, by day and without a partition are each pruned by what they have."""
    table = Partitioned(spark, iceberg, name, "months(at)", "days(at)")
    loaded = iceberg.load(f"stable.{name}")
    loaded.updateSpec().removeField("at_month").addField(iceberg.term(table.field.transform, "at", None)).commit()
    spark.sql(f"REFRESH TABLE {table.table}")
    table.rows.selectExpr("id + 1000 AS id", *table.rows.columns[1:]).writeTo(table.table).option(
        "fanout-enabled", "true"
    ).append()
    batch = table.rows.where("id IN (16, 17)")
    read, files = table.read(batch)
    wanted = table.of_partitions(batch, "to_date(at)")
    assert read == wanted | {number + 1000 for number in wanted}
    assert files * 3 <= table.files()


@pytest.mark.spark
def test_what_has_no_literal_narrows_nothing(spark: SparkSession, iceberg: Iceberg) -> None:
    table = Partitioned(spark, iceberg, "", "ratio")
    assert table.partitions(table.rows) is None
    table.field = partition_field("ratios")
    assert table.partitions(table.rows) is None, "a column that rows do not have"
    table.field = partition_field("bucket(4, ratio)")
    assert table.partitions(table.rows) is None, "a number that has no buckets"
    table.field = partition_field("bucket(4, id)")
    assert table.partitions(table.rows) is None, "the key says its partition itself"
    table.field = partition_field("hours(day)")
    assert table.partitions(table.rows) is None, "a date has no hours"


@pytest.mark.spark
def test_two_fields_of_one_column_both_count(spark: SparkSession) -> None:
    made = rows(spark).withColumn(REMOVED, F.lit(False))
    fields = [partition_field("bucket(5, number)"), partition_field("truncate(100, number)")]
    sources = PartitionSources(made.schema, ["id"], fields, "lake")
    batch = made.where("id = 16")
    _, found = sources.of(batch.select("id", *sources.values(batch)).toArrow())
    assert found is not None
    assert found.sources == ("number",)
    wanted = {
        row[0]
        for row in made.where("lake.system.bucket(5, number) = lake.system.bucket(5, -688)").select("id").collect()
    }
    near = {row[0] for row in made.where("number BETWEEN -700 AND -601").select("id").collect()}
    assert {row[0] for row in made.where(found.condition).select("id").collect()} == wanted & near
    assert wanted & near < near


@pytest.mark.spark
def test_the_first_and_the_last_instant_are_in_periods(spark: SparkSession) -> None:
    schema = T.StructType([T.StructField("id", T.LongType()), T.StructField("at", T.TimestampType())])
    ends = pa.array([-(2**63), 2**63 - 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    for unit in ("years", "hours"):
        sources = PartitionSources(schema, ["id"], [partition_field(f"{unit}(at)")], "lake")
        keys = pa.table({"id": [1, 2], KNOWN: [True, True], "_frazil_value_0": ends})
        _, found = sources.of(keys)
        assert found is not None
        instants = spark.sql("SELECT timestamp_micros(-9223372036854775808L) AS at").unionAll(
            spark.sql("SELECT timestamp_micros(9223372036854775807L)")
        )
        assert instants.where(found.condition).count() == 2


@pytest.mark.spark
def test_the_partition_of_a_change_without_its_values_is_not_known(spark: SparkSession) -> None:
    made = spark.sql(
        "SELECT * FROM VALUES (1, 'a', false, NULL), (2, 'b', true, NULL), (3, 'c', false, array('word')), "
        f"(4, 'd', false, array('other')) AS t(id, word, {REMOVED}, {LEFT_OUT})"
    )
    sources = PartitionSources(made.schema, ["id"], [partition_field("truncate(1, word)")], "lake")
    keys, found = sources.of(made.orderBy("id").select("id", *sources.values(made)).toArrow())
    assert keys[KNOWN].to_pylist() == [True, False, False, True]
    assert found is not None
    assert (found.known, found.keys) == (2, 4)
    deletes = made.where(REMOVED)
    _, found = sources.of(deletes.select("id", *sources.values(deletes)).toArrow())
    assert found is not None
    assert (found.known, found.keys, found.sources) == (0, 1, ())


@pytest.mark.spark
def test_rows_without_values_are_read_where_they_may_be(spark: SparkSession, iceberg: Iceberg) -> None:
    table = Partitioned(spark, iceberg, "", "days(at)")
    found = table.partitions(table.rows.where("id = 16"), may_lack_values=True)
    assert found is not None
    assert 240 in {row[0] for row in table.rows.where(found.condition).select("id").collect()}


def is_checked(known: int = 3, keys: int = 3, **account: Any) -> bool:
    partitions = BatchPartitions(condition=None, sources=("day",), known=known, keys=keys)  # type: ignore[arg-type]
    return partitions.within(KeyAccount(**account)).checked


def test_all_keys_are_searched_everywhere_until_enough_kept_their_partition() -> None:
    enough = batch_partitions.CONFIRMED_FIRST
    assert is_checked(rows=10**9, confirmed=enough - 1)
    assert not is_checked(rows=10**9, confirmed=enough)
    assert is_checked(rows=10**9, confirmed=enough, promise="days(`day`)"), "other fields were confirmed"


@pytest.mark.parametrize(("rows", "every"), [(0, 1), (1_000_000, 1), (1_000_001, 2), (20_000_000, 20)])
def test_some_batches_of_a_large_table_are_checked(rows: int, every: int) -> None:
    found = [is_checked(rows=rows, confirmed=10**6, unchecked=number) for number in range(every)]
    assert found == [False] * (every - 1) + [True]


def test_a_batch_with_deletes_is_checked_in_any_table() -> None:
    assert is_checked(known=2, rows=10**9, confirmed=10**6)
