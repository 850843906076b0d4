"""Masking of secret values in any text that leaves the process: log lines, exceptions, a dead letter's message."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from threading import Lock
from urllib.parse import quote

_NESTING = 3
"""A JAAS line, in the repr of an exception, in a log line of JSON."""

MASK = "[redacted]"

SHORTEST = 3
"""Values of fewer characters are not masked: each text would be shredded, and nothing be hidden."""

SHORTEST_LINE = 16
"""Lines of a value, of a PEM key say, are masked by themselves from this length on: logs break texts into lines."""


class Redactor:
    """Knows the secret values that were read so far, and masks them. Safe to share between threads; `repr` shows
    nothing.
    """

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()
        self._values: dict[str, tuple[str, ...]] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return "Redactor()"

    def add(self, value: str) -> None:
        """Mask `value` from now on, as it is and as it looks inside URLs, JSON, Python reprs, JAAS lines and base64."""
        if len(value) < SHORTEST or value in self._values:
            return
        with self._lock:
            self._values[value] = tuple(_forms(value))
            self._sort()

    def remove(self, value: str) -> None:
        """Mask `value` no longer: it was a token that has expired."""
        with self._lock:
            if self._values.pop(value, None) is not None:
                self._sort()

    def redact(self, text: str) -> str:
        """Return `text` with every known value replaced by `[redacted]`."""
        found = [form for form in self._forms if form in text]
        # One pass, the longest form first: one may be part of another, or of the mask.
        return re.sub("|".join(map(re.escape, found)), MASK, text) if found else text

    def _sort(self) -> None:
        forms = {form for known in self._values.values() for form in known}
        # Readers take no lock: they see the old forms or the new ones.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _forms(value: str) -> Iterator[str]:
    """Yield the value as texts may hold it: escaped for JAAS, JSON, Python's repr, URLs, one inside the other."""
    wholes = {value}
    for _ in range(_NESTING):
        wholes |= {escape(whole) for whole in wholes for escape in _ESCAPES}
    yield from wholes
    yield base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    for line in value.splitlines():
        if len(line) >= SHORTEST_LINE and not line.startswith("-----"):
            yield line


def _in_jaas(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")


_ESCAPES: tuple[Callable[[str], str], ...] = (
    _in_jaas,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: quote(text, safe="", errors="replace"),
)
