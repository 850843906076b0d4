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
        hooks: dict[str, Any] = {
            "parse_float": Decimal,
            "parse_constant": _refuse,
            "object_pairs_hook": _with_names_once,
        }
        try:
            value = json.loads(self.text, **hooks)
            if "\\u" in self.text:
                json.dumps(value, ensure_ascii=False, default=str).encode()  # half a surrogate pair is not UTF-8
        except UnicodeEncodeError:
            raise self.wrong("the record has half a surrogate pair, which UTF-8 does not have") from None
        except RecursionError:
            raise self.wrong("the record is nested too deep") from None
        except InvalidOperation:
            raise self.wrong("this is not JSON: a number has too large an exponent") from None
        except ValueError as error:
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

    DuckDB's reader loses digits of long numbers, and guesses another separator if a row is wrong.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InvalidInput(f"this is not CSV: {error}", where=f"{name}:{reader.line_num}", do="Correct it") from None
    head = rows[0][1] if rows else []
    if len(set(head)) < len(head) or "" in head:
        raise InvalidInput("a column has no name, or two have the same", where=f"{name}:1", do="Name each column")
    for number, row in rows:
        if len(row) != len(head):
            what = f"the row has {len(row)} values, the header {len(head)}"
            raise InvalidInput(what, where=f"{name}:{number}", do="Correct the row; nothing was produced")
    columns = [_column([row[index] for _, row in rows[1:]]) for index in range(len(head))]
    for number, row in rows[1:]:
        values = (f"{json.dumps(column)}: {of(text)}" for column, of, text in zip(head, columns, row, strict=True))
        yield Line(f"{name}:{number}", f"{{{', '.join(values)}}}")


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
