"""Terraform's expressions in texts of JSON, `${…}`: which of them a stack from elsewhere may have.

It may have those that this version's stacks have in the same argument, with other names of objects. Everything else is refused,
whatever it does: functions read files of the machine that plans or take a secret apart, and references reach each secret of the
state.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache

_SIGN = re.compile(r"[$%]")
_NAMED = re.compile(r"\b((?:aws|confluent)_[a-z0-9_]+|local|outputs|terraform_remote_state)\.[A-Za-z_][A-Za-z0-9_-]*")
_NAME = r"\.[A-Za-z_][A-Za-z0-9_-]*"
_EXPRESSION = re.compile(r'\$\{(?:[^{}"]|"[^"]*")*\}')
_MOST_SHOWN = 80


def form(expression: str) -> str:
    """Return an expression with `*` instead of each name of an object, such as `${aws_vpc.*.id}`."""
    return _NAMED.sub(r"\1.*", expression)


def forms(text: str) -> Iterator[str]:
    """Yield the forms of the expressions in a text of this version's stacks. Raises `ValueError` if it has a nested one."""
    for at in _places(text):
        found = _EXPRESSION.match(text, at)
        if found is None:
            raise ValueError(f"the expression has braces inside: {_shown(text, at)}")
        yield form(found[0])


def problem(text: str, allowed: Collection[str]) -> str:
    """Return why a text has an expression that is not allowed; empty if it has none. `allowed` are forms of expressions."""
    try:
        for at in _places(text):
            if not any(_pattern(each).match(text, at) for each in allowed):
                return f"this version's stacks have no {_shown(text, at)} there"
    except ValueError as error:
        return str(error)
    return ""


@cache
def _pattern(allowed: str) -> re.Pattern[str]:
    return re.compile(re.escape(allowed).replace(r"\.\*", _NAME))


def _places(text: str) -> Iterator[int]:
    """Yield where expressions begin. Raises `ValueError` for other templates, and for an escape with further signs."""
    at = 0
    while (found := _SIGN.search(text, at)) is not None:
        at = found.start()
        if text.startswith(("$${", "%%{"), at):
            if at and text[at - 1] in "$%":
                raise ValueError("it has more signs than an escape has")
            at += 3
        elif text.startswith("%{", at):
            raise ValueError("it has a directive, %{")
        else:
            if text.startswith("${", at):
                yield at
            at += 1


def _shown(text: str, at: int) -> str:
    return text[at : at + _MOST_SHOWN] + ("…" if len(text) > at + _MOST_SHOWN else "")
