"""Dates and times as JSON has them: by RFC 3339, and with offsets without a colon, as Java's older libraries do."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from frazil.schemas.types import Kind

_DAY = r"(?!0000)\d{4}-\d{2}-\d{2}"
_TIME = r"[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?"
WRITTEN = {
    Kind.DATE: f"^{_DAY}$",
    Kind.TIMESTAMP: f"^{_DAY}{_TIME}$",
    Kind.TIMESTAMPTZ: rf"^{_DAY}{_TIME}([Zz]|[+-]\d{{2}}:?\d{{2}})$",
}
"""A string of these kinds must match this."""
PAST_MICROSECONDS = r"\.\d{6}\d*[1-9]"
"""A time that has more digits than its column."""
_COMPILED = {kind: re.compile(pattern, re.ASCII) for kind, pattern in WRITTEN.items()}
_LARGEST_OFFSET = timedelta(hours=18)
"""Of a column's values, as Java has it."""


def is_written(text: str, kind: Kind) -> bool:
    """Return whether a text is a value of a column of the kind: written so, of the calendar, and in the years 1 to 9999."""
    if not _COMPILED[kind].fullmatch(text):
        return False
    try:
        day = date.fromisoformat(text[:10])
        if kind is Kind.DATE:
            return True
        at = datetime(day.year, day.month, day.day, int(text[11:13]), int(text[14:16]), int(text[17:19]))
        at - _offset(text) if kind is Kind.TIMESTAMPTZ else at
    except (ValueError, OverflowError):
        return False
    return True


def _offset(text: str) -> timedelta:
    if text[-1] in "Zz":
        return timedelta()
    digits = text[-6:].replace(":", "")[-5:]
    hours, minutes = int(digits[1:3]), int(digits[3:5])
    found = timedelta(hours=hours, minutes=minutes)
    if minutes > 59 or found > _LARGEST_OFFSET:
        raise ValueError(text)
    return -found if digits[0] == "-" else found
