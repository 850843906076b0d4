"""What an expression may be where columns are null: compared with DuckDB for drawn expressions and values."""

from __future__ import annotations

import random

import duckdb
import pytest

from frazil.declaration.checks.sql_expressions import EXAMPLES, row_expression


@pytest.mark.parametrize(
    "text",
    [
        "a <> 'x'",
        "not (a = 'x') and b > 1",
        "a in ('x', 'y') or a like 'x%'",
        "a is not null",
        "lower(a) <> 'x'",
        "not startswith(a, 'x')",
        "trim(a) in ('x')",
        "case when a = 'x' then false else a is not null end",
        "case a when 'x' then true else false end",
        "if(a = 'x', true, false)",
        "a is true",
        "a between 1 and 2",
        "1 between a and a",
        "nullif(a, 'x') = 'y'",
        "coalesce(a, lower(a)) = 'x'",
        "isnotnull(a) and b = 1",
        "a.b.c = 1 and a.b is not null",
        "length(a || b) > 1",
        "cast(a as int) + 1 > b",
        "a = 'x' and false",
        "greatest(a, a.b) > 1",
        "coalesce(a.b, a.c).d is not null",
        "map_values(a)[0].b = 1 or array_max(a.b).c = 1",
        "case when b = 1 then a.b else null end > 1",
        "if(b = 1, a.b, a.c)[0] > 1",
        "concat(a.b, a.c)[0] > 1",
    ],
)
def test_it_is_never_true_without_the_column(text: str) -> None:
    assert not row_expression(text).may_be_true([("a",)])


@pytest.mark.parametrize(
    "text",
    [
        "a <> 'x' or b > 1",
        "a is null",
        "a is not true",
        "coalesce(a, b) = 'x'",
        "ifnull(a, 'x') = 'x'",
        "a <=> 'x'",
        "isnull(a)",
        "not (b between a and 2)",
        "b in ('x', a)",
        "case when a = 'x' then false else true end",
        "greatest(a, b) > 1",
        "concat_ws('-', a, b) = 'x'",
        "not (a = 'x' and b = 1)",
        "nullif(b, a) = 1",
        "b.a = 1",
        "if(a = 'x', b = 1, b = 2)",
        "coalesce(a, b).c = 1",
        "coalesce(lower(b), a) = 'x'",
        "case when b = 1 then a.b else b end > 1",
        "map_keys(b)[0] = 1",
    ],
)
def test_it_may_be_true_without_the_column(text: str) -> None:
    assert row_expression(text).may_be_true([("a",)])


def test_a_field_of_an_element_is_a_place() -> None:
    expression = row_expression("lines[0].Sku = 'a' or element_at(m, 'k').sku = 'a' and (a.b)[n].c is null")
    assert {*expression.places} >= {("lines", "[]", "sku"), ("m", "[]", "sku"), ("a", "b", "[]", "c"), ("n",)}
    assert not expression.may_be_true([("lines", "[]", "sku"), ("m",)])
    assert expression.may_be_true([("lines", "[]"), ("a",)])


def test_a_field_of_what_a_function_chooses_is_a_place_of_each_choice() -> None:
    expression = row_expression("coalesce(a, m['k']).Sku = 'a' and map_values(m)[0].code = 1 and array_min(l).x = 1")
    assert {*expression.places} >= {("a", "sku"), ("m", "[]", "sku"), ("m", "[]", "code"), ("l", "[]", "x")}
    assert not row_expression("coalesce(a, m['k']).sku = 'a'").may_be_true([("a", "sku"), ("m", "[]", "sku")])
    assert row_expression("coalesce(a, m['k']).sku = 'a'").may_be_true([("a", "sku")])


def test_an_expression_without_places_has_fields_in_their_place() -> None:
    sql, replaced = row_expression("coalesce(a.b, c) = m['k'].s or a.b is null").without([("a", "b"), ("m",)], "row")
    assert replaced == {"_frazil_null0": "`row`.`a`.`b`", "_frazil_null1": "`row`.`m`['k'].`s`"}
    assert sql == "COALESCE(`row`.`_frazil_null0`, `row`.`c`) = `row`.`_frazil_null1` OR `row`.`_frazil_null0` IS NULL"


def test_columns_that_are_null_together_count_together() -> None:
    expression = row_expression("coalesce(a, b) = 'x'")
    assert expression.may_be_true([("a",)])
    assert expression.may_be_true([("b",)])
    assert not expression.may_be_true([("a",), ("b",)])


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_example_may_be_true_where_nothing_is_null(text: str) -> None:
    assert row_expression(text).may_be_true([])


def drawn(draw: random.Random, depth: int) -> str:
    """Return an expression over the texts `a`, `b` and `c`, which is a boolean."""
    if depth == 0:
        return f"{text(draw, 1)} {draw.choice(['=', '<>', '<', '>='])} {text(draw, 1)}"
    one, two = drawn(draw, depth - 1), drawn(draw, depth - 1)
    return draw.choice(
        [
            f"({one} and {two})",
            f"({one} or {two})",
            f"(not {one})",
            f"({text(draw, 1)} is null)",
            f"({text(draw, 1)} is not null)",
            f"(({one}) is true)",
            f"(({one}) is not true)",
            f"({text(draw, 1)} in ('x', {text(draw, 0)}))",
            f"({text(draw, 1)} not in ('x', 'y'))",
            f"({text(draw, 1)} between {text(draw, 0)} and {text(draw, 0)})",
            f"({text(draw, 1)} like 'x%')",
            f"(case when {one} then {two} else {text(draw, 0)} = 'x' end)",
            f"(case {draw.choice('abc')} when {text(draw, 0)} then true end)",
        ]
    )


def text(draw: random.Random, depth: int) -> str:
    if depth == 0:
        return draw.choice(["a", "b", "c", "'x'", "'y'"])
    one, two = draw.choice("abc"), text(draw, 0)
    return draw.choice(
        [
            one,
            f"lower({one})",
            f"coalesce({one}, {two})",
            f"nullif({one}, {two})",
            f"({one} || {two})",
            f"greatest({one}, {two})",
        ]
    )


def test_what_is_never_true_is_true_of_no_row_in_duckdb() -> None:
    draw, never = random.Random(50), 0
    database = duckdb.connect()
    database.execute("create table t (a varchar, b varchar, c varchar)")
    rows = [(None, b, c) for b in ("x", "y", "z", "", None) for c in ("x", "y", "Z", None)]
    database.executemany("insert into t values (?, ?, ?)", rows)
    for _ in range(400):
        condition = f"{drawn(draw, draw.randint(0, 3))} or a = 'x'"
        if not row_expression(condition).may_be_true([("a",)]):
            never += 1
            assert database.sql("from t").filter(condition).fetchall() == [], condition
    assert never > 40
