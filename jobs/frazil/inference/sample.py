"""A sample of records and what it showed: the type, what could not be used, and a line for each field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from frazil.errors import InvalidInput
from frazil.inference.inferred_schema import place_schema
from frazil.inference.inferred_type import Inferred, add_record
from frazil.inference.record_file import Line
from frazil.inference.schema_merge import shown_type


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSeen:
    """A field as a sample showed it, or of the members of an array, whose path ends in `[]`."""

    path: str
    type: str
    """The type in the schema; empty if the field is omitted, as no value says what it is."""
    values: int
    """The number of its values that are not null."""
    nulls: int
    present: int
    """The number of the objects around it that have it; of an array's members their number."""
    objects: int
    """The number of objects around it; of an array's members their number, too."""
    kinds: dict[str, int]
    """The number of values of each kind."""
    conflict: str
    """The reason why only text holds all values; empty if another type does."""

    @property
    def document(self) -> dict[str, Any]:
        """The field as JSON."""
        return {
            "field": self.path,
            "type": self.type or None,
            "values": self.values,
            "null_share": _share(self.nulls, self.present),
            "present_share": _share(self.present, self.objects),
            "kinds": self.kinds,
            "conflict": self.conflict or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The common type of the records that were objects, and the errors of the others."""

    found: Inferred
    unused: tuple[InvalidInput, ...]

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Sample:
        """Read the records."""
        found, unused = Inferred(""), list[InvalidInput]()
        for line in lines:
            try:
                add_record(found, line)
            except InvalidInput as error:
                unused.append(error)
        return cls(found=found, unused=tuple(unused))

    @property
    def records(self) -> int:
        """The number of these records."""
        return self.found.objects

    @property
    def fields(self) -> tuple[FieldSeen, ...]:
        """Each field, and the members of each array, in the order in which they were seen."""
        return tuple(_field(place, around) for place, around in self.found.places())


def _field(of: Inferred, around: Inferred) -> FieldSeen:
    schema = place_schema(of)
    return FieldSeen(
        path=of.path,
        type="" if schema is None else shown_type(schema),
        values=of.count - of.nulls,
        nulls=of.nulls,
        present=of.count,
        objects=of.count if of is around.items else around.objects,
        kinds=dict(of.kinds),
        conflict=_conflict(of),
    )


def _conflict(of: Inferred) -> str:
    if of.kept_as not in ("string", "json") or of.kind == "string":
        return ""
    if of.kind == "mixed" and of.kept_as == "string":
        counts = [f"{count:,} {kind}, first {of.first[kind][0].place}" for kind, count in of.kinds.items()]
        return "; ".join(counts)
    if of.huge is not None:
        return f"a whole number of more than 64 bits, {of.huge.place}"
    if of.inexact is not None:
        return f"a number that no double holds, {of.inexact.place}"
    if of.kept_as == "json":
        return f"values of several kinds, with numbers that no double holds: {', '.join(of.kinds)}"
    return f"a whole number next to fractions that no double holds, {of.large.place if of.large else ''}"


def _share(part: int, of: int) -> float:
    return round(part / of, 4) if of else 0.0
