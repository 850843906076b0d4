"""The common type of JSON records. DuckDB merges their kinds; times, exact numbers and counts are added here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from frazil.errors import InvalidInput, LocalPartFailed
from frazil.inference.record_file import Line
from frazil.schemas.json.written_times import is_written
from frazil.schemas.types import Kind

MOST_NAMES = 200
"""An object with more names than this, few of which are in one record, has data as names: no columns are made of it."""
JSON_TEXT = "JSON text"
_KINDS = {bool: "boolean", int: "integer", Decimal: "number", str: "string", dict: "object", list: "array"}
_SIMPLE = {"BOOLEAN": "boolean", "DOUBLE": "number", "VARCHAR": "string", "JSON": JSON_TEXT, "NULL": ""}
_OF_DUCKDB = {**_SIMPLE, **dict.fromkeys(("UBIGINT", "BIGINT", "HUGEINT"), "integer")}
_TIMES = {"date-time": Kind.TIMESTAMPTZ, "date": Kind.DATE}
_Values = Sequence[tuple[Line, Any]]


def installed() -> Any:
    """Return the module of DuckDB. Raises `LocalPartFailed` if it is not installed."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise LocalPartFailed("DuckDB is not installed", where="duckdb", do="pip install 'frazil[local]'") from None
    return duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place of the records: the records, a field, or the members of an array, whose path ends in `[]`."""

    path: str
    kind: str
    """JSON Schema's name of the type, or `JSON_TEXT` if no type holds all values; empty if no value shows the type."""
    format: str = ""
    """Of strings that all are times: `date-time` or `date`."""
    values: int = 0
    """The number of its values that are not null."""
    nulls: int = 0
    objects: int = 0
    """The number of objects around it; of an array's members their number."""
    conflict: str = ""
    """The reason why only JSON text holds all values; empty if a type does."""
    fields: Mapping[str, Place] = field(default_factory=dict)
    items: Place | None = None

    @property
    def type(self) -> str:
        """The type for people: `integer`, `date-time`, `array of string`; empty if no value shows it."""
        if self.kind == "array":
            inner = self.items.type if self.items is not None else ""  # once: each level would double the work
            return f"array of {inner}" if inner else ""
        is_empty = self.kind == "object" and not any(place.type for place in self.fields.values())
        return "" if is_empty else self.format or self.kind

    @property
    def document(self) -> dict[str, Any]:
        """The place as JSON."""
        counts = {"values": self.values, "nulls": self.nulls, "objects": self.objects}
        return {"field": self.path, "type": self.type or None, **counts, "conflict": self.conflict or None}

    def places(self) -> Iterator[Place]:
        """Yield each place below this one, as they were seen."""
        for place in (*self.fields.values(), *([self.items] if self.items is not None else [])):
            yield place
            yield from place.places()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The common type of the records that were objects, their number, and the errors of the others."""

    found: Place
    records: int
    unused: tuple[InvalidInput, ...]

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Sample:
        """Read the records."""
        used, unused = list[tuple[Line, Any]](), list[InvalidInput]()
        for line in lines:
            try:
                value = line.value
                if not isinstance(value, dict):
                    raise line.wrong("the record is not an object")
                used.append((line, value))
            except InvalidInput as error:
                unused.append(error)
        structure = _structure([line.text for line, _ in used]) if used else {}
        found = _place("", structure, used, len(used))
        return cls(found=found, records=len(used), unused=tuple(unused))

    @property
    def fields(self) -> tuple[Place, ...]:
        """Each field, and the members of each array, in the order in which they were seen."""
        return tuple(self.found.places())

    def refuse_conflicts(self, where: str, do: str) -> None:
        """Raise `InvalidInput` if values of a field have no common type."""
        conflicts = [f"{place.path} ({place.conflict})" for place in self.fields if place.conflict]
        if conflicts:
            what = f"{len(conflicts)} fields have no common type: {'; '.join(conflicts[:5])}"
            raise InvalidInput(what, where=where, do=do)


def _structure(texts: list[str]) -> Any:
    """Return the kinds that DuckDB sees: of an object by name, of an array's members in a list."""
    duckdb = installed()
    with duckdb.connect() as connection:
        query = "SELECT json_group_structure(text::JSON) FROM (SELECT unnest(?) AS text)"
        try:
            ((found,),) = connection.execute(query, [texts]).fetchall()
        except duckdb.Error as error:
            raise InvalidInput(str(error).splitlines()[0], where="DuckDB's JSON reader") from None
    return json.loads(found)


def _place(path: str, structure: Any, given: _Values, objects: int) -> Place:
    """Return the place with the structure and the values, each with its record."""
    values = [(line, value) for line, value in given if value is not None]
    kinds = Counter(_KINDS[type(value)] for _, value in values)
    first = {_KINDS[type(value)]: line for line, value in reversed(values)}
    fields: dict[str, Place] = {}
    items, kind, format_, conflict = None, "", "", ""
    match structure:
        case dict() if path and _has_data_as_names(structure, values):
            kind, conflict = JSON_TEXT, f"an object with {len(structure):,} names"
        case dict():
            kind = "object"
            for name in dict.fromkeys(name for _, value in values for name in value):
                have = [(line, value[name]) for line, value in values if name in value]
                inner = structure.get(name, "JSON")
                fields[name] = _place(f"{path}.{name}" if path else name, inner, have, len(values))
        case [inner]:
            kind = "array"
            members = [(line, member) for line, value in values for member in value]
            items = _place(f"{path}[]", inner, members, len(members))
        case str():
            kind = _OF_DUCKDB[structure]
    if kind == JSON_TEXT and all(value in ({}, []) for _, value in values):
        kind = ""  # an empty object shows no type
    elif kind == JSON_TEXT:
        conflict = conflict or "; ".join(f"{kinds[one]:,} {one}, first {first[one].place}" for one in kinds)
    elif kind in ("integer", "number"):
        kind, of, fits = (
            ("integer", "long", _is_long) if kinds.keys() == {"integer"} else ("number", "double", _is_double)
        )
        wrong = next((line for line, value in values if not fits(value)), None)
        if wrong is not None:
            kind, conflict = JSON_TEXT, f"a number that no {of} holds, {wrong.place}"
    elif kind == "string":
        times = (name for name, of in _TIMES.items() if all(is_written(value, of) for _, value in values))
        format_ = next(times, "")
    counts = {"values": len(values), "nulls": len(given) - len(values), "objects": objects}
    return Place(path=path, kind=kind, format=format_, conflict=conflict, fields=fields, items=items, **counts)


def _has_data_as_names(structure: Mapping[str, Any], values: _Values) -> bool:
    return len(structure) > MOST_NAMES and sum(len(value) for _, value in values) * 4 < len(structure) * len(values)


def _is_long(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _is_double(value: int | Decimal) -> bool:
    try:
        return Decimal(repr(float(value))) == value
    except OverflowError:
        return False
