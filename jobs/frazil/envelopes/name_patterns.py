"""The patterns of names in a connector's settings. They are Java's, and Python cannot read all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

UNREADABLE = (re.error, OverflowError, RecursionError)
"""What Python raises for a pattern that it cannot read."""


def literal(pattern: str) -> str:
    """Return the one name that a pattern is of; empty if it may be of others."""
    is_one = re.fullmatch(r"(?:\\\W|[\w$.\- #])+", pattern)
    return re.sub(r"\\(\W)", r"\1", pattern) if is_one else ""


def is_readable(pattern: str) -> bool:
    """Return whether Python can read a pattern."""
    try:
        re.compile(pattern)
    except UNREADABLE:
        return False
    return True


def matches(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of these patterns is one of a name, in any case; one that Python cannot read may be."""
    for pattern in patterns:
        try:
            if re.fullmatch(pattern, name, re.IGNORECASE):
                return True
        except UNREADABLE:
            return True
    return False
