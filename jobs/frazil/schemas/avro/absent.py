"""What a writer does not have: the types that stand in for it, so that Spark yields the column all the same, null."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from frazil.schemas.avro.leaf import LEGAL_KINDS, Sides, decimal
from frazil.schemas.avro.rows import MEMBER
from frazil.schemas.merge import incompatible
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def legal_names(of: Struct) -> dict[str, str]:
    """Column name -> the name in the reader schema, which is the same if Avro allows it."""
    taken = {field.name.lower() for field in of.fields}
    spare = (name for number in count() if (name := f"column{number}") not in taken)
    return {f.name: f.name if _NAME.fullmatch(f.name) else next(spare) for f in of.fields}


def type_name(avro: Any) -> str:
    """What Spark calls a union branch of this type."""
    if isinstance(avro, str):
        return avro
    named = avro["type"] in ("record", "enum", "fixed")
    return str(avro["name"]).rpartition(".")[2] if named else str(avro["type"])


class Absent:
    """Types without values; `numbers` makes names unique in the whole schema."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers

    def branch_name(self, field: Field) -> str:
        """The full name of a record, enum or fixed in a union: Spark makes the struct's field of its last part."""
        own = field.name.removeprefix(MEMBER)
        number = next(self._numbers)
        return f"row{number}.{own}" if _NAME.fullmatch(own) else f"row.t{number}"

    def branch(self, field: Field, path: tuple[str, ...]) -> Sides:
        """A union branch that this writer has not, so that Spark yields the struct's field all the same."""
        own, full = field.name.removeprefix(MEMBER), self.branch_name(field)
        match field.type:
            case Struct():
                avro, kind = self.type_of(field.type, path, full)
                return Sides(None, avro, kind)
            case Primitive(Kind.STRING) if own != "string":
                return Sides(None, {"type": "enum", "name": full, "symbols": ["_"]}, field.type)
            case Primitive(Kind.BINARY) if own != "bytes":
                return Sides(None, {"type": "fixed", "name": full, "size": 1}, field.type)
            case Decimal() as number if own != "bytes":
                return Sides(None, {"type": "fixed", "name": full, "size": 16, **decimal(number)}, field.type)
        avro, kind = self.type_of(field.type, path)
        return Sides(None, avro, kind)

    def type_of(self, column: Type, path: tuple[str, ...], full: str = "") -> tuple[Any, Type]:
        """A type of which this writer has no values: only what Spark makes of it counts."""
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
                record = {
                    "type": "record",
                    "name": full or f"row.t{next(self._numbers)}",
                    "fields": [{"name": name, "type": avro} for name, avro, _ in members],
                }
                return record, Struct(tuple(Field(name, held) for name, _, held in members))
        raise incompatible(path, "Avro has maps with string keys only")
