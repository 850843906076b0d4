"""Declared columns in Spark: they are what DuckDB makes of the same list, and each row lands or is rejected."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.declaration import Pipeline, Shape, Table, Topic
from frazil.decode.decoded_columns import DECODED, ROW, SOURCE
from frazil.decode.shape.row_selection import row_selection
from frazil.decode.shape.selection import selection
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.decode.shape.test_row_filter import TABLE, _values, is_allowed

pytestmark = pytest.mark.spark
_SOURCE = Struct(tuple(Field(name, Primitive(Kind.LONG)) for name in ("n", "a", "b", "c")))
_expressions = _values.filter(is_allowed)


@given(st.lists(_expressions, min_size=12, max_size=12))
@settings(
    max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
def test_drawn_columns_are_those_of_duckdb(spark: SparkSession, drawn: list[str]) -> None:
    columns = ", ".join(f"{text} as x{number}" for number, text in enumerate(drawn))
    with duckdb.connect() as database:
        database.execute("create table t(n bigint, a bigint, b bigint, c bigint)")
        database.executemany("insert into t values (?, ?, ?, ?)", [(n, *row) for n, row in enumerate(TABLE)])
        expected = database.execute(f"select n, {columns} from t order by n").fetchall()
    pipeline = Pipeline(topic=Topic("t", value="avro"), table=Table("s.t"), shape=Shape(select=f"n, {columns}"))
    chosen = selection(pipeline, spark, _SOURCE, None)
    made = row_selection(pipeline, chosen.row, None, chosen, None)
    assert made is not None
    frame = spark.createDataFrame(
        [(n, *row, True) for n, row in enumerate(TABLE)], "n long, a long, b long, c long, d boolean"
    )
    source = F.struct("n", "a", "b", "c", F.col("d").alias(DECODED)).alias(SOURCE)
    records = made.applied(frame.select(source, F.lit(b"").alias("value")), ROW, once="_once")
    found = [tuple(row[ROW])[:-1] for row in records.where(made.is_made()).select(ROW).collect()]
    assert sorted(found) == expected, "no expression of these fails"
