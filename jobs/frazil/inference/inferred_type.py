"""The types that the values of JSON records have, place by place, and the one that fits all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from frazil.declaration.checks.constraints import shown
from frazil.inference.record_file import Line
from frazil.schemas.json.written_times import is_written
from frazil.schemas.types import Kind

LARGEST_LONG = 2**63 - 1
LARGEST_EXACT = 2**53
"""The largest whole number up to which a double holds each one."""
MOST_NAMES = 200
"""An object with more names than this, few of which are in one record, has data as names: no columns are made of it."""

_DO = "Correct the record, or give --schema FILE; nothing was produced"
_KINDS = {bool: "boolean", int: "long", Decimal: "double", str: "string", dict: "record", list: "array"}
_NUMBERS = {"long", "double"}
_TIMES = {"date-time": Kind.TIMESTAMPTZ, "date": Kind.DATE}
"""The names in JSON Schema of the kinds of time that are columns of their own."""


@dataclass(slots=True, eq=False)
class Inferred:
    """The common type of the values at one place of the records so far."""

    path: str
    count: int = 0
    """The number of occurrences, with null or without."""
    nulls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """The number of values of each kind, in the order in which they were seen."""
    first: dict[str, tuple[Line, Any]] = field(default_factory=dict)
    """The first value of each kind, and its record."""
    objects: int = 0
    fields: dict[str, Inferred] = field(default_factory=dict)
    items: Inferred | None = None
    """The type of its arrays' members, if some of its values are arrays."""
    large: Line | None = None
    """The first record with a whole number that no double holds."""
    huge: Line | None = None
    """The first record with a whole number of more than 64 bits."""
    inexact: Line | None = None
    """The first record with a fraction that has more digits than a double, or is too large for one."""
    _times: tuple[str, ...] = tuple(_TIMES)

    def add(self, value: Any, line: Line) -> None:
        """Extend the type by a value."""
        self.count += 1
        if value is None:
            self.nulls += 1
            return
        kind = _KINDS[type(value)]
        self.kinds[kind] += 1
        self.first.setdefault(kind, (line, value))
        match kind:
            case "long" if abs(value) > LARGEST_EXACT:
                self.large = self.large or line
                if not -LARGEST_LONG - 1 <= value <= LARGEST_LONG:
                    self.huge = self.huge or line
            case "double" if self.inexact is None and Decimal(repr(float(value))) != value:
                self.inexact = line
            case "string" if self._times:
                self._times = tuple(name for name in self._times if is_written(value, _TIMES[name]))
            case "record":
                self._add_fields(value, line)
            case "array":
                self.items = self.items or Inferred(f"{self.path}[]")
                for item in value:
                    self.items.add(item, line)

    def _add_fields(self, value: dict[str, Any], line: Line) -> None:
        self.objects += 1
        for name, each in value.items():
            place = self.fields.get(name)
            if place is None:
                place = self.fields[name] = Inferred(f"{self.path}.{name}" if self.path else name)
            place.add(each, line)

    @property
    def kind(self) -> str:
        """The kind of all values, `double` for both kinds of numbers; empty if all were null, `mixed` if no kind fits."""
        if self.kinds.keys() == _NUMBERS:
            return "double"
        return next(iter(self.kinds), "") if len(self.kinds) < 2 else "mixed"

    @property
    def kept_as(self) -> str:
        """The kind that loses nothing of any value: `kind`, or `string` where that is mixed or would change a number.

        It is `json`, JSON text, if there are fractions that no double holds: a column of strings has numbers as doubles.
        """
        if self.kind in ("double", "mixed") and self.has_inexact:
            return "json"
        loses = {"mixed": True, "long": self.huge is not None, "double": self.large is not None}
        return "string" if loses.get(self.kind, False) else self.kind

    @property
    def has_inexact(self) -> bool:
        """True if it has, at any depth, a fraction that no double holds."""
        inside = [*self.fields.values(), *([self.items] if self.items is not None else [])]
        return self.inexact is not None or any(place.has_inexact for place in inside)

    @property
    def time(self) -> str | None:
        """The format of JSON Schema that all of its texts have: `date-time`, `date`, or none."""
        return self._times[0] if self.kind == "string" and self._times else None

    @property
    def has_data_as_names(self) -> bool:
        """True for an object within records whose names are data, such as ids."""
        seen = sum(place.count for place in self.fields.values())
        return bool(self.path) and len(self.fields) > MOST_NAMES and seen * 4 < len(self.fields) * self.objects

    def places(self) -> Iterator[tuple[Inferred, Inferred]]:
        """Yield each place below this one that may become a column or a part of one, and the place around it, as they were seen."""
        inside = list(self.fields.values()) if self.kept_as == "record" and not self.has_data_as_names else []
        if self.kept_as == "array" and self.items is not None:
            inside = [self.items]
        for place in inside:
            yield place, self
            yield from place.places()

    @property
    def name(self) -> str:
        """The place in a message."""
        return f"the field {self.path}" if self.path else "the record"


def inferred(lines: Sequence[Line]) -> Inferred:
    """Return the type of records. Raises `InvalidInput` if one is no object, or if two have no common type."""
    found = Inferred("")
    for line in lines:
        add_record(found, line)
    for place, _ in found.places():
        _refuse(place)
    return found


def add_record(found: Inferred, line: Line) -> None:
    """Extend the type of records by one. Raises `InvalidInput` if it is no object; the type has not changed then."""
    value = line.value
    if not isinstance(value, dict):
        raise line.wrong("the record is no object, so it has no fields")
    found.add(value, line)


def _refuse(of: Inferred) -> None:
    """Raise `InvalidInput` if no type fits the values of a place."""
    if of.kind == "mixed":
        (first, (before, _)), *others = of.first.items()
        second, (line, value) = next(each for each in others if {first, each[0]} != _NUMBERS)
        what = f"{of.name} is {_article(second)} here ({shown(value)}) and {_article(first)} at {before.place}"
        raise line.wrong(what, _DO)
    if of.huge is not None:
        raise of.huge.wrong(f"{of.name} has more than 64 bits", _DO)
    if of.kind == "double" and of.large is not None:
        other = shown(of.first["double"][1])
        raise of.large.wrong(f"{of.name} has a whole number that no double holds next to {other}", _DO)


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "array" else f"a {kind}"
