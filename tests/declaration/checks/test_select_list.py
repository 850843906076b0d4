"""What a list of columns may hold."""

from __future__ import annotations

import pytest

from frazil.declaration import InvalidDeclaration, Shape
from frazil.declaration.checks.select_list import Selected, select_list
from frazil.declaration.checks.sql_expressions import RowExpression

REFUSED = {
    "": "it selects nothing",
    "-- note": "it selects nothing",
    "a,,b": "nothing before or after a comma",
    "a,": "nothing before or after a comma",
    "a + 1": "has no name",
    "a as": "has no name",
    "a b": "is not allowed",
    "a as x as y": "is not allowed",
    "a as B": "B has upper case",
    "a as `b c`": "is no column's name",
    "a as _kafka_key": "Frazil's or Iceberg's own",
    "a, b as a": "it has two columns a",
    "* except a": "is neither * nor * except",
    "* except (a b)": "is neither * nor * except",
    "* except ()": "is neither * nor * except",
    "*.a": "is neither * nor * except",
    "x.* as y": "is not allowed",
    "(a + 1).*": "is not all fields of a struct",
    "distinct a": "is not an SQL expression",
    "a from t": "is not an SQL expression",
    "a; drop table t": "is not an SQL expression",
    "now() as n": "the function now",
    "count(a) as n": "the function count",
    "(select 1) as n": "is not one expression",
    "'": "is not an SQL expression",
}


@pytest.mark.parametrize(("text", "what"), REFUSED.items())
def test_what_is_no_list_of_columns_is_refused(text: str, what: str) -> None:
    with pytest.raises(InvalidDeclaration) as refused:
        Shape(select=text)
    (problem,) = refused.value.problems
    assert problem.path == "shape.select"
    assert what in problem.what


def test_elements_have_their_names_and_their_own_text() -> None:
    text = "* except (a, b), c.*, d.E, `odd name` as x, if(f = 1, 2, 3) as y, /* , */ 'a, b' as `case` -- end"
    found = [(one.name, one.value and one.value.text, one.excepted) for one in select_list(text)]
    assert found == [
        ("", None, ("a", "b")),
        ("", "c", ()),
        ("e", "d.E", ()),
        ("x", "`odd name`", ()),
        ("y", "if(f = 1, 2, 3)", ()),
        ("case", "'a, b'", ()),
    ]
    assert Shape(select="a").selected == (Selected("a", RowExpression("a")),)
    assert Shape().selected == ()
