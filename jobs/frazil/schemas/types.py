"""The row type: the type of a decoded record, in Iceberg's terms and no engine's.

Writer schemas are converted to a `Struct`; versions of one subject are merged to one `Struct`; a table's schema is a
`Struct` too, so that a schema change is the difference of two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import cast


class Kind(StrEnum):
    """The primitive types, by Iceberg's names (https://iceberg.apache.org/spec/#primitive-types).

    `TIMESTAMP` has no time zone, `TIMESTAMPTZ` is an instant; both in microseconds. `VARIANT` is a value of JSON, in tables of
    format version 3. A decimal is its own class, as it has parameters. `uuid`, `time` and `fixed` do not appear: Spark has no such
    types, so they land as string, long or int, and binary.
    """

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    VARIANT = "variant"


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type without parameters."""

    kind: Kind
    origins: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True, compare=False, repr=False)
    """The names of each type of a writer that it is made of, its full name first; empty for formats without unions."""
    unit: str = field(default="", kw_only=True, compare=False, repr=False)
    """The unit of a number that is a time or a duration, if its schema names it. Numbers of two units never share a column."""

    def __str__(self) -> str:
        return self.kind.value


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal of `precision` digits (1 to 38), `scale` of them after the point."""

    precision: int
    scale: int
    origins: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True, compare=False, repr=False)

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; its elements may be null unless `element_required`."""

    element: Type
    element_required: bool = False

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map; keys are never null, values may be unless `value_required`."""

    key: Type
    value: Type
    value_required: bool = False

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct.

    `name` is the column's name; `source` the field's name in the writer's schema, which differs if the name was folded
    (lower case, no dots). `aliases` are earlier source names: a writer schema that has one of them means this field.
    `required` says that no version leaves it out or writes null; columns are created optional all the same.
    `as_json` says that the source value is structured and lands as JSON: its text, or a variant (recursion, free-form objects).
    `has_own_scale` says that its bytes are numbers, each with a scale of its own: equal numbers may differ in their bytes.
    `is_exact` says that a key or an order has the value: a record is rejected if it becomes another one in the column's type.
    `ids` identify the field where its name does not: see `evolution/field_ids.py`. Equal fields may differ in them.
    """

    name: str
    type: Type
    required: bool = False
    doc: str = ""
    source: str = cast(str, None)  # the name; not "", which JSON allows as a property's name
    aliases: tuple[str, ...] = ()
    as_json: bool = False
    has_own_scale: bool = False
    is_exact: bool = False
    ids: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.source is None:
            object.__setattr__(self, "source", self.name)


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct, in the order of its fields. A row type is a struct.

    `taken` are the names of a table's partition fields, each with the only column that may get it, or empty if none may.
    """

    fields: tuple[Field, ...]
    origins: tuple[tuple[str, ...], ...] = field(default=(), kw_only=True, compare=False, repr=False)
    taken: Mapping[str, str] = field(default_factory=dict, kw_only=True, compare=False, repr=False)

    def exact(self, names: Collection[str] | None = None) -> Struct:
        """Return the struct with these fields, or all, `is_exact`."""
        return Struct(tuple(replace(f, is_exact=True) if names is None or f.name in names else f for f in self.fields))

    def __str__(self) -> str:
        return "struct<" + ", ".join(f"{f.name}: {f.type}" for f in self.fields) + ">"


Type = Primitive | Decimal | ListOf | MapOf | Struct


def inside(of: Type) -> tuple[Type, ...]:
    """Return the types of a struct's fields, a list's elements or a map's values; empty for others."""
    match of:
        case Struct(fields):
            return tuple(field.type for field in fields)
        case ListOf(inner) | MapOf(_, inner):
            return (inner,)
        case _:
            return ()


def with_inside(of: Type, change: Callable[[Type], Type]) -> Type:
    """Return the type with what is `inside` changed."""
    match of:
        case Struct(fields):
            return replace(of, fields=tuple(replace(field, type=change(field.type)) for field in fields))
        case ListOf(element):
            return replace(of, element=change(element))
        case MapOf(_, value):
            return replace(of, value=change(value))
        case _:
            return of


def along(of: Type, other: Type, change: Callable[[Type, Type], Type]) -> Type:
    """Return a list or map with its elements or values changed by those of another one; any other type as it is."""
    match of, other:
        case ListOf(element), ListOf(inner):
            return replace(of, element=change(element, inner))
        case MapOf(_, value), MapOf(_, inner):
            return replace(of, value=change(value, inner))
        case _:
            return of


def optional(of: Type, field: Callable[[Field, Type], Field]) -> Type:
    """Return the type with all elements and values optional, and at all levels the `field` that is made of one and its type."""
    match of:
        case Struct(fields):
            return Struct(tuple(field(each, optional(each.type, field)) for each in fields))
        case ListOf(element):
            return ListOf(optional(element, field))
        case MapOf(key, value):
            return MapOf(key, optional(value, field))
        case _:
            return of


Scalar = Primitive | Decimal

_HOLDS = {(Kind.LONG, Kind.INT), (Kind.DOUBLE, Kind.FLOAT), (Kind.DOUBLE, Kind.INT)}
_BECOMES = {(Kind.INT, Kind.LONG), (Kind.FLOAT, Kind.DOUBLE)}


def holds(column: Scalar, value: Scalar) -> bool:
    """Return whether each value of the second type is one of the first, so that it lands in such a column unchanged."""
    match column, value:
        case Decimal(p, s), Decimal(q, t):
            return s == t and q <= p
        case Primitive(a), Primitive(b):
            return a is b or (a, b) in _HOLDS
    return False


def becomes(column: Scalar, new: Scalar) -> bool:
    """Return whether Iceberg widens a column of the first type to the second (format v2)."""
    match column, new:
        case Decimal(p, s), Decimal(q, t):
            return s == t and q > p
        case Primitive(a), Primitive(b):
            return (a, b) in _BECOMES
    return False


def full_path(row: Type, path: Sequence[str]) -> tuple[str, ...]:
    """Return a path of fields with `element` and `value` where it goes through lists and maps; it may have `[]` for these."""
    if not path:
        return ()
    match row:
        case Struct(fields):
            inner = next((field.type for field in fields if field.name == path[0]), None)
            return (path[0], *(full_path(inner, path[1:]) if inner is not None else path[1:]))
        case ListOf(inner) | MapOf(_, inner):
            name = "element" if isinstance(row, ListOf) else "value"
            return (name, *full_path(inner, path[1:] if path[0] == "[]" else path))
    return tuple(path)


def type_at(row: Struct, path: str) -> Type | None:
    """Return the type at a path such as `items.element.price`, or None. Maps have `key` and `value`."""
    found: Type | None = row
    for name in path.split("."):
        match found:
            case Struct(fields):
                found = next((field.type for field in fields if field.name == name), None)
            case ListOf(element) if name == "element":
                found = element
            case MapOf(key, value):
                found = {"key": key, "value": value}.get(name)
            case _:
                return None
    return found
