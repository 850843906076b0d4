"""What an expression over a row may hold, and what is written of it for Spark."""

from __future__ import annotations

import pytest

from frazil.declaration import InvalidDeclaration, Shape
from frazil.declaration.checks.sql_expressions import EXAMPLES, row_expression

REFUSED = {
    "current_timestamp() > t": "the function current_timestamp",
    "now() > t": "the function now",
    "rand() > n": "the function rand",
    "uuid() = s": "the function uuid",
    "t > timestamp 'now'": "is not a date",
    "d > cast('today' as date)": "is not a date",
    "d > cast(concat('to', 'day') as date)": "reads no column",
    "t > to_timestamp('now')": "reads no column",
    "cast(case when true then 'now' end as timestamp) < t": "reads no column",
    "cast(n as decimal(`10, 2)) > 1 or rand() > 0.5 or cast(n as decimal(10`)) = 1": "is not",
    "t + interval 1 `day or rand() > 0.5 or t`": "is not",
    "t - interval 1 day 2 hours < t": "several units",
    "t - interval n day < t": "needs a whole number",
    "t - interval '1-2' year to month < t": "needs a whole number",
    "r.upper(s) = 'a'": "is not a field",
    "d > date '2026-W05-6'": "is not a date",
    "n in ()": "lists nothing",
    r"concat(s, '$\{spark.x}') = 'a'": "it holds ${",
    r"concat(s, '\u0024{env:HOME}') = 'a'": "it holds ${",
    "cast(n as decimal(50, 2)) = 1": "is not the size of a type",
    "cast(s as string collate utf8_lcase) = 'A'": "with other parts than a size",
    "cast(s as varchar(3)) = 'a'": "with a length",
    "n = 99999999999999999999999999999999999999999": "too long",
    "n = 99999999999999999999L": "too long",
    "input_file_name() = s": "input_file_name",
    "spark_partition_id() = n": "spark_partition_id",
    "java_method('a', 'b') = s": "java_method",
    "raise_error(s) = s": "raise_error",
    "n in (select 1)": "SELECT 1",
    "exists(l, x -> x > 1)": "is not allowed",
    "sum(n) > 1": "the function sum",
    "row_number() over () = n": "is not allowed",
    "n = :p": ":p",
    "cast(s as struct<x: int>) = r": "STRUCT",
    "n = 1; drop table t": "is not an SQL expression",
    "n as m": "n AS m",
    "s = 'it''s'": "two texts follow each other",
    "1 = 1": "reads no column",
    "lpad(s, n, '0') = '0'": "pads to a width",
    "rpad(s, 2000000000, '0') = '0'": "pads to a width",
    "a) or (b": "not one expression",
    "s rlike '^(a|b)*$'": "repeats a group with choices",
    "s rlike '^((a|b)c)*$'": "repeats a group with choices",
    r"s rlike '^(/([a-z]+|[0-9]+))*$'": "repeats a group with choices",
    r"s rlike r'^(\(a+)+$'": "repeats a group with choices",
    "regexp_replace(s, '(?<x>(?:[^,]*),){2,}', '') = s": "repeats a group with choices",
    "n >": "is not an SQL expression",
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


def test_a_name_without_parentheses_is_a_column_and_arguments_stay_as_they_are() -> None:
    assert row_expression("current_date > d").sql("_row") == "`_row`.`current_date` > `_row`.`d`"
    text = row_expression("datediff(`day, d) or rand() > 0.5`, d) = 1 and to_date(s, 'd.M.y') is null").sql("_row")
    assert text == "DATEDIFF(`_row`.`day, d) or rand() > 0.5`, `_row`.`d`) = 1 AND TO_DATE(`_row`.`s`, 'd.M.y') IS NULL"


@pytest.mark.parametrize("name", ["comment", "set", "show"])
def test_a_column_may_have_the_name_of_a_statement(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert row_expression(f"{name} is not null -- end").sql("r") == f"NOT `r`.`{name}` IS NULL"
    assert capsys.readouterr().err == ""


def test_an_expression_is_the_same_after_it_was_written() -> None:
    """Names are `t.x` then, and all else stays: what is written is read as the same tree again."""
    for text in EXAMPLES:
        once = row_expression(text).sql("t")
        assert row_expression(once).sql("t").replace("`t`.`t`.", "`t`.") == once


def test_the_parts_that_may_fail_are_calls_casts_and_divisions() -> None:
    text = "case when cast(s as int) / n > 1 then lower(s) = 'a' end and not n = 2"
    found = [part for part, _ in row_expression(text).parts("_row")]
    assert found == ["CAST(s AS INT) / n", "CAST(s AS INT)", "LOWER(s)"]


@pytest.mark.parametrize(
    "pattern", ["^(abc)*$", "^(a|b)?c$", "[(|)]*", r"\(a|b\)*", r"\Q(a|b)*\E", "^(?:[a-z_]){2,}$", "(a*)(b|c)"]
)
def test_other_groups_and_choices_are_allowed(pattern: str) -> None:
    assert row_expression(f"s rlike r'{pattern}'")
