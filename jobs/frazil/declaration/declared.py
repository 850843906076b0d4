"""Declared classes: what a constructor says to a misspelt, missing or doubled argument, and how a file's problems are collected.

A constructor raises `InvalidDeclaration` with all of its problems. Python makes a pipeline's topic before the pipeline, so an
exception about the topic would hide the problems of the table. While `collecting`, a constructor therefore returns an `Invalid`
value instead, which the constructor around it takes the problems from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, field, fields
from types import FrameType
from typing import TYPE_CHECKING, Any

from frazil.declaration.choice import unknown
from frazil.declaration.constraints import below
from frazil.declaration.invalid import Invalid, Located, invalid_parts
from frazil.declaration.problems import InvalidDeclaration, Problem
from frazil.declaration.validation import chosen, field_problems, hints, root_of, taken_apart, wanted


@dataclass(slots=True)
class Collected:
    """The invalid values of one file that no other value has taken the problems of, in the order of their making."""

    file: str
    unclaimed: dict[int, tuple[str, Invalid]] = field(default_factory=dict)
    made: dict[int, tuple[object, str, int]] = field(default_factory=dict)
    """The valid instances by their id, each with the file and line that made it."""

    def taken(self) -> list[Located]:
        """Return the problems found since it was last asked, in the order of their lines."""
        problems = [
            located._replace(problem=located.problem.moved("", root))
            for root, value in self.unclaimed.values()
            for located in value.problems
        ]
        self.unclaimed.clear()
        return sorted(problems, key=lambda located: (located.file, located.line))

    def place(self) -> tuple[str, int]:
        """Return the line of the file that is running, or that of a module which it imports."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if file == self.file or (frame.f_code.co_name == "<module>" and not file.startswith("<")):
                return file, frame.f_lineno
            frame = frame.f_back
        return self.file, 0


_COLLECTED: ContextVar[Collected | None] = ContextVar("collected", default=None)


def collected() -> Collected | None:
    """Return what is being collected, or None: then constructors raise."""
    return _COLLECTED.get()


@contextmanager
def collecting(file: str) -> Iterator[Collected]:
    """Have constructors return `Invalid` instead of raising, and collect them; `file` is the one whose lines are named."""
    notes = Collected(file)
    token = _COLLECTED.set(notes)
    try:
        yield notes
    finally:
        _COLLECTED.reset(token)


def invalid(problems: list[Problem], cls: type, claimed: tuple[Located, ...] = ()) -> Invalid:
    """Return the invalid value of a class, noted where problems are collected."""
    notes = _COLLECTED.get()
    if notes is None:
        return Invalid(claimed)
    file, line = notes.place()
    value = Invalid(claimed + tuple(Located(file, line, problem) for problem in problems))
    notes.unclaimed[id(value)] = (root_of(cls), value)
    return value


class Declared(type):
    """The metaclass of what people write. It refuses arguments as a document's fields are refused."""

    if not TYPE_CHECKING:

        def __call__(cls, *args, **kwargs):
            """Return the instance; raise `InvalidDeclaration` with every problem, or collect them."""
            root, notes = root_of(cls), _COLLECTED.get()
            problems = [*_argument_problems(cls, args, kwargs)]
            given = {**dict(zip(_positional(cls), args, strict=False)), **kwargs}
            broken = {name: parts for name, value in given.items() if (parts := [*invalid_parts(value)])}
            claimed = _claimed(broken, notes)
            if not problems and not broken:
                try:
                    made = super().__call__(*args, **kwargs)
                    if notes is not None:
                        notes.made[id(made)] = (made, *notes.place())
                    return made
                except InvalidDeclaration as error:
                    if notes is None:
                        raise
                    problems = [problem.moved(root, "") for problem in error.problems]
                    return invalid(problems, cls)
            known = hints(cls)
            readable = {k: v for k, v in given.items() if k in known and k not in broken}
            problems += field_problems(cls, chosen(cls, readable), "")[0]
            if notes is None:
                raise InvalidDeclaration([problem.moved("", root) for problem in problems])
            return invalid(problems, cls, claimed)


def _positional(cls: Any) -> list[str]:
    return [each.name for each in fields(cls) if not each.kw_only]


def _argument_problems(cls: Any, args: tuple[Any, ...], given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what Python would raise as one TypeError, with paths below the instance."""
    positional, known = _positional(cls), hints(cls)
    if len(args) > len(positional):
        names = [name for name in known if name not in positional and name not in given]
        do = f"Name what follows: {', '.join(f'{name}=…' for name in names[: len(args) - len(positional)])}"
        what = f"{cls.__name__} takes {'one value' if positional else 'no value'} without a name, not {len(args)}"
        yield Problem("", what, do)
    for name in given:
        if name not in known:
            yield Problem(below("", name), *unknown(name, known))
        elif name in positional[: len(args)]:
            yield Problem(below("", name), "the value is given twice", "Keep one of the two")
    if len(args) > len(positional):
        return
    for each in fields(cls):
        is_required = each.default is MISSING and each.default_factory is MISSING
        if is_required and each.name not in given and each.name not in positional[: len(args)]:
            yield Problem(f".{each.name}", "the field is missing", f"Write {wanted(taken_apart(known[each.name]))}")


def _claimed(broken: Mapping[str, list[tuple[str, Invalid]]], notes: Collected | None) -> tuple[Located, ...]:
    """Return the problems of the invalid values in the arguments; nothing else reports them any more."""
    found: list[Located] = []
    for name, parts in broken.items():
        for path, value in parts:
            if notes is not None and notes.unclaimed.pop(id(value), None) is not None:
                moved = [each.problem.moved("", f".{name}{path}") for each in value.problems]
                found += [each._replace(problem=problem) for each, problem in zip(value.problems, moved, strict=True)]
    return tuple(found)
