"""The type that fits all records of a file, inferred from their values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from frazil.declaration.constraints import shown
from frazil.local.produce.record_file import Line

LARGEST_LONG = 2**63 - 1
LARGEST_EXACT = 2**53
"""The largest whole number up to which a double holds each one."""

_DO = "Correct the record, or give --schema FILE; nothing was produced"
_KINDS = {bool: "boolean", int: "long", Decimal: "double", str: "string", dict: "record", list: "array"}


class Inferred:
    """What the values at one place of the records have in common so far."""

    __slots__ = ("_large", "count", "fields", "is_nullable", "items", "kind", "line", "objects", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.kind = ""
        """The kind of its values; empty if all were null."""
        self.line: Line | None = None
        self.is_nullable = False
        self.count = 0
        self.objects = 0
        self.fields: dict[str, Inferred] = {}
        self.items: Inferred | None = None
        """The type of its arrays' members, if its values are arrays."""
        self._large: Line | None = None

    def add(self, value: Any, line: Line) -> None:
        """Extend the type by a value. Raises `InvalidInput` if no type fits both it and the values before."""
        self.count += 1
        if value is None:
            self.is_nullable = True
            return
        kind = _KINDS[type(value)]
        if self.line is None or self.kind == "":
            self.kind, self.line = kind, line
        elif kind != self.kind:
            self._widen(kind, value, line)
        if kind == "long":
            self._check(value, line)
        elif kind == "record":
            self._add_fields(value, line)
        elif kind == "array":
            self.items = self.items or Inferred(f"{self.path}[]")
            for item in value:
                self.items.add(item, line)

    def _widen(self, kind: str, value: Any, line: Line) -> None:
        """Keep a double beside a long; any other pair has no common type."""
        if {kind, self.kind} != {"long", "double"}:
            at = self.line.place if self.line else ""
            what = f"{self._name} is {_article(kind)} here ({shown(value)}) and {_article(self.kind)} at {at}"
            raise line.wrong(what, _DO)
        self.kind = "double"
        if self._large is not None:
            raise self._large.wrong(f"{self._name} has a whole number that no double holds beside {shown(value)}", _DO)

    def _check(self, value: int, line: Line) -> None:
        if abs(value) > LARGEST_EXACT:
            if self.kind == "double":
                raise line.wrong(f"{self._name} is a whole number that no double holds: {value}", _DO)
            self._large = line
        if not -LARGEST_LONG - 1 <= value <= LARGEST_LONG:
            raise line.wrong(f"{self._name} has more than 64 bits", _DO)

    def _add_fields(self, value: dict[str, Any], line: Line) -> None:
        self.objects += 1
        for name, each in value.items():
            field = self.fields.get(name)
            if field is None:
                field = self.fields[name] = Inferred(f"{self.path}.{name}" if self.path else name)
            field.add(each, line)

    def may_lack(self, field: str) -> bool:
        """Return whether some of its objects have no such field, or have null in it."""
        return self.fields[field].is_nullable or self.fields[field].count < self.objects

    @property
    def _name(self) -> str:
        return f"the field {self.path}" if self.path else "the record"


def inferred(lines: Sequence[Line]) -> Inferred:
    """Return the type of records. Raises `InvalidInput` if one is no object, or if two have no common type."""
    found = Inferred("")
    for line in lines:
        value = line.value
        if not isinstance(value, dict):
            raise line.wrong("the record is no object, so it has no fields")
        found.add(value, line)
    return found


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "array" else f"a {kind}"
