"""The row type of an Avro schema: the columns that `from_avro` yields, and JSON text where it yields none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from frazil.errors import UnreadableSchema
from frazil.schemas.avro.parser import NESTING_LIMIT
from frazil.schemas.avro.schema import (
    NANO_TIMESTAMP,
    ZONED_TIMESTAMP,
    Array,
    AvroSchema,
    Enum,
    Fixed,
    Map,
    Named,
    Node,
    Record,
    RecordField,
    Simple,
    Union,
    is_null,
)
from frazil.schemas.evolution.field_ids import SINGLE_VALUE, made_of, member
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

RECURSION_DEPTH = 3
"""So many levels of a recursive record are columns; the field that leads to the next one lands as JSON text."""

FIELD_LIMIT = 10_000
"""Columns of a row type, nested ones included."""

FILE_LEVELS = 90
"""Levels of a column in a Parquet file, where a list or map is two. Arrow's reader opens no file with more than 100."""


PLAIN: Mapping[str, Kind] = {
    "bytes": Kind.BINARY,
    **{name: Kind(name) for name in ("boolean", "int", "long", "float", "double", "string")},
}
_LOGICAL: Mapping[str, Kind] = {
    "date": Kind.DATE,
    "timestamp-millis": Kind.TIMESTAMPTZ,
    "timestamp-micros": Kind.TIMESTAMPTZ,
    "local-timestamp-millis": Kind.TIMESTAMP,
    "local-timestamp-micros": Kind.TIMESTAMP,
    NANO_TIMESTAMP: Kind.TIMESTAMP,
    ZONED_TIMESTAMP: Kind.TIMESTAMPTZ,
}
_UNITS: Mapping[str, str] = {"time-millis": "milliseconds", "time-micros": "microseconds"}


def row_type(schema: AvroSchema) -> Struct:
    """Return the row type of a writer schema; names are the source's, and folded later.

    Raises `UnreadableSchema` for more than `FIELD_LIMIT` columns, records in records beyond `NESTING_LIMIT`, or more than
    `FILE_LEVELS`.
    """
    row = _Rows(schema).struct(schema.root, 1 if schema.root.name in schema.recursive else 0)
    for field in row.fields:
        if _levels(field.type) > FILE_LEVELS:
            raise UnreadableSchema(
                f"types are nested more than {FILE_LEVELS} levels deep in a file", where=field.source
            )
    names = SINGLE_VALUE if schema.is_single_value else names_of(schema, Named(schema.root.name))
    return replace(row, origins=(names,))


def _levels(of: Type) -> int:
    match of:
        case Struct(fields=fields):
            return 1 + max((_levels(field.type) for field in fields), default=0)
        case ListOf(element=element):
            return 2 + _levels(element)
        case MapOf(key=key, value=value):
            return 2 + max(_levels(key), _levels(value))
    return 1


def scalar(of: Simple | Fixed) -> Primitive | Decimal:
    """Return the type that a primitive or a fixed lands as; null has none."""
    if of.decimal:
        return of.decimal
    if isinstance(of, Fixed):
        return Primitive(Kind.BINARY)
    return Primitive(_LOGICAL.get(of.logical) or PLAIN[of.name], unit=of.unit or _UNITS.get(of.logical, ""))


def collapsed(union: Union) -> Simple | None:
    """Return the one type that Spark yields for a union of int and long, or float and double."""
    names = {branch.name for branch in union.values if isinstance(branch, Simple)}
    if len(union.values) == 2 and len(names) == 2:
        if names == {"int", "long"}:
            return Simple("long")
        if names == {"float", "double"}:
            return Simple("double")
    return None


def names_of(schema: AvroSchema, branch: Node) -> tuple[str, ...]:
    """Return what a type is called in a union, its full name, and its aliases."""
    match branch:
        case Named(name):
            return (name, *schema.aliases.get(name, ()))
        case Simple(name):
            return (name,)
        case _:
            return ("array" if isinstance(branch, Array) else "map",)


class _Text(Exception):
    """This node has no column type: the field it is in lands as JSON text."""


class _Rows:
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._fields = 0
        self._nesting = 0

    def struct(self, record: Record, level: int) -> Struct:
        return Struct(tuple(self._columns(record.fields, level)))

    def _columns(self, fields: Iterable[RecordField], level: int) -> Iterator[Field]:
        for f in fields:
            if only_null(f.type):
                continue
            self._fields += 1
            if self._fields > FIELD_LIMIT:
                raise UnreadableSchema(f"the schema has more than {FIELD_LIMIT} columns", where=f.name)
            column = Field(f.name, Primitive(Kind.STRING), _required(f.type), f.doc, f.name, f.aliases)
            try:
                yield replace(column, type=self._type(f.type, level), has_own_scale=self._has_own_scale(f.type))
            except _Text:
                types = f.type.values if isinstance(f.type, Union) else (f.type,)
                text = made_of(column.type, *(names_of(self._schema, each) for each in types))
                yield replace(column, type=text, as_json=True)

    def _type(self, node: Node, level: int) -> Type:
        found = self._column(node, level)
        return found if isinstance(node, Union) else made_of(found, names_of(self._schema, node))

    def _column(self, node: Node, level: int) -> Type:
        match node:
            case Simple("null"):
                raise _Text
            case Simple():
                return scalar(node)
            case Array(items):
                return ListOf(self._type(items, level), element_required=_required(items))
            case Map(values):
                return MapOf(Primitive(Kind.STRING), self._type(values, level), value_required=_required(values))
            case Named(name):
                return self._named(name, level)
            case Union():
                return self._union(node, level)

    def _named(self, name: str, level: int) -> Type:
        match self._schema.types[name]:
            case Enum():
                return Primitive(Kind.STRING)
            case Fixed() as fixed:
                return scalar(fixed)
            case Record(is_number=True):
                return Primitive(Kind.STRING)
            case Record() as record:
                if name in self._schema.recursive:
                    level += 1
                    if level > RECURSION_DEPTH:
                        raise _Text
                self._nesting += 1
                if self._nesting > NESTING_LIMIT:
                    raise UnreadableSchema(f"records are nested more than {NESTING_LIMIT} levels deep", where=name)
                struct = self.struct(record, level)
                self._nesting -= 1
                if not struct.fields:
                    raise _Text
                return struct

    def _union(self, union: Union, level: int) -> Type:
        if not union.values:
            raise _Text
        if len(union.values) == 1:
            return self._type(union.values[0], level)
        if one := collapsed(union):
            return made_of(scalar(one), *(names_of(self._schema, branch) for branch in union.values))
        names = [names_of(self._schema, branch) for branch in union.values]
        branches = (RecordField(each[0], branch) for each, branch in zip(names, union.values, strict=True))
        found = self._columns(branches, level)
        return Struct(tuple(member(each, f.type, as_json=f.as_json) for each, f in zip(names, found, strict=True)))

    def _has_own_scale(self, node: Node) -> bool:
        match node:
            case Union():
                return any(map(self._has_own_scale, node.values))
            case Named(name):
                kind = self._schema.types[name]
                return isinstance(kind, Record) and kind.is_number
            case _:
                return isinstance(node, Simple) and node.logical == "big-decimal"


def _required(node: Node) -> bool:
    return not (isinstance(node, Union) and node.nullable)


def only_null(node: Node) -> bool:
    """Return whether null is the only possible value: such a field has no column until a version gives it a type."""
    return is_null(node) or (isinstance(node, Union) and not node.values)
