"""Scalars on both sides: the writer's spelling, and the reader type that converts it to a column's type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from frazil.schemas.avro.row_type import PLAIN, scalar
from frazil.schemas.avro.schema import (
    NANO_TIMESTAMP,
    PRIMITIVES,
    ZONED_TIMESTAMP,
    Enum,
    Fixed,
    Record,
    Simple,
    max_precision,
)
from frazil.schemas.connect.connect_types import LARGEST, in_bytes
from frazil.schemas.evolution.field_ids import MEMBER
from frazil.schemas.evolution.merge import incompatible
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

LEGAL_KINDS: Mapping[Kind, Any] = {
    **{kind: name for name, kind in PLAIN.items()},
    Kind.DATE: {"type": "int", "logicalType": "date"},
    Kind.TIMESTAMP: {"type": "long", "logicalType": "local-timestamp-micros"},
    Kind.TIMESTAMPTZ: {"type": "long", "logicalType": "timestamp-micros"},
}
"""The Avro type that Spark reads as this kind."""


UNNAMED = PRIMITIVES | {"array", "map"}
"""The names that Spark gives to branches of a union without a name."""

_LONG, _PAST_A_LONG = 8, 19
"""Bytes of a long, and digits that none has: of fewer ones Spark takes the last 64 bits, however many bytes there are."""

LEGAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name as Avro's specification allows it."""


@dataclass(frozen=True, slots=True)
class Once:
    """A named type in a schema that is being written: its definition where it is seen first, its name thereafter."""

    name: str
    definition: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Sides:
    """A type as the writer and the reader spell it, and what Spark yields for it, which becomes text if `as_json`."""

    writer: Any
    reader: Any
    yields: Type
    as_json: bool = False

    def array(self) -> Sides:
        """Return arrays of such elements."""
        writer, reader = ({"type": "array", "items": side} for side in (self.writer, self.reader))
        return Sides(writer, reader, ListOf(self.yields))

    def map(self) -> Sides:
        """Return maps of such values."""
        writer, reader = ({"type": "map", "values": side} for side in (self.writer, self.reader))
        return Sides(writer, reader, MapOf(Primitive(Kind.STRING), self.yields))


def settled(tree: Any, defined: set[str]) -> Any:
    """Return the schema as JSON values, each named type defined once."""
    match tree:
        case Once(name, definition):
            if name in defined:
                return name
            defined.add(name)
            return settled(definition(), defined)
        case dict():
            return {key: settled(value, defined) for key, value in tree.items()}
        case list():
            return [settled(value, defined) for value in tree]
        case _:
            return tree


def branch_name(own: str, taken: set[str], number: int) -> str:
    """Return the full name of a record, enum or fixed in a union; Spark names a struct's field after it.

    It ends with `own` if Avro allows that and `taken` (lower case) does not hold it; the name is added to `taken`.
    """
    if not LEGAL_NAME.fullmatch(own) or own.lower() in taken:
        own = next(name for other in count() if (name := f"branch{other}") not in taken)
    taken.add(own.lower())
    return f"row{number}.{own}"


def leaf_type(of: Simple | Fixed | Enum) -> Primitive | Decimal:
    """Return the row type of a scalar."""
    return Primitive(Kind.STRING) if isinstance(of, Enum) else scalar(of)


def leaf(of: Simple | Fixed | Enum, column: Primitive | Decimal, name: str, *, is_exact: bool = False) -> Sides:
    """Return a scalar for a column that holds it; `name` is the full name of an enum or a fixed here.

    Some writers do not check the range of an int. If the column `is_exact`, it gets the number that they wrote, or none.
    """
    match of:
        case Enum(_, symbols):
            enum = {"type": "enum", "name": name, "symbols": list(symbols)}
            return Sides(enum, enum, column)
        case Fixed(_, size):
            fixed = {"type": "fixed", "name": name, "size": size}
            if isinstance(column, Decimal):
                # Avro ignores the logical type of a fixed that is too small for its precision.
                room = min(max_precision(size), LARGEST)
                if of.zeros or (of.decimal or column).precision > room:
                    return Sides(fixed, fixed, in_bytes(column, of.zeros))
                wide = column.precision if size <= _LONG else max(column.precision, _PAST_A_LONG)
                held = Decimal(min(wide, room), column.scale)
                return Sides(fixed, {**fixed, **decimal(held)}, held)
            return Sides(fixed, fixed, column)
        case Simple(base, logical):
            if isinstance(column, Decimal):
                if of.zeros:
                    return Sides(base, base, in_bytes(column, of.zeros))
                held = Decimal(max(column.precision, _PAST_A_LONG), column.scale)
                return Sides(base, {"type": "bytes", **decimal(held)}, held)
            if logical in (NANO_TIMESTAMP, ZONED_TIMESTAMP):  # Spark reads the base, and `conform` makes the column
                return Sides(base, base, Primitive(Kind.LONG if base == "long" else Kind.STRING))
            if column.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
                return Sides(base, {"type": "long", "logicalType": logical}, column)
            if (base, logical) == ("int", "") and (column.kind is Kind.LONG or (is_exact and column.kind is Kind.INT)):
                # Both are written alike, and Java's reader of ints drops the high bits.
                return Sides("long", "long", Primitive(Kind.LONG))
            return Sides(base, LEGAL_KINDS[column.kind], column)


def number(of: Record, name: str) -> Sides:
    """Return a number of its own scale, for a column of text: Spark reads its digits as a decimal, and `conform` writes them."""
    digits = Decimal(LARGEST, 0)
    written = [(f.name, f.type.name) for f in of.fields if isinstance(f.type, Simple)]
    read = [("scale", "int"), ("value", {"type": "bytes", **decimal(digits)})]
    yields = Struct((Field("scale", Primitive(Kind.INT)), Field("value", digits)))
    return Sides(record(name, written), record(name, read), yields)


def record(name: str, fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a record of this full name with fields of these names and types."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": of} for field, of in fields]}


def decimal(of: Decimal) -> dict[str, Any]:
    """Return the annotation of a decimal."""
    return {"logicalType": "decimal", "precision": of.precision, "scale": of.scale}


def legal_names(of: Struct) -> dict[str, str]:
    """Return column name -> the name in the reader schema, which is the same if Avro allows it."""
    taken = {field.name.lower() for field in of.fields}
    spare = (name for number in count() if (name := f"column{number}") not in taken)
    return {f.name: f.name if LEGAL_NAME.fullmatch(f.name) else next(spare) for f in of.fields}


def type_name(avro: Any) -> str:
    """Return what Spark calls a union branch of this type."""
    if isinstance(avro, str):
        return avro
    if isinstance(avro, Once):
        return avro.name.rpartition(".")[2]
    named = avro["type"] in ("record", "enum", "fixed")
    return str(avro["name"]).rpartition(".")[2] if named else str(avro["type"])


class Absent:
    """Types without values; `numbers` makes names unique in the complete schema."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers

    def branch(self, field: Field, full: str, path: tuple[str, ...]) -> Sides:
        """Return a union branch that this writer lacks, so that Spark yields the struct's field all the same.

        `full` is its name if it is a record, an enum or a fixed.
        """
        own = next(iter(field.ids), field.source).removeprefix(MEMBER)
        match field.type:
            case Primitive(Kind.STRING) if own != "string":
                return Sides(None, {"type": "enum", "name": full, "symbols": ["_"]}, field.type)
            case Primitive(Kind.BINARY) if own != "bytes":
                return Sides(None, {"type": "fixed", "name": full, "size": 1}, field.type)
            case Decimal() as number if own != "bytes":
                return Sides(None, {"type": "fixed", "name": full, "size": 16, **decimal(number)}, field.type)
        avro, kind = self.type_of(field.type, path, full if isinstance(field.type, Struct) else "")
        return Sides(None, avro, kind)

    def type_of(self, column: Type, path: tuple[str, ...], full: str = "") -> tuple[Any, Type]:
        """Return a type of which this writer has no values: only the type that Spark yields for it counts."""
        match column:
            case Primitive(kind):
                return LEGAL_KINDS[kind], column
            case Decimal():
                return {"type": "bytes", **decimal(column)}, column
            case ListOf(element):
                avro, inner = self.type_of(element, path)
                return {"type": "array", "items": avro}, ListOf(inner)
            case MapOf(Primitive(Kind.STRING) as key, value):
                avro, inner = self.type_of(value, path)
                return {"type": "map", "values": avro}, MapOf(key, inner)
            case Struct(fields):
                names = legal_names(column)
                members = [(names[f.name], *self.type_of(f.type, (*path, f.name))) for f in fields]
                avro = record(full or f"row.t{next(self._numbers)}", [(name, kind) for name, kind, _ in members])
                return avro, Struct(tuple(Field(name, held) for name, _, held in members))
        raise incompatible(path, "Avro has maps with string keys only")
