"""Durations as text: an integer and a unit, as in `7 days`."""

from __future__ import annotations

import re

from frazil.declaration.constraints import shown
from frazil.declaration.problems import InvalidDeclaration, Problem

_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400}
_TEXT = re.compile(r"([1-9][0-9]{0,6}) (minute|hour|day)s?", re.ASCII)
LONGEST_DAYS = 36_500


def seconds_of(text: str) -> int:
    """Return the seconds of a duration. Raises `InvalidDeclaration` if the text is none, or more than a hundred years."""
    found = _TEXT.fullmatch(text)
    if found is None:
        do = "Write a number of minutes, hours or days, such as 7 days"
        raise InvalidDeclaration([Problem("", f"{shown(text)} is no duration", do)])
    seconds = int(found[1]) * _SECONDS[found[2]]
    if seconds > LONGEST_DAYS * _SECONDS["day"]:
        raise InvalidDeclaration([Problem("", f"{shown(text)} is out of bounds", f"Write {LONGEST_DAYS} days at most")])
    return seconds
