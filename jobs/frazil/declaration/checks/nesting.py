"""The limit of levels in nested JSON. Python's own limit differs between its versions, and between callers."""

from __future__ import annotations

from typing import Any, TypeVar

LEVELS = 400
"""Objects and arrays within each other that are read. Functions that call themselves for each level bear this many."""

T = TypeVar("T")


def bounded(value: T, levels: int = LEVELS) -> T:
    """Return a value that `json` has read. Raises `RecursionError`, as `json` does, if it has more levels than these."""
    row: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        inside = (each.values() if isinstance(each, dict) else each for each in row)
        row = [part for parts in inside for part in parts if isinstance(part, dict | list)]
        if not row:
            break
    if row:
        raise RecursionError(f"more than {levels} levels")
    return value
