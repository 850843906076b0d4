"""Declared columns, in a notation of a name and a type: `id long`, `price decimal(10, 2)`, `place struct<x: double, y: double>`.

A column of values may be required: `id long required`. A record without it is rejected.

Types are Iceberg's (https://iceberg.apache.org/spec/#primitive-types), `json` for JSON text, and types that a connector names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from frazil.declaration.checks.constraints import shown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem

T = TypeVar("T")
PLAIN = ("boolean", "int", "long", "float", "double", "string", "binary", "date", "timestamp", "timestamptz")
JSON = "json"
NAMED = (
    "io.debezium.time.Date",
    "io.debezium.time.Timestamp",
    "io.debezium.time.MicroTimestamp",
    "io.debezium.time.NanoTimestamp",
    "io.debezium.time.ZonedTimestamp",
    "io.debezium.data.VariableScaleDecimal",
    "org.apache.kafka.connect.data.Date",
    "org.apache.kafka.connect.data.Timestamp",
)
"""Types that a connector names and JSON writes as something else, such as a timestamp as a number."""
DEEPEST = 20
"""Levels of types within types."""
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|[^\W\d][\w.]*|\d+|[<>(),:])")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type: its name, the numbers of a decimal, and of a list, a map or a struct the inner types, a struct's with names."""

    name: str
    numbers: tuple[int, ...] = ()
    inner: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct: its name in the record, and its type. Elements and values have no name."""

    name: str
    type: ColumnType
    required: bool = False


def column(text: str) -> Column:
    """Return the column that a text describes. Raises `InvalidDeclaration`."""
    reading = _Reading(text)
    found = Column(reading.name("a column's name"), reading.type(0), reading.is_required())
    reading.end()
    return found


def columns(texts: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of a declaration that is valid."""
    return tuple(column(text) for text in texts)


def if_valid(text: str) -> Column | None:
    """Return the column of a text; None of any other text, which is refused by itself."""
    try:
        return column(text)
    except InvalidDeclaration:
        return None


def is_required(text: str) -> bool:
    """Return whether a text is a required column."""
    found = if_valid(text)
    return found is not None and found.required


def column_problems(field: str, texts: Sequence[str] | None) -> Iterator[Problem]:
    """Yield names that are declared twice, in texts that are columns, and a declaration without any."""
    if texts is not None and not texts:
        yield Problem(field, "no column is declared", "Write one, or leave the field out")
    names: set[str] = set()
    for index, text in enumerate(texts or ()):
        if (found := if_valid(text)) is not None:
            if found.name in names:
                yield Problem(f"{field}[{index}]", f"{shown(found.name)} is declared twice", "Remove one of the two")
            names.add(found.name)


class _Reading:
    """One walk over a text."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._at = text, list[str](), 0
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise self._refused(f"{shown(text[place:].strip()[:20])} is neither a name nor a type")
            self._tokens.append(found[1])
            place = found.end()

    def name(self, what: str) -> str:
        """Return the next token as a name; one with other characters than letters, digits and _ is in backticks."""
        token = self._next(what)
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not re.fullmatch(r"[^\W\d]\w*", token):
            raise self._refused(f"{shown(token)} is not {what}: put a name with other characters in backticks")
        return token

    def type(self, depth: int) -> ColumnType:
        """Return the type that is next."""
        if depth > DEEPEST:
            raise self._refused(f"types are nested more than {DEEPEST} levels deep")
        name = self._next("a type")
        match name:
            case _ if name in PLAIN or name in NAMED or (name == JSON and depth == 0):
                return ColumnType(name)
            case "decimal":
                precision, scale = self._between("(", ")", self._number, count=2)
                if not (1 <= precision <= 38 and scale <= precision):
                    raise self._refused(
                        f"decimal({precision}, {scale}) is none: it has 1 to 38 digits, and no more behind its point"
                    )
                return ColumnType(name, (precision, scale))
            case "list":
                return ColumnType(name, (), tuple(self._between("<", ">", lambda: self._part(depth), count=1)))
            case "map":
                key, value = self._between("<", ">", lambda: self._part(depth), count=2)
                if key.type != ColumnType("string"):
                    raise self._refused("a key of a JSON object is a string")
                return ColumnType(name, (), (value,))
            case "struct":
                fields = tuple(self._between("<", ">", lambda: self._field(depth)))
                if len({field.name for field in fields}) < len(fields):
                    raise self._refused("a field of the struct is declared twice")
                return ColumnType(name, (), fields)
        raise self._refused(f"{shown(name)} is no type" + (" of a part of a column" if name == JSON else ""))

    def is_required(self) -> bool:
        """Return whether the type is followed by the word that says so."""
        self._at += (found := self._peek() == "required")
        return found

    def end(self) -> None:
        """Raise if anything is left."""
        if [token.lower() for token in self._tokens[self._at :]] == ["not", "null"]:
            raise self._refused("not null is written required")
        if self._at < len(self._tokens):
            raise self._refused(f"{shown(self._tokens[self._at])} follows the type")

    def _part(self, depth: int) -> Column:
        return Column("", self.type(depth + 1))

    def _field(self, depth: int) -> Column:
        name = self.name("a field's name")
        self._expect(":")
        return Column(name, self.type(depth + 1))

    def _number(self) -> int:
        token = self._next("a number of digits")
        if not token.isdecimal() or len(token) > 3:
            raise self._refused(f"{shown(token)} is not a number of digits")
        return int(token)

    def _between(self, first: str, last: str, part: Callable[[], T], *, count: int | None = None) -> list[T]:
        """Return the parts between two signs, with commas between them; `count` of them if it is given."""
        self._expect(first)
        parts = [part()]
        while self._peek() == ",":
            self._expect(",")
            parts.append(part())
        self._expect(last)
        if count is not None and len(parts) != count:
            raise self._refused(f"{len(parts)} parts are between {first} and {last}, where {count} belong")
        return parts

    def _expect(self, sign: str) -> None:
        if (token := self._next(f"a {sign}")) != sign:
            raise self._refused(f"{shown(token)} is where a {sign} belongs")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self, what: str) -> str:
        if self._at == len(self._tokens):
            raise self._refused(f"the text ends where {what} belongs")
        self._at += 1
        return self._tokens[self._at - 1]

    def _refused(self, what: str) -> InvalidDeclaration:
        types = ", ".join((*PLAIN, "decimal(10, 2)", "list<…>", "map<string, …>", "struct<name: …>", JSON))
        do = f"Write a name and a type, like id long, or id long required. Types are {types}, or one that a connector names"
        return InvalidDeclaration([Problem("", f"{shown(self._text)}: {what}", do)])
