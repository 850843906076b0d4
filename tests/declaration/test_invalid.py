"""The place of an instance that could not be made says nothing, whatever a file does with it."""

from __future__ import annotations

import asyncio
import copy
import datetime
import decimal
import json
import math
import operator
import os
import pickle
import re
import types
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, astuple, fields, replace
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration
from frazil.declaration.invalid import Invalid, is_consequence, text_of

BINARY: list[Callable[[Any, Any], Any]] = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.matmul),
    *(operator.pow, operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, divmod),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
]
UNARY: dict[str, Callable[[Any], Any]] = {
    **{
        each.__name__: each
        for each in (str, repr, ascii, list, tuple, set, dict, len, bool, int, float, complex, bytes)
    },
    **{
        each.__name__: each
        for each in (abs, round, sorted, sum, max, iter, next, reversed, hex, range, chr, print, bin)
    },
    **{each.__name__: each for each in (math.floor, math.ceil, math.trunc, operator.neg, operator.pos, operator.inv)},
    **{each.__name__: each for each in (os.fspath, os.path.basename, Path, asdict, astuple, fields, replace)},
    "f-string": lambda value: f"shop.{value}",
    "f-string of its repr": lambda value: f"{value!r:>10}",
    "format": "shop.{}".format,
    "percent": lambda value: "shop.%s" % value,  # noqa: UP031
    "percent of a number": lambda value: "%d" % value,  # noqa: UP031
    "in it": lambda value: "a" in value,
    "in a tuple": lambda value: value in ("a",),
    "index": lambda value: value[0],
    "as an index": lambda value: "abc"[value],
    "slice": lambda value: "abc"[:value],
    "item": lambda value: operator.setitem(value, 0, 1),
    "no item": lambda value: operator.delitem(value, 0),
    "attribute": lambda value: setattr(value, "name", 1),
    "no attribute": lambda value: delattr(value, "name"),
    "arguments": lambda value: print(*value),
    "named arguments": lambda value: print(**value),
    "with": lambda value: ExitStack().enter_context(value),
    "method": lambda value: f"{value.name.upper().strip()}",
    "await": lambda value: asyncio.run(awaited(value)),
    "unpacked": lambda value: operator.setitem({}, *value),
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "joined": lambda value: ", ".join([value]),
    "prefix": lambda value: "shop".startswith(value),
    "match": lambda value: re.match("a", value),
    "json": json.dumps,
    "decimal": decimal.Decimal,
    "days": lambda value: datetime.timedelta(days=value),
    "getattr": lambda value: getattr("a", value),
    "base class": lambda value: types.new_class("Mine", (value,)),
    "key": lambda value: {}[value],
    "error": lambda value: (_ for _ in ()).throw(ValueError("bad", value)),
    "dunder": lambda value: value.__name__,
}
"""Uses that Python itself refuses before the value is asked."""


async def awaited(value: Any) -> None:
    await value


@pytest.mark.parametrize("use", UNARY)
def test_a_use_ends_the_statement_and_says_nothing(use: str) -> None:
    with pytest.raises(InvalidDeclaration) as raised:
        UNARY[use](Invalid())
    assert raised.value.problems == ()
    assert is_consequence(raised.value)


@pytest.mark.parametrize("use", BINARY, ids=lambda use: use.__name__)
@pytest.mark.parametrize("other", ["shop.%s", 1, 2.5, (1,), None, Invalid()], ids=type)
def test_so_does_an_operation_with_another_value_on_either_side(use: Callable[[Any, Any], Any], other: Any) -> None:
    for pair in ((Invalid(), other), (other, Invalid())):
        with pytest.raises(InvalidDeclaration) as raised:
            use(*pair)
        assert raised.value.problems == ()


@pytest.mark.parametrize("use", REFUSED)
def test_an_error_that_names_it_is_a_consequence(use: str) -> None:
    with pytest.raises((TypeError, AttributeError, LookupError, ValueError)) as raised:
        REFUSED[use](Invalid())
    assert is_consequence(raised.value)


def test_so_is_an_error_that_was_raised_from_one() -> None:
    error = RuntimeError("no table")
    assert not is_consequence(error)
    error.__context__ = InvalidDeclaration(())
    assert is_consequence(error)


@pytest.mark.parametrize(
    "error", [ValueError("Invalid"), OSError(22, "Invalid argument"), TypeError("Invalidated"), None]
)
def test_another_error_is_none(error: Exception | None) -> None:
    assert not is_consequence(error)


def test_parts_of_it_are_silent() -> None:
    assert isinstance(Invalid().topic.name, Invalid)
    assert isinstance(Invalid().method(1, a=2), Invalid)
    assert not hasattr(Invalid(), "__wrapped__")


def test_it_is_copied_pickled_and_a_key() -> None:
    value = Invalid()
    assert {type(copy.copy(value)), type(copy.deepcopy([value])[0]), type(pickle.loads(pickle.dumps(value)))} == {
        Invalid
    }
    assert {value: 1}[value] == 1


def test_an_error_without_a_text_has_an_empty_one() -> None:
    class Wordless(Exception):
        def __str__(self) -> str:
            raise KeyError

    assert text_of(Wordless()) == ""
    assert text_of(ValueError("a\n b")) == "a b"
