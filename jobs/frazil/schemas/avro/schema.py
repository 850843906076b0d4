"""An Avro schema as values: every name resolved, no text left to interpret.

A named type is a `Named` in the tree; `AvroSchema.types` holds its definition. So a recursive schema is finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from frazil.schemas.types import Decimal

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

NANO_TIMESTAMP, ZONED_TIMESTAMP = "debezium-nano-timestamp", "debezium-zoned-timestamp"
"""Logical types that Avro does not know: nanoseconds since 1970 in a long, and an instant as ISO text."""


@dataclass(frozen=True, slots=True)
class Simple:
    """A primitive type; `logical` is set only where Avro knows it on this type (it ignores a wrong one).

    `decimal` is the column of a decimal, whose numbers have so many `zeros` after their digits. `unit` is that of a number, if
    Kafka Connect or Debezium names it.
    """

    name: str
    logical: str = ""
    decimal: Decimal | None = None
    zeros: int = 0
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Array:
    """An array."""

    items: Node


@dataclass(frozen=True, slots=True)
class Map:
    """A map; its keys are strings."""

    values: Node


@dataclass(frozen=True, slots=True)
class Union:
    """A union, in the order of its branches: the encoding names a branch by its index."""

    branches: tuple[Node, ...]

    @property
    def values(self) -> tuple[Node, ...]:
        """Return the branches that are not null."""
        return tuple(branch for branch in self.branches if not is_null(branch))

    @property
    def nullable(self) -> bool:
        """Return whether null is a branch."""
        return len(self.values) < len(self.branches)


@dataclass(frozen=True, slots=True)
class Named:
    """A use of the record, enum or fixed of this full name."""

    name: str


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record; `aliases` are its earlier names."""

    name: str
    type: Node
    doc: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """A record. One with `is_number` is a number of its own scale: its fields are the scale, and the digits in bytes."""

    name: str
    fields: tuple[RecordField, ...]
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum; the encoding names a symbol by its index."""

    name: str
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fixed:
    """`size` bytes; `decimal` and `zeros` are those of `Simple`."""

    name: str
    size: int
    decimal: Decimal | None = None
    zeros: int = 0


NamedType = Record | Enum | Fixed
Node = Simple | Array | Map | Union | Named


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A writer schema. Its root is a record: another value becomes its field `value`, the encoding is the same.

    `is_single_value` says that the root is such a wrapper. `aliases` are the earlier full names of named types.
    """

    root: Record
    types: Mapping[str, NamedType]
    is_single_value: bool = False
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    recursive: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "recursive", _recursive(self.types))


def is_null(node: Node) -> bool:
    """Return whether the node is the type null."""
    return isinstance(node, Simple) and node.name == "null"


def max_precision(size: int) -> int:
    """Return the most digits that a decimal of `size` bytes can always hold, as Java Avro has it."""
    return math.floor(math.log10(2) * (8 * size - 1)) if size > 0 else 0


def takes_no_bytes(node: Node, types: Mapping[str, NamedType], around: frozenset[str] = frozenset()) -> bool:
    """Return whether a value may be encoded in no bytes at all: null, a fixed of size 0, a record of nothing else."""
    match node:
        case Simple(name):
            return name == "null"
        case Named(name):
            match types[name]:
                case Record(_, fields):
                    inside = around | {name}
                    return name in around or all(takes_no_bytes(f.type, types, inside) for f in fields)
                case Fixed(_, size):
                    return size == 0
    return False


def uses(node: Node) -> Iterator[str]:
    """Yield the named types that a node itself contains, not those inside their definitions."""
    match node:
        case Named(name):
            yield name
        case Array(inner) | Map(inner):
            yield from uses(inner)
        case Union(branches):
            for branch in branches:
                yield from uses(branch)
        case Simple():
            pass


def _recursive(types: Mapping[str, NamedType]) -> frozenset[str]:
    """Return the records that can contain themselves."""
    inside = {
        name: frozenset(used for f in kind.fields for used in uses(f.type)) if isinstance(kind, Record) else frozenset()
        for name, kind in types.items()
    }

    def reaches_itself(start: str) -> bool:
        seen: set[str] = set()
        todo = list(inside[start])
        while todo:
            name = todo.pop()
            if name == start:
                return True
            if name not in seen:
                seen.add(name)
                todo.extend(inside[name])
        return False

    return frozenset(name for name in types if reaches_itself(name))
