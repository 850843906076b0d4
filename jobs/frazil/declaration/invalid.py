"""What a constructor returns instead of an invalid instance, while the problems of a file are collected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn

from frazil.declaration.constraints import shown
from frazil.declaration.problems import InvalidDeclaration, Problem


class Located(NamedTuple):
    """A problem, and the file and line that made it."""

    file: str
    line: int
    problem: Problem


class Invalid:
    """The place of an instance that could not be made. Its problems have paths below the instance.

    Its attributes are `Invalid` too, without problems of their own, and so is what a call of it returns. Any other operation
    ends the statement, by an `InvalidDeclaration` without problems: what it would compute is no news.
    """

    def __init__(self, problems: tuple[Located, ...] = ()) -> None:
        self.__dict__["problems"] = problems

    problems: tuple[Located, ...]

    def __getattr__(self, name: str) -> Invalid:
        if name.startswith("__"):
            raise AttributeError(f"'Invalid' object has no attribute {name!r}")
        return Invalid()

    def __call__(self, *_: object, **__: object) -> Invalid:  # noqa: D102 # as an attribute: silent
        return Invalid()

    __hash__ = object.__hash__


def _stop(*_: object) -> NoReturn:
    raise InvalidDeclaration(())


_BINARY = (
    *("add", "and", "divmod", "floordiv", "lshift", "matmul", "mod"),
    *("mul", "or", "pow", "rshift", "sub", "truediv", "xor"),
)
_OPERATIONS = (
    *(f"{side}{name}" for name in _BINARY for side in ("", "r")),
    *("abs", "bool", "bytes", "ceil", "complex", "float", "floor", "fspath", "index", "int", "invert", "neg", "pos"),
    *("round", "trunc", "eq", "ne", "lt", "le", "gt", "ge", "contains", "getitem", "setitem", "delitem", "iter", "len"),
    *("next", "reversed", "setattr", "delattr", "repr", "str", "format", "enter", "exit", "aenter", "aexit"),
    *("aiter", "anext", "await"),
)
for _operation in _OPERATIONS:
    setattr(Invalid, f"__{_operation}__", _stop)
Invalid.__dataclass_fields__ = property(_stop)  # type: ignore[attr-defined] # for `replace`, `asdict` and `fields`


def invalid_parts(value: object) -> Iterator[tuple[str, Invalid]]:
    """Yield the invalid values in an argument, each with its path below the argument."""
    if isinstance(value, Invalid):
        yield "", value
    elif isinstance(value, tuple):
        yield from ((f"[{index}]", part) for index, part in enumerate(value) if isinstance(part, Invalid))
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if isinstance(key, Invalid):
                yield "", key
            if isinstance(part, Invalid):
                yield ("" if isinstance(key, Invalid) else f"[{shown(key)}]"), part


def is_consequence(error: BaseException | None) -> bool:
    """Return whether an error, or one that it was raised from, comes from the use of an invalid value."""
    while error is not None:
        if isinstance(error, InvalidDeclaration) and not error.problems:
            return True
        if any(isinstance(argument, Invalid) for argument in error.args):
            return True
        # Functions in C name the type that they refuse, like: expected str instance, Invalid found
        if isinstance(error, TypeError | AttributeError) and re.search(r"\bInvalid\b", text_of(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def text_of(error: BaseException) -> str:
    """Return the error's message on one line; empty if it cannot be made."""
    try:
        return " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the error is of the user's file, and so is its text
        return ""
