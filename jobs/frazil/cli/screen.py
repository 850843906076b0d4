"""Where output goes: results to stdout, for people by rich or as one JSON object; progress and logs to stderr."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from frazil.clients.redactor import Redactor

WIDE = 160
"""Columns where nobody looks: lines in a file or a pipe are not broken."""


def out() -> Console:
    """The console of results. Made anew each time: stdout may have been replaced, by a test or a pager."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDE)


def err() -> Console:
    """The console of progress."""
    return Console(file=sys.stderr, highlight=False)


def is_watched() -> bool:
    """Whether a person looks at stderr."""
    return sys.stderr.isatty()


def show_json(document: Mapping[str, Any]) -> None:
    """Print the one JSON object that a command with `--json` answers."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")


def tell_error(text: str) -> None:
    """Print an error, `error: ` before each of its lines."""
    for line in text.splitlines() or [""]:
        sys.stderr.write(f"error: {line}\n")
    sys.stderr.flush()


def table(*columns: str, right: tuple[str, ...] = (), title: str | None = None) -> Table:
    """A table without frills; the columns in `right` hold numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(Text(column, style="dim"), justify="right" if column in right else "left", overflow="fold")
    return made


def number(value: int | None) -> str:
    """A count for people: `336,776`."""
    return "–" if value is None else f"{value:,}"


def duration(seconds: float | None) -> str:
    """A time span for people: `0.8 s`, `12 s`, `3 min`, `5 h`, `4 d`."""
    if seconds is None:
        return "–"
    for unit, size, limit in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < limit:
            value = seconds / size
            return f"{value:.1f} {unit}" if value < 10 and unit == "s" else f"{value:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def log_lines(redactor: Redactor) -> Callable[[Mapping[str, Any]], None]:
    """A sink that writes each event as one JSON line on stderr, secrets masked. Safe to share between threads."""
    lock = threading.Lock()

    def line(event: Mapping[str, Any]) -> None:
        with lock:
            sys.stderr.write(redactor.redact(json.dumps(event, ensure_ascii=False)) + "\n")
            sys.stderr.flush()

    return line
