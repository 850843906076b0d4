"""Whether a condition may be true where fields are null: what Spark says of it is compared with Spark's rows."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.declaration import InvalidDeclaration
from frazil.declaration.checks.sql_expressions import row_expression
from frazil.decode.shape.expression_types import may_be_true

pytestmark = pytest.mark.spark
ROW = (
    "a string, n bigint, ok boolean, at timestamp, dec decimal(10, 2), s struct<x: string, y: struct<z: int>>, "
    "lines array<struct<sku: string, q: int>>, m map<string, struct<sku: string, q: int>>, b string, c bigint"
)
LOST = (("a",), ("n",), ("ok",), ("at",), ("dec",), ("s", "y", "z"), ("lines", "[]", "sku"), ("m", "[]", "sku"))


@pytest.mark.parametrize(
    "text",
    [
        "coalesce(n, 0) > 5",
        "ifnull(a, '') = 'paid'",
        "case when a = 'paid' then 'y' else 'n' end = 'y'",
        "case when a = 'paid' then b else 'n' end = 'y'",
        "if(n > 5, 1, 0) = 1",
        "if(c > 1, coalesce(a, ''), '') = 'paid'",
        "greatest(n, 0) > 5 or least(n, 9) < 5",
        "a <=> 'paid'",
        "upper(coalesce(a, 'x')) = 'PAID'",
        "concat_ws('-', a, 'x') = 'paid-x'",
        "coalesce(a, 'none') in ('paid', 'sent')",
        "coalesce(ok, false) = true",
        "coalesce(c > 1 and a = 'x', false)",
        "(c > 1 and coalesce(a, '') = 'x') is true",
        "coalesce(dec, 0.5) > 5.55",
        "coalesce(at, timestamp '2020-01-01 00:00:00') > timestamp '2021-01-01 00:00:00'",
        "coalesce(s.y.z, 0) = 3 and b = 'x'",
        "coalesce(lines[0].sku, '') = 'x' or map_values(m)[0].sku <=> 'y'",
        "not (coalesce(n, 0) <= 5 or b = 'x')",
    ],
)
def test_a_condition_is_never_true_by_its_constants(spark: SparkSession, text: str) -> None:
    assert not may_be_true(spark, T.StructType.fromDDL(ROW), row_expression(text), LOST)


@pytest.mark.parametrize(
    "text",
    [
        "coalesce(n, 9) > 5",
        "ifnull(a, 'paid') = 'paid'",
        "coalesce(a, b) = 'x'",
        "a is null and b is null",
        "not coalesce(ok, false)",
        "s.y.z is null and s.x = 'x'",
        "coalesce(lines[0].sku, 'x') = 'x' and m['k'].q = 1",
        "coalesce(m['k'].sku, 'x') = 'x'",
        "a = 'x' or c > 1",
        "cast(coalesce(a, 'x') as int) = 5",  # it fails: records are rejected, and no row leaves a table
        "nothing = 1 or coalesce(a, 'x') = 'y'",  # it does not fit the rows, as another error says
    ],
)
def test_a_condition_may_be_true(spark: SparkSession, text: str) -> None:
    assert may_be_true(spark, T.StructType.fromDDL(ROW), row_expression(text), LOST)


def text(draw: random.Random, depth: int, names: str) -> str:
    """Return an expression over these columns of texts and over constants, which is a text."""
    if depth == 0:
        return draw.choice([*names, "'x'", "'y'", "''"])
    one, two, three = (text(draw, depth - 1, names) for _ in range(3))
    return draw.choice(
        [
            f"coalesce({one}, {two})",
            f"nullif({one}, {two})",
            f"upper({one})",
            f"concat_ws('-', {one}, {two})",
            f"concat({one}, {two})",
            f"greatest({one}, {two})",
            f"case when {one} = {two} then {three} else 'x' end",
            f"case {one} when {two} then 'y' end",
            f"if({one} <=> {two}, {three}, 'y')",
            f"substring({one}, length({two}), 2)",
        ]
    )


def condition(draw: random.Random, depth: int, names: str) -> str:
    one, two = text(draw, draw.randint(0, 2), names), text(draw, draw.randint(0, 1), names)
    if depth == 0:
        return draw.choice(
            [
                f"{one} {draw.choice(['=', '<>', '<', '<=>'])} {two}",
                f"{one} in ('x', {two})",
                f"{one} is not null",
                f"{one} between {two} and 'y'",
                f"{one} like 'x%'",
            ]
        )
    left, right = condition(draw, depth - 1, names), condition(draw, depth - 1, names)
    return draw.choice(
        [
            f"({left} and {right})",
            f"({left} or {right})",
            f"not ({left})",
            f"({left}) is true",
            f"if({left}, {right}, false)",
        ]
    )


def drawn(draw: random.Random, number: int, names: str) -> list[str]:
    """Return so many conditions that are allowed and read the column `a`."""
    found: list[str] = []
    while len(found) < number:
        one = f"({condition(draw, draw.randint(0, 2), names)}) and (a is null or a <> 'z')"
        try:
            row_expression(one)
        except InvalidDeclaration:  # a function of no column
            continue
        found.append(one)
    return found


def test_what_is_never_true_is_true_of_no_row(spark: SparkSession) -> None:
    conditions = drawn(random.Random(51), 60, "abc")
    rows = [(None, b, c) for b in ("x", "y", "z", "", "X", None) for c in ("x", "y", "-", None)]
    row = T.StructType.fromDDL("a string, b string, c string")
    frame = spark.createDataFrame(rows, row).select(F.struct("*").alias("row"))
    (found,) = frame.select(
        *(F.max(F.coalesce(F.expr(row_expression(one).sql("row")), F.lit(False))) for one in conditions)
    ).collect()
    possible = [may_be_true(spark, row, row_expression(one), [("a",)]) for one in conditions]
    assert [one for one, is_true, may in zip(conditions, found, possible, strict=True) if is_true and not may] == []
    assert 10 < sum(possible) < 50


def test_a_condition_of_the_lost_field_and_constants_is_decided(spark: SparkSession) -> None:
    conditions = drawn(random.Random(52), 40, "a")
    row = T.StructType.fromDDL("a string")
    frame = spark.createDataFrame([(None,)], row).select(F.struct("*").alias("row"))
    (found,) = frame.select(
        *(F.coalesce(F.expr(row_expression(one).sql("row")), F.lit(False)) for one in conditions)
    ).collect()
    possible = [may_be_true(spark, row, row_expression(one), [("a",)]) for one in conditions]
    assert possible == list(found)
    assert 5 < sum(possible) < 35
