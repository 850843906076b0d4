"""The list of a `select`, as people write it: expressions with their names, and stars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from frazil.declaration.checks.column_rules import column_name_refusal
from frazil.declaration.checks.constraints import shown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.checks.sql_expressions import RowExpression, refused, row_expression, tokens_of

_DO = "Write columns, expressions with a name such as amount / 100 as euros, and * except (name)"


@dataclass(frozen=True, slots=True)
class Selected:
    """One element of a list: the `value` of the column `name`.

    A star has no name: all columns but `excepted`, or, with a value, all fields of that struct.
    """

    name: str
    value: RowExpression | None
    excepted: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def select_list(text: str) -> tuple[Selected, ...]:
    """Return the elements of a list. Raises `InvalidDeclaration` with its one problem."""
    found = tuple(_element(text, tokens) for tokens in _split(tokens_of(text)))
    if not found:
        raise refused("it selects nothing", _DO)
    names = [one.name for one in found if one.name]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise refused(f"it has two columns {twice}", "Give one of them another name")
    return found


def _split(tokens: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the tokens between commas that are in no brackets."""
    if not tokens:
        return
    depth, begin = 0, 0
    for at, token in enumerate(tokens):
        kind = token.token_type.name
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if kind == "COMMA" and depth == 0:
            yield tokens[begin:at]
            begin = at + 1
    yield tokens[begin:]


_OPEN, _CLOSE = ("L_PAREN", "L_BRACKET", "L_BRACE"), ("R_PAREN", "R_BRACKET", "R_BRACE")


def _element(text: str, tokens: Sequence[Any]) -> Selected:
    kinds = [token.token_type.name for token in tokens]
    if not kinds:
        raise refused("it has nothing before or after a comma", _DO)
    written = text[tokens[0].start : tokens[-1].end + 1]
    if kinds[0] == "STAR":
        return Selected("", None, _excepted(written, tokens[1:]))
    if kinds[-2:] == ["DOT", "STAR"]:
        value = _expression(text, tokens[:-2])
        if not value.path:
            raise refused(f"{shown(written)} is not all fields of a struct", "Write it like customer.*")
        return Selected("", value)
    if len(kinds) > 2 and kinds[-2] == "ALIAS":
        return Selected(_name(tokens[-1].text), _expression(text, tokens[:-2]))
    value = _expression(text, tokens)
    if not value.path or kinds[-1] == "ALIAS":
        raise refused(f"{shown(written)} has no name", f"Write {shown(written)[1:-1]} as name")
    return Selected(_name(value.path[-1]), value)


def _expression(text: str, tokens: Sequence[Any]) -> RowExpression:
    return row_expression(text[tokens[0].start : tokens[-1].end + 1], may_be_constant=True)


def _excepted(written: str, tokens: Sequence[Any]) -> tuple[str, ...]:
    """Return the names after a star."""
    if not tokens:
        return ()
    words = [token.text for token in tokens]
    names, commas = words[2:-1:2], words[3:-1:2]
    if words[0].lower() != "except" or [words[1], words[-1]] != ["(", ")"] or set(commas) - {","} or not names:
        raise refused(f"{shown(written)} is neither * nor * except (name)", _DO)
    return tuple(_name(name) for name in names)


def _name(name: str) -> str:
    if refusal := column_name_refusal(name):
        raise InvalidDeclaration([Problem("", refusal.what, refusal.do)])
    return name
