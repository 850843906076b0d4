"""What an expression over a row may hold, and what is written of it for Spark."""

from __future__ import annotations

import pytest

from frazil.declaration import InvalidDeclaration, Shape
from frazil.declaration.checks.sql_expressions import EXAMPLES, row_expression

REFUSED = {
    "current_date > d": "CURRENT_DATE",
    "current_timestamp > t": "CURRENT_TIMESTAMP",
    "now() > t": "the function now",
    "rand() > n": "RAND()",
    "uuid() = s": "UUID()",
    "input_file_name() = s": "input_file_name",
    "spark_partition_id() = n": "spark_partition_id",
    "java_method('a', 'b') = s": "java_method",
    "raise_error(s) = s": "raise_error",
    "n in (select 1)": "SELECT 1",
    "exists(l, x -> x > 1)": "EXISTS",
    "sum(n) > 1": "SUM(n)",
    "row_number() over () = n": "ROW_NUMBER",
    "n = :p": ":p",
    "cast(s as struct<x: int>) = r": "STRUCT",
    "n = 1; drop table t": "not one expression",
    "n as m": "n AS m",
    "s = 'it''s'": "two texts follow each other",
    "1 = 1": "reads no column",
    "n >": "is no SQL expression",
    "": "not one expression",
}


@pytest.mark.parametrize(("text", "what"), REFUSED.items())
def test_what_is_no_expression_over_a_row_is_refused(text: str, what: str) -> None:
    with pytest.raises(InvalidDeclaration) as refused:
        Shape(where=text)
    (problem,) = refused.value.problems
    assert problem.path == "shape.where"
    assert what in problem.what


def test_names_are_those_of_the_row_and_are_quoted() -> None:
    expression = row_expression("`odd``name`.x = n /* ${x} */ and M['k'].b.c.d.e is null -- n\n and S = 'a'")
    assert expression.columns == ("odd`name", "n", "m", "s")
    assert expression.sql("_row") == (
        "`_row`.`odd``name`.`x` = `_row`.`n` AND `_row`.`M`['k'].`b`.`c`.`d`.`e` IS NULL AND `_row`.`S` = 'a'"
    )


def test_an_expression_is_the_same_after_it_was_written() -> None:
    """Names are `t.x` then, and all else stays: what is written is read as the same tree again."""
    for text in EXAMPLES:
        once = row_expression(text).sql("t")
        assert row_expression(once).sql("t").replace("`t`.`t`.", "`t`.") == once


def test_the_parts_that_may_fail_are_listed_from_the_inside() -> None:
    found = [text for text, _ in row_expression("cast(s as int) / n > 1 and not n = 2").parts("_row")]
    assert found == ["n = 2", "CAST(s AS INT)", "CAST(s AS INT) / n", "CAST(s AS INT) / n > 1"]
