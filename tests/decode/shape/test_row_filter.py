"""A condition in Spark: it is what the text says, for each operator and function that is allowed, and as DuckDB has it."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.declaration import InvalidDeclaration
from frazil.declaration.checks.sql_expressions import EXAMPLES, row_expression
from frazil.decode.decoded_columns import DECODED, MATCH, ROW
from frazil.decode.shape.expression_types import Asked, tried
from frazil.decode.shape.row_filter import RowFilter, is_filtered

pytestmark = pytest.mark.spark
ROWS = """
select *, timestamp_ntz '2026-01-31 10:00:00' as tn from values
 ('a', 1, date '2026-01-31', timestamp '2026-01-31 10:20:30', x'00ff', array(1, 2), map('k', 'v'),
  named_struct('a', named_struct('b', 1), 'c', array(named_struct('d', 1)))),
 ('2026-01-31', 7, date '1969-12-31', timestamp '1969-12-31 23:59:59', x'', array(), map(), null),
 ('{"a": "x"}', -3, null, null, null, null, null, null),
 (null, null, null, null, null, null, null, null)
as t(s, n, d, t, b, l, m, r)
"""


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    table = spark.sql(ROWS)
    return table.select(F.struct("*").alias(ROW))


def answers(rows: DataFrame, sql: str) -> list[Any]:
    """Return what an expression is for each row; failures are `fails`."""
    made = tried(rows.sparkSession, F.struct(F.expr(sql).cast("string").alias("x")))
    return [("fails" if row[0] is None else row[0]["x"]) for row in rows.select(made).collect()]


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_part_of_an_example_is_in_spark_what_its_text_says(rows: DataFrame, text: str) -> None:
    texts = r"'(?:\\.|[^'\\])*'" + r'|"[^"]*"'
    named = re.compile(rf"{texts}|(?<!\.)\b([sndtblmr])\b(?!')")  # columns, not texts
    for part in re.split(r" or (?![^(]*\))", text):
        plain = named.sub(lambda match: f"{ROW}.{match[1]}" if match[1] else match[0], part)
        assert answers(rows, row_expression(part).sql(ROW)) == answers(rows, plain), part


NAMES = ("a", "b", "c")


def is_allowed(text: str) -> bool:
    """Return whether each call in a drawn text reads a column."""
    try:
        row_expression(text)
    except InvalidDeclaration:
        return False
    return True


_numbers = st.one_of(st.sampled_from(NAMES), st.integers(-3, 3).map(str))
_values = st.recursive(
    _numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda of: f"({of[0]} {of[1]} {of[2]})"),
        st.tuples(inner, inner).map(lambda of: f"coalesce({of[0]}, {of[1]})"),
        st.tuples(inner, inner).map(lambda of: f"nullif({of[0]}, {of[1]})"),
        inner.map(lambda of: f"abs({of})"),
        st.tuples(inner, inner, inner).map(lambda of: f"case when {of[0]} > 0 then {of[1]} else {of[2]} end"),
    ),
    max_leaves=6,
)
_conditions = st.recursive(
    st.one_of(
        st.tuples(_values, st.sampled_from(["=", "<>", "<", ">="]), _values).map(lambda of: " ".join(of)),
        _values.map(lambda of: f"{of} is null"),
        st.tuples(_values, _numbers, _numbers).map(lambda of: f"{of[0]} between {of[1]} and {of[2]}"),
        st.tuples(_values, _numbers).map(lambda of: f"{of[0]} in ({of[1]}, 2)"),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda of: f"({of[0]} {of[1]} {of[2]})"),
        inner.map(lambda of: f"not ({of})"),
    ),
    max_leaves=5,
).filter(is_allowed)
TABLE = [(a, b, c) for a in (None, -1, 2) for b in (None, 0, 3) for c in (None, 1)]


@given(st.lists(_conditions, min_size=8, max_size=8))
@settings(
    max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
def test_drawn_conditions_filter_as_duckdb_does(spark: SparkSession, conditions: list[str]) -> None:
    with duckdb.connect() as database:
        database.execute("create table t(n int, a bigint, b bigint, c bigint)")
        database.executemany("insert into t values (?, ?, ?, ?)", [(n, *row) for n, row in enumerate(TABLE)])
        expected = [{n for (n,) in database.execute(f"select n from t where {text}").fetchall()} for text in conditions]
    frame = spark.createDataFrame(
        [(n, *row, True) for n, row in enumerate(TABLE)], "n int, a long, b long, c long, d boolean"
    )
    row = F.struct("a", "b", "c", F.col("d").alias(DECODED))
    records = frame.select("n", row.alias(ROW), F.lit(b"").alias("value"))
    matched = []
    for text in conditions:
        made = RowFilter(condition=row_expression(text), fields=("a", "b", "c", DECODED), asked=Asked(ROW))
        kept = made.matched(records, once="_once").where(~is_filtered() & F.col(MATCH).isNotNull())
        matched.append({row["n"] for row in kept.select("n").collect()})
    assert matched == expected
