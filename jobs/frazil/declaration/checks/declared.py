"""Classes of declared values: frozen, keyword-only dataclasses whose constructor raises every problem of its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar, dataclass_transform

from frazil.declaration.checks.constraints import below, unknown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.checks.validation import (
    chosen,
    field_problems,
    hints,
    required_fields,
    root_of,
    taken_apart,
    validate,
    wanted,
)

T = TypeVar("T")

if TYPE_CHECKING:

    class Chosen(Generic[T]):
        """A field that holds a `T` and is given a `T` or its text. Type checkers see a descriptor."""

        def __get__(self, instance: object, owner: Any) -> T: ...
        def __set__(self, instance: object, value: T | str) -> None: ...

else:

    class Chosen:
        """A field that holds a `T` and is given a `T` or its text. When the program runs, the hint is `T` itself."""

        def __class_getitem__(cls, kind):
            """Return the type that the field holds."""
            return kind


def default(member: object) -> Any:
    """Return the default of a `Chosen` field as it is; type checkers take it for a descriptor."""
    return member


def required() -> Any:
    """Return a `Chosen` field without a default. Type checkers take it for one with a default; the constructor does not."""
    return field()


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def declared(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass, whose constructor raises `InvalidDeclaration` with every problem of the instance.

    Misspelt and missing arguments are problems too. `_contradictions` of the class yields the problems of several fields. A class
    with a `__post_init__` of its own calls `validate` there.
    """
    if "__post_init__" not in cls.__dict__:
        cls.__post_init__ = lambda self: validate(self, getattr(self, "_contradictions", tuple))  # type: ignore[attr-defined]
    made: Any = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    construct = made.__init__

    @wraps(construct)
    def construct_or_refuse(self: Any, *args: Any, **named: Any) -> None:
        positional = [each.name for each in fields(made) if not each.kw_only]
        given = dict(zip(positional, args, strict=False)) | named
        problems = [*_argument_problems(made, given)]
        if problems:
            known = {name: value for name, value in given.items() if name in hints(made)}
            problems += field_problems(made, chosen(made, known), "")[0]
            raise InvalidDeclaration(problem.moved("", root_of(made)) for problem in problems)
        construct(self, *args, **named)

    made.__init__ = construct_or_refuse
    checked: type[T] = made
    return checked


def _argument_problems(cls: Any, given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield misspelt and missing arguments, with paths below the instance."""
    known = hints(cls)
    for name in given:
        if name not in known:
            yield Problem(below("", name), *unknown(name, known))
    for name in required_fields(cls):
        if name not in given:
            yield Problem(f".{name}", "the field is missing", f"Write {wanted(taken_apart(known[name]))}")
