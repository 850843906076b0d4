"""JSON text, read strictly: UTF-8, each name once in an object, no NaN, no number that Java could not hold."""

from __future__ import annotations

import json
from typing import Any

from frazil.declaration.constraints import shown
from frazil.declaration.problems import InvalidDeclaration, Problem

_LONGEST_NUMBER = len("-9223372036854775808")


def parsed(text: bytes, name: str) -> Any:
    """Return the JSON value of the text; raises `InvalidDeclaration` about `name` if it is not JSON, or ambiguous."""
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [key for key, _ in pairs]
        if len(set(names)) < len(names):
            twice.extend(key for key in dict.fromkeys(names) if names.count(key) > 1)
        return dict(pairs)

    try:
        value = json.loads(
            text.decode("utf-8"), object_pairs_hook=unique, parse_constant=_refuse_constant, parse_int=_bounded
        )
    except UnicodeDecodeError as error:
        raise _invalid(name, f"byte {error.start} is not UTF-8", "Save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _invalid(name, f"this is not JSON: {error.msg} at {place}", "Correct it there") from None
    except RecursionError:
        raise _invalid(
            name, "the JSON is nested too deep", "No document of Frazil's is: look at what wrote it"
        ) from None
    except ValueError as error:
        raise _invalid(name, str(error), "Write a number that fits in 64 bits") from None
    if twice:
        raise InvalidDeclaration(
            Problem(name, f"the field {shown(key)} appears twice in one object", "Keep one of them") for key in twice
        )
    return value


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _bounded(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _invalid(name: str, what: str, do: str) -> InvalidDeclaration:
    return InvalidDeclaration([Problem(name, what, do)])
