"""Counts, sizes, time spans and texts of others, as people read them."""

from __future__ import annotations

import unicodedata

NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's control and format characters, halves of surrogate pairs, and its own line and paragraph ends."""


def plain(text: str) -> str:
    """Return a text from a record, a schema or a service as a terminal may print it: on one line, without control characters.

    Whatever moves the cursor, sets colours, turns the direction of writing or has no UTF-8 is shown as its escape:
    `\\x1b`, `\\u202e`, `\\ud800`.
    """
    return "".join(repr(c)[1:-1] if unicodedata.category(c) in NOT_SHOWN else c for c in text)


def number(value: int | None) -> str:
    """Return a count for people: `336,776`."""
    return "–" if value is None else f"{value:,}"


def duration(seconds: float | None) -> str:
    """Return a time span for people: `0.8 s`, `12 s`, `3 min`, `5 h`, `4 d`."""
    if seconds is None:
        return "–"
    for unit, size, limit in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < limit:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 and unit == "s" else f"{value:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def size(count: int) -> str:
    """Return a number of bytes for people: `512 B`, `1.2 MB`, `80 GB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.1f} {unit}" if value < 10 and unit != "B" else f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def rate(per_second: float | None) -> str:
    """Return records per second for people."""
    if per_second is None:
        return "–"
    return f"{per_second:,.1f}/s" if 0 < per_second < 100 else f"{per_second:,.0f}/s"
