"""What values under a JSON Schema look like, and the one shape of alternatives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from frazil.schemas.connect.connect_types import Held, Number
from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type

_TEXT, _LONG, _DOUBLE = Primitive(Kind.STRING), Primitive(Kind.LONG), Primitive(Kind.DOUBLE)
_WRITTEN_AS_STRING = {Kind.STRING, Kind.DATE, Kind.TIMESTAMPTZ, Kind.BINARY}


@dataclass(frozen=True, slots=True)
class Shape:
    """What values look like: `type` is None if the only value is null."""

    type: Type | None
    nullable: bool = False
    as_json: bool = False
    doc: str = ""


def union(shapes: Iterable[Shape]) -> Shape:
    """Return the one shape that takes the values of all."""
    first, *others = shapes
    for other in others:
        first = _either(first, other)
    return first


def _either(a: Shape, b: Shape) -> Shape:
    nullable, doc = a.nullable or b.nullable, a.doc or b.doc
    if a.type is None or b.type is None:
        some = b if a.type is None else a
        return Shape(some.type, True, some.as_json, doc)
    joined = None if a.as_json or b.as_json else _join(a.type, b.type)
    return Shape(_TEXT, nullable, True, doc) if joined is None else Shape(joined, nullable, False, doc)


def _join(a: Type, b: Type) -> Type | None:
    """Return the type that takes values of both without loss of meaning, or None."""
    match a, b:
        case _ if a == b:
            return a
        case _ if isinstance(a, Held | Number) or isinstance(b, Held | Number):
            return None
        case Primitive(left), Primitive(right) if {left, right} <= {Kind.INT, Kind.LONG}:
            return _LONG
        case Primitive(left), Primitive(right) if {left, right} <= {Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE}:
            return _DOUBLE
        case Primitive(left), Primitive(right) if {left, right} <= _WRITTEN_AS_STRING:
            return _TEXT
        case Struct(), Struct():
            return _join_structs(a, b)
        case ListOf(), ListOf():
            element = _join(a.element, b.element)
            return None if element is None else ListOf(element, a.element_required and b.element_required)
        case MapOf(), MapOf():
            value = _join(a.value, b.value)
            return None if value is None else MapOf(_TEXT, value, a.value_required and b.value_required)
        case _:
            return None


def _join_structs(a: Struct, b: Struct) -> Struct:
    """Return all fields of both; one that is not in both may be absent, one whose types differ is JSON text."""
    theirs = {f.name: f for f in b.fields}
    fields = [_join_fields(f, theirs.pop(f.name, None)) for f in a.fields]
    return Struct((*fields, *(_join_fields(f, None) for f in theirs.values())))


def _join_fields(a: Field, b: Field | None) -> Field:
    if b is None:
        return Field(a.name, a.type, doc=a.doc, as_json=a.as_json)
    joined = None if a.as_json or b.as_json else _join(a.type, b.type)
    required, doc = a.required and b.required, a.doc or b.doc
    return Field(a.name, _TEXT if joined is None else joined, required=required, doc=doc, as_json=joined is None)
