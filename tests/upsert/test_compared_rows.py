"""Which columns of the table are read for the values that changes omit."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.lake.delete_files.staged_deletes import Found
from frazil.upsert.compared_changes import ComparedChanges
from frazil.upsert.compared_rows import rows_to_write
from frazil.upsert.fold import Rules
from frazil.upsert.key_literals import Truncation
from frazil.upsert.omitted_values import not_omitted
from frazil.upsert.resolver_protocol import IS_DELETE, LACKS, OMITTED
from frazil.upsert.soft_deletes import IS_BARE

pytestmark = pytest.mark.spark
VALUES = ("a", "b", "c")


@dataclass
class Compared:
    """Changes that were compared with a table that has the rows of all keys; `lacks` says whether they depend on these."""

    ids: list[int]
    lacks: bool
    rules: Rules
    key: list[str] = field(default_factory=lambda: ["id"])

    @property
    def found(self) -> Found:
        return Found(kept=frozenset(range(len(self.ids)) if self.lacks else ()))

    def partition_sources(self) -> dict[str, Truncation]:
        return {}

    def keys_of(self, numbers: Collection[int]) -> pa.Table:
        return pa.table({"id": pa.array([self.ids[number] for number in sorted(numbers)], pa.int64())})


def written(
    spark: SparkSession, folder: Path, rules: Rules, *changes: tuple[Any, ...], lacks: bool = True
) -> DataFrame:
    """Return the rows of changes (id, a, b, c, is a delete, left out) in a table of rows with the values 'held'."""
    held = spark.range(10).select("id", *(F.lit("held").alias(name) for name in VALUES))
    held.withColumn("_deleted_at", F.lit(None).cast("timestamp")).write.parquet(str(folder))
    schema = f"id long, a string, b string, c string, {IS_DELETE} boolean, {OMITTED} array<string>"
    last = spark.createDataFrame(list(changes), schema).withColumns(
        {LACKS: F.lit(lacks), IS_BARE: F.lit(False), "_deleted_at": F.lit(None).cast("timestamp")}
    )
    compared = cast(ComparedChanges, Compared([change[0] for change in changes], lacks, rules))
    columns = ["id", *VALUES, *(["_deleted_at"] if rules.soft else [])]
    return rows_to_write(last, columns, VALUES, spark.read.parquet(str(folder)), compared, 1)


def read_columns(rows: DataFrame) -> set[str]:
    plan = rows._jdf.queryExecution().executedPlan().toString()
    found = re.findall(r"ReadSchema: struct<([^>]*)>", plan)
    return {column.partition(":")[0] for columns in found for column in columns.split(",")}


def test_only_columns_that_a_change_leaves_out_are_read(spark: SparkSession, tmp_path: Path) -> None:
    rules = Rules(fills=True)
    rows = written(
        spark, tmp_path / "t", rules, (1, "new", "?", "new", False, ["b"]), (2, "new", "new", None, False, ["b"])
    )
    assert read_columns(rows) == {"id", "b"}
    assert sorted(map(tuple, rows.collect())) == [(1, "new", "held", "new"), (2, "new", "held", None)]


@pytest.mark.parametrize("rules", [Rules(), Rules(soft=True), Rules(fills=True), Rules(soft=True, fills=True)])
def test_no_row_is_read_for_changes_that_have_all_values(spark: SparkSession, tmp_path: Path, rules: Rules) -> None:
    rows = written(
        spark,
        tmp_path / "t",
        rules,
        (1, "new", "new", None, False, None),
        (2, None, None, None, True, None),
        lacks=False,
    )
    assert read_columns(rows) == set()
    deleted = [(2, None, None, None)] if rules.soft else []
    assert sorted(tuple(row)[:4] for row in rows.collect()) == [(1, "new", "new", None), *deleted]


@pytest.mark.long
def test_a_delete_keeps_all_values_of_its_row(spark: SparkSession, tmp_path: Path) -> None:
    rules = Rules(soft=True, fills=True)
    rows = written(
        spark, tmp_path / "t", rules, (1, "new", "?", "new", False, ["b"]), (2, None, None, None, True, None)
    )
    assert read_columns(rows) == {"id", *VALUES, "_deleted_at"}
    assert sorted(tuple(row)[:4] for row in rows.collect()) == [(1, "new", "held", "new"), (2, "held", "held", "held")]


@pytest.mark.long
def test_a_value_that_only_a_second_reading_leaves_out_ends_the_job(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "a", ["b"])], f"id long, a string, {OMITTED} array<string>").withColumn(
        "b", F.lit("?")
    )
    assert rows.select(not_omitted("a")).first() == ("a",)
    with pytest.raises(PySparkException, match="the value of b is omitted"):
        rows.select(not_omitted("b")).collect()
