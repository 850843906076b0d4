"""Files of records: one JSON value a line, or CSV with a header. Each record keeps its line, for messages."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, BinaryIO

from frazil.declaration.checks.constraints import shown
from frazil.errors import InvalidInput

LARGEST_BYTES = 256 << 20
"""The largest file: all records are in memory before the first one is sent, and take about eight times as much."""

_LONG = re.compile(r"-?(0|[1-9]\d*)")
_DOUBLE = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Line:
    """A record of a file: its JSON text, and where it begins, as `orders.jsonl:7`."""

    place: str
    text: str

    @property
    def value(self) -> Any:
        """The value, with a `Decimal` for each number with a fraction. Raises `InvalidInput` if the text is not JSON."""
        try:
            return json.loads(
                self.text, parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=self._with_names_once
            )
        except RecursionError:
            raise self.wrong("the record is nested too deep") from None
        except json.JSONDecodeError as error:
            raise self.wrong(f"this is not JSON: {error.msg} at column {error.colno}") from None
        except InvalidOperation:
            raise self.wrong("this is not JSON: a number has too large an exponent") from None
        except ValueError as error:
            raise self.wrong(f"this is not JSON: {error}") from None

    def wrong(self, what: str, do: str = "") -> InvalidInput:
        """Return the error about this record."""
        return InvalidInput(what, where=self.place, do=do or "Correct the record; nothing was produced")

    def _with_names_once(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise self.wrong(f"the field {shown(twice)} is twice in one object")
        return found


def read_records(file: str, stdin: BinaryIO | None) -> list[Line]:
    """Return the records of a file: CSV if its name ends in `.csv`, else JSON lines; those of `stdin` for `-`.

    Empty lines are no records. Raises `InvalidInput` if the file is missing, larger than 256 MiB, or not UTF-8.
    """
    name = "stdin" if file == "-" else file
    if file == "-" and stdin is None:
        raise InvalidInput("it is closed", where=name, do="Name a file, or redirect one to stdin")
    content = stdin.read(LARGEST_BYTES + 1) if stdin is not None and file == "-" else _content(Path(file))
    if len(content) > LARGEST_BYTES:
        raise InvalidInput("the file is larger than 256 MiB", where=name, do="Split it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput("this is not UTF-8", where=f"{name}:{line}", do="Save the file as UTF-8") from None
    if name.lower().endswith(".csv"):
        return list(_csv(text, name))
    lines = (line.strip() for line in text.split("\n"))  # a JSON text may hold the other line ends
    return [Line(f"{name}:{number}", line) for number, line in enumerate(lines, start=1) if line]


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise InvalidInput("the file does not exist", where=str(file)) from None
    except OSError as error:
        raise InvalidInput.unreadable(file, error) from None


def _csv(text: str, name: str) -> Iterator[Line]:
    """Yield the rows as JSON objects. The values of a column decide its type; an empty value is null."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        head = next(reader, [])
        if len(set(head)) < len(head) or "" in head:
            raise InvalidInput("a column has no name, or two have the same", where=f"{name}:1", do="Name each column")
        begins = reader.line_num + 1
        for row in reader:
            if row and len(row) != len(head):
                what = f"the row has {len(row)} values, the header {len(head)}"
                raise InvalidInput(what, where=f"{name}:{begins}", do="Correct the row; nothing was produced")
            if row:
                rows.append((begins, row))
            begins = reader.line_num + 1
    except csv.Error as error:
        what = f"this is not CSV: {error}"
        raise InvalidInput(what, where=f"{name}:{reader.line_num}", do="Correct it; nothing was produced") from None
    columns = [_column([row[index] for _, row in rows]) for index in range(len(head))]
    for number, row in rows:
        values = (f"{json.dumps(column)}: {of(text)}" for column, of, text in zip(head, columns, row, strict=True))
        yield Line(f"{name}:{number}", f"{{{', '.join(values)}}}")


def _column(values: Sequence[str]) -> Callable[[str], str]:
    """Return how the values of a column become JSON: as numbers or booleans if all of them are, else as strings."""
    there = [value for value in values if value]
    are_numbers = there and (all(map(_LONG.fullmatch, there)) or all(map(_DOUBLE.fullmatch, there)))
    if are_numbers or (there and {*there} <= {"true", "false"}):
        return lambda text: text or "null"
    return lambda text: json.dumps(text) if text else "null"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
