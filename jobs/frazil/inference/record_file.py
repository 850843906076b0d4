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
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Line:
    """A record of a file: its JSON text, and where it begins, as `orders.jsonl:7`."""

    place: str
    text: str

    @property
    def value(self) -> Any:
        """The value, with a `Decimal` for each number with a fraction. Raises `InvalidInput` if the text is not JSON.

        DuckDB's reader takes NaN, and fields that an object has twice; both are refused here.
        """
        hooks: dict[str, Any] = {"parse_constant": _refuse, "object_pairs_hook": _with_names_once}
        try:
            value = json.loads(self.text, parse_float=Decimal, **hooks)
            if "\\u" in self.text:
                json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise self.wrong("the record has half a surrogate pair, which UTF-8 does not have") from None
        except InvalidOperation:
            raise self.wrong("this is not JSON: a number has too large an exponent") from None
        except (ValueError, RecursionError) as error:
            raise self.wrong(f"this is not JSON: {error}") from None
        return value

    def wrong(self, what: str, do: str = "Correct the record; nothing was produced") -> InvalidInput:
        """Return the error about this record."""
        return InvalidInput(what, where=self.place, do=do)


def read_records(file: str, stdin: BinaryIO | None) -> list[Line]:
    """Return the records of a file: CSV if its name ends in `.csv`, else JSON lines; those of `stdin` for `-`.

    Empty lines are no records. Raises `InvalidInput` if the file is missing, larger than 256 MiB, or not UTF-8.
    """
    name = "stdin" if file == "-" else file
    try:
        if file != "-":
            with Path(file).open("rb") as opened:
                content = opened.read(LARGEST_BYTES + 1)
        elif stdin is not None:
            content = stdin.read(LARGEST_BYTES + 1)
        else:
            raise InvalidInput("it is closed", where=name, do="Name a file, or redirect one to stdin")
        if len(content) > LARGEST_BYTES:
            raise InvalidInput("the file is larger than 256 MiB", where=name, do="Split it")
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput("this is not UTF-8", where=f"{name}:{line}", do="Save the file as UTF-8") from None
    except OSError as error:
        raise InvalidInput.unreadable(name, error) from None
    if name.lower().endswith(".csv"):
        return list(_csv(text, name))
    lines = (line.strip() for line in text.split("\n"))  # a JSON text may hold the other line ends
    return [Line(f"{name}:{number}", line) for number, line in enumerate(lines, start=1) if line]


def _csv(text: str, name: str) -> Iterator[Line]:
    """Yield the rows as JSON objects. The values of a column decide its type; an empty value is null.

    DuckDB's reader skips the header if a later row has more values, and loses digits of long numbers.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [(f"{name}:{reader.line_num}", row) for row in reader]
    except csv.Error as error:
        raise InvalidInput(
            f"this is not CSV: {error}", where=f"{name}:{reader.reader.line_num}", do="Correct it"
        ) from None
    head = reader.fieldnames or ()
    if len(set(head)) < len(head):
        raise InvalidInput("two columns have the same name", where=f"{name}:1", do="Rename one")
    for place, row in rows:
        if None in row or None in row.values():
            what = f"the row has {'more' if None in row else 'fewer'} values than the header"
            raise InvalidInput(what, where=place, do="Correct the row; nothing was produced")
    written = {column: _column([row[column] for _, row in rows]) for column in head}
    for place, row in rows:
        values = (f"{json.dumps(column)}: {written[column](text)}" for column, text in row.items())
        yield Line(place, f"{{{', '.join(values)}}}")


def _column(values: Sequence[str]) -> Callable[[str], str]:
    """Return how the values of a column become JSON: as numbers or booleans if all of them are, else as strings."""
    there = {value for value in values if value}
    if there <= {"true", "false"} or all(map(_NUMBER.fullmatch, there)):
        return lambda text: text or "null"
    return lambda text: json.dumps(text) if text else "null"


def _with_names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {shown(twice)} is twice in one object")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
