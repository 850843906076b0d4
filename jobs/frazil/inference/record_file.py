"""Files of records: one JSON value a line. Each record keeps its line, for messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, BinaryIO

from frazil.declaration.checks.constraints import shown
from frazil.declaration.checks.nesting import bounded
from frazil.errors import InvalidInput

LEVELS = 200
"""Objects and arrays within each other in a record; its schema has twice as many."""


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
            value = bounded(json.loads(self.text, parse_float=Decimal, **hooks), LEVELS)
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
    """Return the records of a file, or of `stdin` for `-`. Empty lines are no records.

    Raises `InvalidInput` if the file cannot be read, or is not UTF-8.
    """
    name = "stdin" if file == "-" else file
    try:
        if file == "-" and stdin is None:
            raise InvalidInput("it is closed", where=name, do="Name a file, or redirect one to stdin")
        content = stdin.read() if file == "-" and stdin is not None else Path(file).read_bytes()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput("this is not UTF-8", where=f"{name}:{line}", do="Save the file as UTF-8") from None
    except OSError as error:
        raise InvalidInput.unreadable(name, error) from None
    lines = (line.strip() for line in text.split("\n"))  # a JSON text may hold the other line ends
    return [Line(f"{name}:{number}", line) for number, line in enumerate(lines, start=1) if line]


def _with_names_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {shown(twice)} is twice in one object")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
