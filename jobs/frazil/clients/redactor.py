"""Masking of secret values in any text that leaves the process: log lines, exceptions, a dead letter's message."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from threading import Lock
from urllib.parse import quote

MASK = "[redacted]"

SHORTEST = 3
"""Values of fewer characters are not masked: each text would be shredded, and nothing be hidden."""

SHORTEST_LINE = 16
"""Lines of a value, of a PEM key say, are masked by themselves from this length on: logs break texts into lines."""


class Redactor:
    """Knows the secret values that were read so far, and masks them. Safe to share between threads; `repr` tells
    nothing.
    """

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return "Redactor()"

    def add(self, value: str) -> None:
        """Mask `value` from now on, as it is and as it looks inside URLs, JSON, Python reprs, JAAS lines and base64."""
        if len(value) < SHORTEST or value in self._forms:
            return
        with self._lock:
            self._forms.update(_forms(value))
            # The longest first: a value may be part of another.
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """`text` with every known value replaced by `[redacted]`."""
        pattern = self._pattern
        return pattern.sub(MASK, text) if pattern else text


def _forms(value: str) -> Iterator[str]:
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield value.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")  # as JAAS has it
    yield quote(value, safe="")
    yield base64.b64encode(value.encode()).decode()
    for line in value.splitlines():
        if len(line) >= SHORTEST_LINE and not line.startswith("-----"):
            yield line
