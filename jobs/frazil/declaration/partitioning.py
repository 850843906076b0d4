"""Partition fields and sort fields, in the notation that Iceberg documents for SQL.

https://iceberg.apache.org/docs/latest/spark-ddl/#partitioned-by
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from frazil.declaration.checks.constraints import INT_MAX, shown
from frazil.declaration.checks.problems import InvalidDeclaration, Problem

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_COLUMN = r"(?:`(?:[^`]|``)*`|[^\W\d]\w*)(?:\.(?:`(?:[^`]|``)*`|[^\W\d]\w*))*"
_SEGMENT = re.compile(r"`((?:[^`]|``)*)`|([^\W\d]\w*)")
_CALL = re.compile(r"(?P<name>\w+)\s*\(\s*(?P<arguments>.*?)\s*\)", re.DOTALL)
_TERM = re.compile(r"(?P<column>" + _COLUMN + r")(?P<rest>.*)", re.DOTALL)
_SINGULAR = {"year": "years", "month": "months", "day": "days", "date": "days", "hour": "hours", "date_hour": "hours"}


class Transform(StrEnum):
    """The way from a column's value to a partition's.

    `years`, `months`, `days` and `hours` are the time since 1970 in UTC, each finer than the one before; `bucket` a
    hash modulo the argument; `truncate` a number rounded down to a multiple of the argument, or a text's first letters;
    `identity` the value itself. Iceberg's `void` is not offered: a new table has no field to drop.
    """

    IDENTITY = "identity"
    YEARS = "years"
    MONTHS = "months"
    DAYS = "days"
    HOURS = "hours"
    BUCKET = "bucket"
    TRUNCATE = "truncate"

    @property
    def is_time(self) -> bool:
        """True if it takes dates and timestamps only."""
        return self in {Transform.YEARS, Transform.MONTHS, Transform.DAYS, Transform.HOURS}

    @property
    def has_argument(self) -> bool:
        """True if it takes a number before the column."""
        return self in {Transform.BUCKET, Transform.TRUNCATE}


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec. `source` is a column, nested ones with dots; bucket and truncate have a number."""

    transform: Transform
    source: str
    argument: int | None = None

    @property
    def name(self) -> str:
        """The field's name as Iceberg derives it when a table is created: `event_time_day`, `user_id_bucket`."""
        suffixes = {Transform.TRUNCATE: "_trunc", Transform.BUCKET: "_bucket", Transform.IDENTITY: ""}
        return self.source + suffixes.get(self.transform, f"_{self.transform.removesuffix('s')}")

    def __str__(self) -> str:
        """The notation it is read from."""
        if self.transform is Transform.IDENTITY:
            return quoted(self.source)
        argument = "" if self.argument is None else f"{self.argument}, "
        return f"{self.transform}({argument}{quoted(self.source)})"

    def added(self, columns: Collection[str]) -> str:
        """Return the clause that adds it to a table, with a name where one of `columns` has the name that Iceberg derives."""
        name = self.name if self.argument is None else f"{self.name}_{self.argument}"
        is_taken = self.transform is not Transform.IDENTITY and name in columns
        return f"ADD PARTITION FIELD {self}{f' AS `{name}_`' if is_taken else ''}"


@dataclass(frozen=True, slots=True)
class SortField:
    """One field of the order of rows within a file."""

    source: str
    ascending: bool = True
    nulls_first: bool = True

    def __str__(self) -> str:
        """The notation it is read from, without what is the default."""
        direction = "" if self.ascending else " desc"
        nulls = "" if self.nulls_first is self.ascending else f" nulls {'first' if self.nulls_first else 'last'}"
        return f"{quoted(self.source)}{direction}{nulls}"


def quoted(source: str) -> str:
    """Return a column in the notation: a name with other characters is in backticks."""
    return ".".join(
        name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in source.split(".")
    )


def partition_field(text: str) -> PartitionField:
    """Return the partition field of a text: `days(event_time)`, `bucket(8, user_id)`, `truncate(4, zip)`, `country`.

    Raises `InvalidDeclaration` with the one problem of the text.
    """
    text = text.strip()
    call = _CALL.fullmatch(text)
    if call is None:
        return PartitionField(Transform.IDENTITY, _column(text))
    name, arguments = call["name"].lower(), call["arguments"]
    if name in _SINGULAR:
        _refuse(f"{name} is not how Iceberg writes it", f"Write {_SINGULAR[name]}({arguments})")
    if name == "identity":
        _refuse("identity is written as the column alone", f"Write {arguments}")
    if name == "void":
        _refuse("void keeps the place of a field that was dropped; a new table has none", "Remove it")
    if name not in list(Transform) or call["name"] != name:
        known = ", ".join(f"{t}(N, column)" if t.has_argument else f"{t}(column)" for t in list(Transform)[1:])
        _refuse(f"{shown(call['name'])} is not a transform", f"Use {known} or the column alone")
    transform = Transform(name)
    if not transform.has_argument:
        return PartitionField(transform, _column(arguments))
    return _with_argument(transform, arguments)


def _with_argument(transform: Transform, arguments: str) -> PartitionField:
    number, comma, column = (part.strip() for part in arguments.partition(","))
    if not re.fullmatch(r"-?[0-9]+", number, re.ASCII):
        turned = re.fullmatch(r"(.*\S)\s*,\s*([0-9]+)", arguments, re.DOTALL | re.ASCII)
        remedy = f"{transform}({turned[2]}, {turned[1]})" if turned else f"{transform}(8, column)"
        _refuse(f"{transform} takes a number, then the column", f"Write {remedy}")
    if not comma or not column:
        _refuse(f"{transform} takes a number, then the column", f"Write {transform}({number}, column)")
    # Iceberg keeps the argument as a Java int; a longer number is not even worth converting.
    if len(number) > 10 or not 1 <= int(number) <= INT_MAX:
        _refuse(f"{shown(number)} is no number of {transform}", f"Write a whole number from 1 to {INT_MAX}")
    return PartitionField(transform, _column(column), int(number))


def sort_field(text: str) -> SortField:
    """Return the sort field of a text: `user_id`, `event_time desc`, `x asc nulls last`.

    As in SQL, ascending is the default, and nulls come first in ascending and last in descending order. Raises
    `InvalidDeclaration` with the one problem of the text.
    """
    text = text.strip()
    term = _TERM.fullmatch(text)
    if term is None:
        return SortField(_column(text))
    words = re.fullmatch(r"(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", term["rest"], re.IGNORECASE)
    if words is None:
        if term["rest"].lstrip().startswith("("):
            _refuse("rows are sorted by columns, not by transforms", "Write the column")
        _refuse(f"{shown(text)} is not a sort field", "Write it like: event_time desc nulls last")
    ascending = (words[1] or "asc").lower() == "asc"
    nulls_first = ascending if words[2] is None else words[2].lower() == "first"
    return SortField(_column(term["column"]), ascending, nulls_first)


def _column(text: str) -> str:
    if not re.fullmatch(_COLUMN, text, re.DOTALL):
        what = f"{shown(text)} is not a column" if text else "the column is missing"
        _refuse(what, "Write a name like event_time, or an odd one in backticks: `event time`")
    names = [match[2] or match[1].replace("``", "`") for match in _SEGMENT.finditer(text)]
    for name in names:
        if not name or "." in name or name != name.strip():
            _refuse(f"{shown(name)} is no column's name", "Columns have a name without dots and outer spaces")
        if name != name.lower():
            _refuse(f"{shown(name)} has upper case; columns are lower case", f"Write {quoted(name.lower())}")
    return ".".join(names)


def _refuse(what: str, do: str) -> NoReturn:
    raise InvalidDeclaration([Problem("notation", what, do)])
