"""Closed sets of values, and the nearest known name of a misspelt one."""

from __future__ import annotations

from difflib import get_close_matches
from enum import EnumType
from typing import TYPE_CHECKING, Any

from frazil.declaration.constraints import below
from frazil.declaration.problems import Problem, Refusal


class Choices(EnumType):
    """The metaclass of a closed set. A misspelt member is a problem that names the nearest one."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name):
            """Raise `AttributeError`, or return an `Invalid` value where the problems of a file are collected."""
            if name.startswith("_"):
                raise AttributeError(name)
            return _refused(cls, name, unknown(name, cls.__members__, "member"), AttributeError)

        def __getitem__(cls, name):
            """Return the member of a name; else raise `KeyError`, or return an `Invalid` value."""
            if name in cls.__members__:
                return super().__getitem__(name)
            return _refused(cls, name, unknown(name, cls.__members__, "member"), KeyError)

        def __call__(cls, value, *args, **kwargs):
            """Return the member of a value; else raise `ValueError`, or return an `Invalid` value."""
            try:
                return super().__call__(value, *args, **kwargs)
            except ValueError:
                return _refused(cls, value, unknown(value, [*cls], "value"), ValueError)


def _refused(cls: type, name: object, refusal: Refusal, error: type[Exception]) -> object:
    """Return an `Invalid` value where the problems of a file are collected, else raise the error."""
    from frazil.declaration.declared import collected, invalid

    if collected() is not None:
        return invalid([Problem(below("", name), *refusal)], cls)
    raise error(f"{below(cls.__name__, name)}: {refusal.what}. {refusal.do}")


def unknown(name: object, known: Any, what: str = "field") -> Refusal:
    """Return why an unknown name is refused, and the nearest known name."""
    text = str(name)
    folded = {each.lower(): each for each in known}
    near = get_close_matches(text.lower(), folded, n=1)
    said = "" if text.isascii() else f"; {text!a} has letters beyond a-z that look like others"
    do = f"Did you mean {folded[near[0]]}?" if near else f"Remove it; the {what}s are {', '.join(known)}"
    return Refusal(f"there is no such {what}{said}", do)
