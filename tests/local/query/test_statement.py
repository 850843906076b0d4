"""Only one statement that reads is run: DuckDB's parser decides."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidInput
from frazil.local.query.answer import check_statement


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "SELECT 1;",
        "with x as (select 1) select * from x",
        "describe shop.orders",
        "show tables",
        "explain select 1",
        "explain analyze select 'copy'",
        "explain (analyze, format json) from x",
        "-- a comment\nselect 'drop table x'",
    ],
)
def test_a_statement_that_reads_passes(text: str) -> None:
    check_statement(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("copy (select 1) to 'x'", "a statement COPY does more than read"),
        ("set enable_external_access = true", "a statement SET does more than read"),
        ("attach 'x'", "a statement ATTACH does more than read"),
        ("/* select */ delete from x returning *", "a statement DELETE does more than read"),
        ("explain analyze copy (select 1) to 'x'", "a statement COPY does more than read"),
        ("explain /* é */ analyze insert into x values (1)", "a statement INSERT does more than read"),
        ("select 1; drop table x", "there are several statements"),
        ("", "there is no statement"),
        ("select '\udcff'", "the text is not UTF-8"),
        ("selec 1", 'Parser Error: syntax error at or near "selec"'),
    ],
)
def test_any_other_is_one_line(text: str, why: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        check_statement(text)
    assert str(wrong.value).startswith(f"SQL: {why}")
    assert "\n" not in str(wrong.value)
