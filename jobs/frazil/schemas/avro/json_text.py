"""The parts of a writer schema that no column holds: what lands as JSON text, and what is read over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from frazil.schemas.avro.row_type import collapsed
from frazil.schemas.avro.scalars import (
    LEGAL_NAME,
    UNNAMED,
    Once,
    Sides,
    branch_name,
    leaf,
    leaf_type,
    record,
    type_name,
)
from frazil.schemas.avro.schema import Array, AvroSchema, Enum, Fixed, Map, Named, Node, Record, Simple, Union
from frazil.schemas.evolution.column_names import claimed
from frazil.schemas.evolution.field_ids import MEMBER
from frazil.schemas.types import Field, Struct, Type

TEXT_DEPTH = 8
"""So many more levels of a recursive record are kept as JSON text; a record that goes deeper is rejected."""

TEXT_FIELDS = 4_000
"""Fields of all JSON text of one row; a schema that branches widely keeps as many levels as fit, at least one."""

_NOTHING = Struct(())


class Texts:
    """The text columns of one writer, `columns` in number; `numbers` makes names unique in the complete schema."""

    def __init__(self, schema: AvroSchema, numbers: Iterator[int], columns: int) -> None:
        self._schema = schema
        self._numbers = numbers
        self._budget = TEXT_FIELDS // max(columns, 1)
        self._sizes: dict[tuple[str, int], int] = {}

    def structure(self, node: Node, full: str = "") -> Sides:
        """Return the sides of a structure that Spark writes as JSON, with its own names; a deeper record does not decode.

        `full` is the full name of a record here.
        """
        depth = next((d for d in range(TEXT_DEPTH, 1, -1) if self._size(node, d) <= self._budget), 1)
        return replace(self._sides(node, depth, full), as_json=True)

    def verbatim(self, node: Node) -> Any:
        """Return a type whose value is read and not used."""
        match node:
            case Simple(name):
                return name
            case Array(items):
                return {"type": "array", "items": self.verbatim(items)}
            case Map(values):
                return {"type": "map", "values": self.verbatim(values)}
            case Union(branches):
                return [self.verbatim(branch) for branch in branches]
            case Named(name):
                full = self._verbatim_name(name)
                return Once(full, partial(self._definition, name, full))

    def _verbatim_name(self, name: str) -> str:
        return f"verbatim.type{list(self._schema.types).index(name)}"

    def _definition(self, name: str, full: str) -> Any:
        match self._schema.types[name]:
            case Record(_, fields):
                return record(full, [(f"f{i}", self.verbatim(f.type)) for i, f in enumerate(fields)])
            case Enum() | Fixed() as kind:
                return leaf(kind, leaf_type(kind), full).writer

    def _sides(self, node: Node, depth: int, full: str = "") -> Sides:
        match node:
            case Simple("null"):
                return Sides("null", "null", _NOTHING)
            case Simple():
                return leaf(node, leaf_type(node), "")
            case Array(items):
                return self._sides(items, depth).array()
            case Map(values):
                return self._sides(values, depth).map()
            case Union():
                return self._union(node, depth)
            case Named(name):
                return self._named(name, depth, full or f"text.t{next(self._numbers)}")

    def _union(self, union: Union, depth: int) -> Sides:
        branches = union.branches
        named = {branch.name for branch in branches if isinstance(branch, Named)}
        taken = {*UNNAMED, *(self._verbatim_name(name).rpartition(".")[2] for name in named)}
        sides = []
        for branch in branches:
            own = branch.name.rpartition(".")[2] if isinstance(branch, Named) else ""
            full = branch_name(own, taken, next(self._numbers)) if own else ""
            sides.append(self._sides(branch, depth, full))
        readers = [side.reader for side in sides]
        values = [side for side in sides if side.reader != "null"]
        if one := collapsed(union):
            yields: Type = leaf_type(one)
        elif len(values) == 1:
            yields = values[0].yields
        else:
            yields = Struct(tuple(Field(MEMBER + type_name(side.reader), side.yields) for side in values))
        return Sides([side.writer for side in sides], "null" if readers == ["null"] else readers, yields)

    def _named(self, name: str, depth: int, full: str) -> Sides:
        kind = self._schema.types[name]
        if not isinstance(kind, Record):
            return leaf(kind, leaf_type(kind), full)
        if name in self._schema.recursive:
            if depth == 0:
                return self._cut(name)
            depth -= 1
        names: list[str] = []
        for f in kind.fields:
            taken = {known.lower() for known in names}
            plain = LEGAL_NAME.fullmatch(f.name) and f.name.lower() not in taken
            names.append(f.name if plain else claimed(f.name, taken, top=False))
        sides = [self._sides(f.type, depth) for f in kind.fields]
        writers = [(named, side.writer) for named, side in zip(names, sides, strict=True)]
        readers = [(named, side.reader) for named, side in zip(names, sides, strict=True)]
        yields = Struct(tuple(Field(named, side.yields) for named, side in zip(names, sides, strict=True)))
        return Sides(record(full, writers), record(full, readers), yields)

    def _cut(self, name: str) -> Sides:
        """Cut off a level that is too deep: the reader wants a field that the writer lacks, so a record that gets here fails."""
        skipped = self.verbatim(Named(name))
        lacking = record(skipped.name, [("too_deep", "null")])
        return Sides(skipped, Once(skipped.name, lambda: lacking), _NOTHING)

    def _size(self, node: Node, depth: int) -> int:
        match node:
            case Simple():
                return 1
            case Array(inner) | Map(inner):
                return self._size(inner, depth)
            case Union(branches):
                return sum(self._size(branch, depth) for branch in branches)
            case Named(name):
                kind = self._schema.types[name]
                recursive = name in self._schema.recursive
                if not isinstance(kind, Record) or (recursive and depth == 0):
                    return 1
                if (name, depth) not in self._sizes:
                    fields = (self._size(f.type, depth - recursive) for f in kind.fields)
                    self._sizes[name, depth] = 1 + sum(fields)
                return self._sizes[name, depth]
