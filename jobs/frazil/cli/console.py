"""The places of output: results to stdout, for people by rich or as one JSON object; progress and logs to stderr."""

from __future__ import annotations

import json
import os
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

from frazil.clients.secrets import Redactor
from frazil.errors import InvalidInput
from frazil.job.entry_point import log_line
from frazil.status.shown_values import NOT_SHOWN
from frazil.status.shown_values import duration as duration
from frazil.status.shown_values import number as number
from frazil.status.shown_values import plain as plain
from frazil.status.shown_values import size as size

WIDE = 160
"""Columns of a file or a pipe: lines are not broken there."""

GAP = 2
"""Spaces between two columns of a table."""

NAME = 24
"""Characters of a check's name, up to which what was found is aligned."""

TEXT = 12
"""Characters that a column of text must have; what is longer is folded."""

SIGNS = {
    **dict.fromkeys(("ok", "shown"), ("✓", "ok  ", "green")),
    "warning": ("!", "warn", "yellow"),
    "not yet": ("…", "wait", "yellow"),
    **dict.fromkeys(("skipped", "not shown here"), ("–", "skip", "dim")),
    "failed": ("✗", "FAIL", "red"),
}
"""The sign of each result of a check or a probe, a word where stdout has no such sign, and a style."""


def out() -> Console:
    """Return a new console for results: stdout may have been replaced, by a test or a pager."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDE)


def err() -> Console:
    """Return the console of progress."""
    return Console(file=sys.stderr, highlight=False)


def say(text: str, style: str = "", *, to: Console | None = None) -> None:
    """Print one line of results without control characters. Only a given console folds it."""
    (to or out()).print(plain(text), style=style or None, markup=False, soft_wrap=to is None)


def note(text: str, style: str = "") -> None:
    """Print one line of progress on stderr."""
    err().print(plain(text), style=style or None, markup=False, soft_wrap=True)


def checked(result: str, name: str, found: str, style: str = "") -> Text:
    """Return the line of a check or a probe."""
    sign, word, colour = SIGNS[result]
    try:
        "✓✗!–…".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        sign = word
    return Text.assemble((sign, colour), (f" {plain(name):{NAME}} {plain(found)}", style))


def counted(counts: Mapping[str, int]) -> Text:
    """Return the line that ends checks: how many have each result."""
    return Text(", ".join(f"{number} {name}" for name, number in counts.items() if number))


def is_watched() -> bool:
    """Return whether stderr is a terminal."""
    return sys.stderr.isatty()


def show_json(document: Mapping[str, Any]) -> None:
    """Print the one JSON object that a command with `--json` answers."""
    sys.stdout.write(_json(document, indent=2) + "\n")


def show_json_line(document: Mapping[str, Any]) -> None:
    """Print a JSON object on one line, at once: one of several that a command prints one after the other."""
    sys.stdout.write(_json(document) + "\n")
    sys.stdout.flush()


def print_error(text: str) -> None:
    """Print an error, `error: ` before each of its lines."""
    for line in text.splitlines() or [""]:
        sys.stderr.write(f"error: {plain(line)}\n")
    sys.stderr.flush()


class Fitting(Table):
    """A table that fits a narrow screen: it omits columns before it would cut or fold a number.

    If it still does not fit, each row is printed as lines of `heading: cell`.
    """

    dropped: Sequence[str] = ()
    """Headings of the columns to omit, the first one first."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print the widest version that fits."""
        kept, dropped = list(self.columns), list(self.dropped)
        while dropped and _needed(kept) > options.max_width:
            name = dropped.pop(0)
            kept = [column for column in kept if str(column.header) != name]
        if _needed(kept) > options.max_width:
            yield from self._lines(kept)
            return
        fitted = copy(self)
        fitted.columns = [replace(column, _index=index) for index, column in enumerate(kept)]
        yield from Table.__rich_console__(fitted, console, options)

    def _lines(self, columns: Sequence[Column]) -> Iterator[Text]:
        for row in zip(*(column.cells for column in columns), strict=True):
            for column, cell in zip(columns, row, strict=True):
                head = str(column.header).replace("-\n", "-")
                yield Text(f"{head}: {cell}" if head and self.show_header else str(cell), overflow="fold")
            yield Text()


def _needed(columns: Sequence[Column]) -> int:
    """Return the columns that the screen must have: numbers in full, the longest word of a heading, some of a text."""
    return sum(map(_width, columns)) + GAP * (len(columns) - 1)


def _width(column: Column) -> int:
    heads = str(column.header).splitlines() if column.no_wrap else str(column.header).split()
    head = max(map(cell_len, heads), default=0)
    body = max((cell_len(line) for cell in column.cells for line in str(cell).splitlines()), default=0)
    return max(head, body if column.no_wrap else min(body, TEXT))


def table(*columns: str, right: Sequence[str] = (), drop: Sequence[str] = ()) -> Fitting:
    """Return a table without frills.

    The columns in `right` hold numbers, which are never cut or folded. On a narrow screen the columns in `drop` are omitted,
    the first one first.
    """
    made = Fitting(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    made.dropped = drop
    for column in columns:
        is_number = column in right
        made.add_column(
            Text(column, style="dim"), justify="right" if is_number else "left", overflow="fold", no_wrap=is_number
        )
    return made


def write_at_once(file: Path, data: bytes) -> None:
    """Write a file completely or not at all. Raises `InvalidInput` if it cannot be written."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
        os.replace(draft, file)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise InvalidInput.unwritable(file, error) from None


def log_lines(redactor: Redactor) -> Callable[[Mapping[str, Any]], None]:
    """Return a sink that writes each event as one JSON line on stderr, secrets masked. Safe to share between threads."""
    lock = threading.Lock()

    def line(event: Mapping[str, Any]) -> None:
        with lock:
            sys.stderr.write(redactor.redact(_json(log_line(event))) + "\n")
            sys.stderr.flush()

    return line


def _json(document: Mapping[str, Any], *, indent: int | None = None) -> str:
    """Return JSON text whose strings hold no character that a terminal would act on; to a parser it is the same."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, default=str)
    return "".join(json.dumps(c)[1:-1] if c != "\n" and unicodedata.category(c) in NOT_SHOWN else c for c in text)
