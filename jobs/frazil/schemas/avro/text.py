"""The parts of a writer schema that no column holds: what lands as JSON text, and what is read over."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from frazil.schemas.avro.leaf import LEGAL_NAME, UNNAMED, Once, Sides, branch_name, leaf, leaf_type
from frazil.schemas.avro.schema import Array, AvroSchema, Enum, Fixed, Map, Named, Node, Record, Simple, Union, short
from frazil.schemas.names import claimed
from frazil.schemas.types import Kind, Primitive

TEXT_DEPTH = 8
"""How many more levels of a recursive record are kept as JSON text; a record that goes deeper is rejected."""

TEXT_FIELDS = 4_000
"""Fields of all JSON text of one row; a schema that branches widely keeps as many levels as fit, at least one."""

TEXT = Primitive(Kind.STRING)


class Texts:
    """The text columns of one writer, `columns` in number; `numbers` makes names unique in the whole schema."""

    def __init__(self, schema: AvroSchema, numbers: Iterator[int], columns: int) -> None:
        self._schema = schema
        self._numbers = numbers
        self._budget = TEXT_FIELDS // max(columns, 1)
        self._sizes: dict[tuple[str, int], int] = {}

    def structure(self, node: Node, full: str = "") -> Sides:
        """A structure that Spark is to write as JSON, with its own names; what is too deep does not decode.

        `full` is the full name of a record here.
        """
        depth = next((d for d in range(TEXT_DEPTH, 1, -1) if self._size(node, d) <= self._budget), 1)
        writer, reader = self._sides(node, depth, full)
        return Sides(writer, reader, TEXT, as_json=True)

    def verbatim(self, node: Node) -> Any:
        """A type that is only read over."""
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
                full = self._whole(name)
                return Once(full, partial(self._definition, name, full))

    def _whole(self, name: str) -> str:
        return f"whole.whole{list(self._schema.types).index(name)}"

    def _definition(self, name: str, full: str) -> Any:
        match self._schema.types[name]:
            case Record(_, fields):
                members = [{"name": f"f{i}", "type": self.verbatim(f.type)} for i, f in enumerate(fields)]
                return {"type": "record", "name": full, "fields": members}
            case Enum() | Fixed() as kind:
                return leaf(kind, leaf_type(kind), full).writer

    def _sides(self, node: Node, depth: int, full: str = "") -> tuple[Any, Any]:
        match node:
            case Simple("null"):
                return "null", "null"
            case Simple():
                scalar = leaf(node, leaf_type(node), "")
                return scalar.writer, scalar.reader
            case Array(items):
                writer, reader = self._sides(items, depth)
                return {"type": "array", "items": writer}, {"type": "array", "items": reader}
            case Map(values):
                writer, reader = self._sides(values, depth)
                return {"type": "map", "values": writer}, {"type": "map", "values": reader}
            case Union(branches):
                return self._union(branches, depth)
            case Named(name):
                return self._named(name, depth, full or f"text.t{next(self._numbers)}")

    def _union(self, branches: tuple[Node, ...], depth: int) -> tuple[Any, Any]:
        named = {branch.name for branch in branches if isinstance(branch, Named)}
        taken = {*UNNAMED, *(short(self._whole(name)) for name in named)}
        sides = []
        for branch in branches:
            own = short(branch.name) if isinstance(branch, Named) else ""
            full = branch_name(own, taken, next(self._numbers)) if own else ""
            sides.append(self._sides(branch, depth, full))
        readers = [reader for _, reader in sides]
        return [writer for writer, _ in sides], "null" if readers == ["null"] else readers

    def _named(self, name: str, depth: int, full: str) -> tuple[Any, Any]:
        kind = self._schema.types[name]
        if not isinstance(kind, Record):
            scalar = leaf(kind, leaf_type(kind), full)
            return scalar.writer, scalar.reader
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
        head = {"type": "record", "name": full}
        writers = [{"name": named, "type": writer} for named, (writer, _) in zip(names, sides, strict=True)]
        readers = [{"name": named, "type": reader} for named, (_, reader) in zip(names, sides, strict=True)]
        return {**head, "fields": writers}, {**head, "fields": readers}

    def _cut(self, name: str) -> tuple[Any, Any]:
        """A level too deep: the reader wants a field that the writer lacks, so a record that gets here fails."""
        whole = self.verbatim(Named(name))
        lacking = {"type": "record", "name": whole.name, "fields": [{"name": "too_deep", "type": "null"}]}
        return whole, Once(whole.name, lambda: lacking)

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
