"""Avro schema text to an `AvroSchema`, by the rules of https://avro.apache.org/docs/1.12.0/specification/#schema-declaration.

Lenient where Java Avro would refuse a name only (the reader schema brings names of its own), strict where the encoding
would be in doubt.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from frazil.errors import UnreadableSchema
from frazil.schemas.avro.schema import (
    NANO_TIMESTAMP,
    PRIMITIVES,
    ZONED_TIMESTAMP,
    Array,
    AvroSchema,
    Enum,
    Fixed,
    Map,
    Named,
    NamedType,
    Node,
    Record,
    RecordField,
    Simple,
    Union,
    takes_no_bytes,
)
from frazil.schemas.connect.connect_types import DECIMAL, UNITS, VARIABLE_SCALE_DECIMAL, decimal_column
from frazil.schemas.evolution.column_names import has_half_surrogates
from frazil.schemas.types import Decimal

LOGICAL = {
    "int": {"date", "time-millis"},
    "long": {"time-micros"} | {f"{p}timestamp-{u}" for p in ("", "local-") for u in ("millis", "micros", "nanos")},
    "bytes": {"big-decimal"},
    "string": {"uuid"},
}
"""The logical types that are read, by the primitive type that they annotate."""

DEBEZIUM = {
    ("int", "io.debezium.time.Date"): "date",
    ("long", "io.debezium.time.Timestamp"): "local-timestamp-millis",
    ("long", "io.debezium.time.MicroTimestamp"): "local-timestamp-micros",
    ("long", "io.debezium.time.NanoTimestamp"): NANO_TIMESTAMP,
    ("string", "io.debezium.time.ZonedTimestamp"): ZONED_TIMESTAMP,
}
"""The logical type that a primitive type with this name of Debezium's is read as. Others are what they are in Avro.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types
"""
NUMBER = {"scale": Simple("int"), "value": Simple("bytes")}
"""The fields of the record that Debezium writes for a number of no fixed scale."""


def simple_type(name: str, tree: dict[str, Any], *, connect_types: bool = False) -> Simple:
    """Return a primitive type with its logical type, if Avro knows that for it; with `connect_types`, also if Debezium does.

    Raises `ValueError` as `decimal_of` does.
    """
    logical = tree.get("logicalType")
    if connect_types and (named := DEBEZIUM.get((name, text_of(tree, "connect.name")))):
        return Simple(name, named)
    if name == "bytes" and (decimal := decimal_of(tree)):
        return Simple(name, "decimal", *decimal)
    if isinstance(logical, str) and logical in LOGICAL.get(name, ()):
        return Simple(name, logical)
    kind, unit = UNITS.get(text_of(tree, "connect.name"), (None, ""))
    return Simple(name, unit=unit if kind == name else "")


def decimal_of(tree: dict[str, Any]) -> tuple[Decimal, int] | None:
    """Return the `decimal_column` of bytes that are annotated as a decimal, by Avro or by Kafka Connect; None if they are not.

    Avro ignores an annotation that it does not allow, such as a scale larger than the precision: the number would become bytes
    without its scale. Raises `ValueError` as `decimal_column` does.
    """
    if tree.get("logicalType") != "decimal" and text_of(tree, "connect.name") != DECIMAL:
        return None
    parameters = tree.get("connect.parameters")
    given = parameters if isinstance(parameters, dict) else {}
    precision = tree.get("precision", given.get("connect.decimal.precision"))
    return decimal_column(precision, tree.get("scale", given.get("scale", 0)))


def is_name(text: str) -> bool:
    """Return whether Java Avro's `UTF_VALIDATOR` accepts the name."""
    kinds = ["L" if c == "_" else unicodedata.category(c) for c in text]
    return bool(text) and kinds[0][0] == "L" and all(kind[0] == "L" or kind == "Nd" for kind in kinds)


def text_of(tree: dict[str, Any], name: str) -> str:
    """Return the text of an attribute, without surrounding space; empty if it is missing or no text."""
    value = tree.get(name)
    return value.strip() if isinstance(value, str) else ""


def names_of(value: Any) -> tuple[str, ...]:
    """Return the names in a list; none if it is no list."""
    return tuple(v for v in value if isinstance(v, str) and v) if isinstance(value, list) else ()


TEXT_LIMIT = 4 * 1024 * 1024
"""Characters of a schema and its references together; registries allow 1 MB by default."""

NESTING_LIMIT = 100
"""Levels of types within types, as written."""


def parse(schema_text: str, references: Mapping[str, str] | None = None, *, connect_types: bool = False) -> AvroSchema:
    """Read a writer schema; `references` are the registry's: name -> schema text, transitively complete, in any order.

    With `connect_types`, types that Debezium names (`connect.name`) are what they mean, not only what holds them.

    Raises `UnreadableSchema`, its `where` being the path of the type in question, such as `Order.lines[].price`.
    """
    references = references or {}
    if len(schema_text) + sum(map(len, references.values())) > TEXT_LIMIT:
        raise UnreadableSchema(f"the schema is longer than {TEXT_LIMIT} characters")
    parser = _Parser(references, connect_types=connect_types)
    try:
        root = parser.document(schema_text)
    except RecursionError:
        raise UnreadableSchema("the schema or its references are nested too deeply") from None
    types = parser.types
    for place, items in parser.lists:
        if takes_no_bytes(items, types):
            raise UnreadableSchema(
                "a list of elements that take no bytes: a record of a few bytes can have billions of them",
                where=place,
                do="Give its elements a field",
            )
    if isinstance(root, Named) and isinstance(record := types[root.name], Record) and not record.is_number:
        return AvroSchema(record, types, aliases=parser.aliases)
    wrapper = "value"
    while wrapper in types:
        wrapper += "_"
    types[wrapper] = record = Record(wrapper, (RecordField("value", root),))
    return AvroSchema(record, types, is_single_value=True, aliases=parser.aliases)


class _Parser:
    def __init__(self, references: Mapping[str, str], *, connect_types: bool) -> None:
        self._connect_types = connect_types
        self.types: dict[str, NamedType] = {}
        self.aliases: dict[str, tuple[str, ...]] = {}  # earlier full names of named types
        self.lists: list[tuple[str, Node]] = []  # the path of each list, and its elements
        self._opened: set[str] = set()  # records whose fields are being read: already nameable
        self._unread = dict(references)
        self._path: list[str] = []

    def document(self, text: str) -> Node:
        try:
            tree = json.loads(text)
        except ValueError as problem:
            # Registries keep a schema that is only a primitive's name also without quotes.
            if text.strip() in PRIMITIVES:
                return Simple(text.strip())
            raise self._unreadable(f"the schema is not JSON: {problem}") from None
        if has_half_surrogates(tree):
            raise self._unreadable("a text has half a surrogate pair, which is invalid Unicode")
        return self._node(tree, "", 0)

    def _unreadable(self, what: str) -> UnreadableSchema:
        return UnreadableSchema(what, where="".join(self._path).lstrip("."))

    @contextmanager
    def _at(self, step: str) -> Iterator[None]:
        self._path.append(step)
        yield
        self._path.pop()

    def _node(self, tree: Any, namespace: str, depth: int) -> Node:
        if depth > NESTING_LIMIT:
            raise self._unreadable(f"types are nested more than {NESTING_LIMIT} levels deep")
        if isinstance(tree, str):
            return self._reference(tree, namespace)
        if isinstance(tree, list):
            return self._union(tree, namespace, depth)
        if not isinstance(tree, dict):
            raise self._unreadable(f"{json.dumps(tree)[:40]} is not a type")
        kind = tree.get("type")
        match kind:
            case "record" | "error":
                return self._record(tree, namespace, depth)
            case "enum":
                return self._enum(tree, namespace)
            case "fixed":
                return self._fixed(tree, namespace)
            case "array":
                items = self._member(tree, "items")
                with self._at("[]"):
                    array = Array(self._node(items, namespace, depth + 1))
                    self.lists.append(("".join(self._path).lstrip("."), array.items))
                    return array
            case "map":
                values = self._member(tree, "values")
                with self._at("{}"):
                    return Map(self._node(values, namespace, depth + 1))
            case str() if kind in PRIMITIVES:
                try:
                    return simple_type(kind, tree, connect_types=self._connect_types)
                except ValueError as problem:
                    raise self._unreadable(str(problem)) from None
            case str() | list() | dict():
                return self._node(kind, namespace, depth + 1)
            case _:
                raise self._unreadable("a type without `type`")

    def _member(self, tree: dict[str, Any], name: str) -> Any:
        if name not in tree:
            raise self._unreadable(f"{tree['type']} without `{name}`")
        return tree[name]

    def _reference(self, name: str, namespace: str) -> Node:
        if name in PRIMITIVES:
            return Simple(name)
        candidates = [name] if "." in name or not namespace else [f"{namespace}.{name}", name]
        while True:
            for candidate in candidates:
                candidate = candidate.lstrip(".")
                if candidate in self.types or candidate in self._opened:
                    return Named(candidate)
            # The registry's name of a reference most often is the type's; if not, the type is in one of them.
            wanted = next((c for c in candidates if c in self._unread), next(iter(self._unread), None))
            if wanted is None:
                raise self._unreadable(f"there is no type {name!r}")
            text, path, self._path = self._unread.pop(wanted), self._path, [f"(reference {wanted}) "]
            self.document(text)
            self._path = path

    def _union(self, trees: list[Any], namespace: str, depth: int) -> Node:
        if not trees:
            raise self._unreadable("a union without branches")
        branches: list[Node] = []
        for tree in trees:
            branch = self._node(tree, namespace, depth + 1)
            if isinstance(branch, Union):
                raise self._unreadable("a union directly in a union")
            branches.append(branch)
        kinds = [b.name if isinstance(b, Named | Simple) else type(b).__name__ for b in branches]
        if len(set(kinds)) < len(kinds):
            raise self._unreadable("a union that has one type twice")
        return Union(tuple(branches))

    def _name(self, tree: dict[str, Any], namespace: str) -> tuple[str, str]:
        name = tree.get("name")
        if not isinstance(name, str) or not name:
            raise self._unreadable(f"{tree['type']} without `name`")
        if "." in name:
            namespace, _, name = name.rpartition(".")
        elif isinstance(tree.get("namespace"), str):
            namespace = tree["namespace"]
        full = f"{namespace}.{name}" if namespace else name
        if full in PRIMITIVES:
            raise self._unreadable(f"{full!r} is a primitive type's name")
        if full in self.types or full in self._opened:
            raise self._unreadable(f"{full!r} is defined twice")
        if earlier := names_of(tree.get("aliases")):
            self.aliases[full] = tuple(a if "." in a or not namespace else f"{namespace}.{a}" for a in earlier)
        return full, namespace

    def _record(self, tree: dict[str, Any], namespace: str, depth: int) -> Node:
        full, namespace = self._name(tree, namespace)
        members = self._member(tree, "fields")
        if not isinstance(members, list) or not all(isinstance(m, dict) for m in members):
            raise self._unreadable("`fields` is not a list of fields")
        self._opened.add(full)
        fields: list[RecordField] = []
        with self._at(full if not self._path else ""):
            for member in members:
                name = member.get("name")
                if not isinstance(name, str) or not name:
                    raise self._unreadable("a field without `name`")
                with self._at(f".{name}"):
                    if any(f.name == name for f in fields):
                        raise self._unreadable("the record has this field twice")
                    kind = self._node(member.get("type"), namespace, depth + 1)
                    fields.append(RecordField(name, kind, text_of(member, "doc"), names_of(member.get("aliases"))))
        self._opened.discard(full)
        is_number = self._connect_types and text_of(tree, "connect.name") == VARIABLE_SCALE_DECIMAL
        is_number = is_number and {f.name: f.type for f in fields} == NUMBER
        self.types[full] = Record(full, tuple(fields), is_number)
        return Named(full)

    def _enum(self, tree: dict[str, Any], namespace: str) -> Node:
        full, _ = self._name(tree, namespace)
        symbols = self._member(tree, "symbols")
        if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
            raise self._unreadable("`symbols` is not a list of names")
        if len(set(symbols)) < len(symbols):
            raise self._unreadable("a symbol occurs twice")
        for symbol in symbols:
            if not is_name(symbol):
                raise self._unreadable(f"{symbol!r} is no symbol that Avro's Java library accepts")
        self.types[full] = Enum(full, tuple(symbols))
        return Named(full)

    def _fixed(self, tree: dict[str, Any], namespace: str) -> Node:
        full, _ = self._name(tree, namespace)
        size = self._member(tree, "size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 31:
            raise self._unreadable("`size` is not a number of bytes")
        try:
            self.types[full] = Fixed(full, size, *(decimal_of(tree) or ()))
        except ValueError as problem:
            raise self._unreadable(str(problem)) from None
        return Named(full)
