"""Checks of a Confluent resource's arguments, made when the arguments are given and not by Terraform later.

The fields' hints hold types and rules, as in declarations. A value that Terraform fills in (a token) is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from frazil.declaration.checks.constraints import Rule, matching
from frazil.declaration.checks.problems import InvalidDeclaration, Problem, Refusal
from frazil.declaration.checks.validation import field_problems, root_of
from infra.tf import MARKER


def member_of(*allowed: str) -> Rule:
    """Return the rule that a value is one of a few words."""
    return matching("|".join(allowed), f"one of {', '.join(allowed)}", "Write one of them")


def milliseconds(least: int) -> Rule:
    """Return the rule for a duration in milliseconds, as text: Kafka and Confluent write them so."""

    def refusal(value: str) -> Refusal | None:
        if value.isascii() and value.isdigit() and int(value) >= least:
            return None
        return Refusal(f"{value!r} is no number of milliseconds from {least}", "Write digits only, in quotes")

    return Rule(refusal)


def is_token(value: object) -> bool:
    """Return whether Terraform fills this in: CDKTF's marker of a value that is not known yet."""
    return isinstance(value, str) and MARKER in value


def check(arguments: Any) -> None:
    """Raise `InvalidDeclaration` with every problem of a dataclass of arguments, those of its blocks excepted: a block
    that exists is valid."""
    cls: Any = type(arguments)
    values = {f.name: getattr(arguments, f.name) for f in fields(cls) if f.name not in cls.VERBATIM}
    known = {name: value for name, value in values.items() if not is_token(value)}
    problems, _ = field_problems(cls, known, root_of(cls))
    problems += [problem.moved("", f"{root_of(cls)}.") for problem in _one_of_each(arguments)]
    if problems:
        raise InvalidDeclaration(problems)


def _one_of_each(arguments: Any) -> Iterator[Problem]:
    """Yield a problem for each group of blocks of which exactly one must be given, and is not."""
    for group in arguments.EXACTLY_ONE:
        given = [name for name in group if getattr(arguments, name) is not None]
        if len(given) != 1:
            said = f"{' and '.join(given)} are given" if given else "none is given"
            yield Problem(group[0], f"of {', '.join(group)} {said}", "Give exactly one of them")


def plain(value: Any) -> Any:
    """Return arguments as Terraform's JSON: no empty arguments, and nothing in a text that Terraform would evaluate."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {f.name: plain(getattr(value, f.name)) for f in fields(value)}
        return {name: part for name, part in named.items() if part is not None}
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, str) and not is_token(value):
        return value.replace("${", "$${").replace("%{", "%%{")
    return value
