"""Types for what a writer lacks: stand-ins, so that Spark yields the column all the same, as null."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from frazil.schemas.avro.scalars import LEGAL_KINDS, LEGAL_NAME, Once, Sides, decimal
from frazil.schemas.evolution.field_ids import MEMBER
from frazil.schemas.evolution.merge import incompatible
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type


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
                record = {
                    "type": "record",
                    "name": full or f"row.t{next(self._numbers)}",
                    "fields": [{"name": name, "type": avro} for name, avro, _ in members],
                }
                return record, Struct(tuple(Field(name, held) for name, _, held in members))
        raise incompatible(path, "Avro has maps with string keys only")
