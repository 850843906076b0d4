"""The schemas and options with which `from_avro` decodes one writer's records into the rows of one table.

Avro's binary encoding holds no names, so the writer schema is rendered again, too, with the names of the reader: a
field by its column, a record by a name of its own at each place where it occurs. So names always match without aliases,
and a type that occurs in two places, or in itself, can have two different columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from frazil.schemas.avro.json_text import Texts
from frazil.schemas.avro.row_type import collapsed, names_of, only_null
from frazil.schemas.avro.scalars import (
    UNNAMED,
    Absent,
    Sides,
    branch_name,
    leaf,
    leaf_type,
    legal_names,
    number,
    settled,
    type_name,
)
from frazil.schemas.avro.schema import Array, AvroSchema, Map, Named, Node, Record, Simple, Union, is_null
from frazil.schemas.evolution.field_ids import MEMBER, is_union, member
from frazil.schemas.evolution.merge import brief, incompatible, same_field
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type, holds, inside, optional

OPTIONS: Mapping[str, str] = {
    "mode": "PERMISSIVE",
    "enableStableIdentifiersForUnionType": "true",
    "stableIdentifierPrefixForUnionType": MEMBER,
    "datetimeRebaseMode": "CORRECTED",
}
"""The options of `from_avro`, next to `avroSchema`."""

JVM_PROPERTIES: Mapping[str, str] = {
    "org.apache.avro.limits.bytes.maxLength": "134217728",
    "org.apache.avro.limits.string.maxLength": "134217728",
    "org.apache.avro.limits.collectionItems.maxLength": "4194304",
}
"""Java system properties of every JVM that decodes. Without them the JVM allocates any length that a garbled record
states: nine bytes end the executor with an `OutOfMemoryError`, and `from_avro` does not turn that error into null.

A list of that many elements is 16 MB before its first element is read, a map twice that, and each level within adds as
much.
"""

NOT_YIELDED = Field("", Primitive(Kind.BOOLEAN))
"""The entry in `Reader.yields` for a field of the target that Spark's row lacks: the writer does not have it, so it is null."""

DECODED = "_decoded"
"""The last field of what `from_avro` yields: true, and null exactly if the record could not be decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """`from_avro(body, writer, {**OPTIONS, "avroSchema": reader})`, and what it yields.

    `yields` has the fields of the target in their order, without `_decoded`; `NOT_YIELDED` for one that is null in every record.
    A field of it that is `as_json` is a structure there, to be written by `to_json`, and a string in the target. Otherwise names
    and types may differ in what a cast by position puts right: a name that Avro does not allow, a decimal too wide for the
    writer's fixed.
    """

    writer: str
    reader: str
    yields: Struct
    conforms: bool
    """True if `yields` is the target already, so that nothing remains to be done."""


def reader(writer: AvroSchema, target: Struct) -> Reader:
    """Return how to read a writer's records as rows of `target`, a table's row type with the sources of its fields.

    Raises `IncompatibleSchema` for a writer that does not fit the target.
    """
    sides, yields = _Rendering(writer, _texts(target)).record(writer.root, target, (), "row.t")
    fields = [*sides.reader["fields"], {"name": DECODED, "type": "boolean", "default": True}]
    return Reader(
        writer=_json(sides.writer),
        reader=_json({**sides.reader, "fields": fields}),
        yields=yields,
        conforms=yields == optional(target, lambda field, inner: Field(field.name, inner)),
    )


class _Rendering:
    """One pass over a writer schema and a target, side by side; `path` is of source names, for messages."""

    def __init__(self, schema: AvroSchema, texts: int) -> None:
        self._schema = schema
        self._numbers = count()
        self._absent = Absent(self._numbers)
        self._texts = Texts(schema, self._numbers, texts)
        self._is_exact = False

    def record(self, record: Record, target: Struct, path: tuple[str, ...], full: str) -> tuple[Sides, Struct]:
        names = legal_names(target)
        found: dict[str, Sides] = {}
        written: list[dict[str, Any]] = []
        for field in record.fields:
            column = same_field(Field(field.name, _STRING, aliases=field.aliases), target.fields)
            if column is None or column.name in found or only_null(field.type):
                written.append({"name": self._unused(names.values()), "type": self._texts.verbatim(field.type)})
                continue
            found[column.name] = sides = self._column(field.type, column, (*path, field.name))
            written.append({"name": names[column.name], "type": sides.writer})
        read: list[dict[str, Any]] = []
        yields: list[Field] = []
        for column in target.fields:
            name = names[column.name]
            if sides_found := found.get(column.name):
                read.append({"name": name, "type": sides_found.reader})
                yields.append(Field(name, sides_found.yields, as_json=sides_found.as_json))
            else:
                avro, kind = self._absent.type_of(column.type, (*path, column.name))
                read.append({"name": name, "type": ["null", avro], "default": None})
                yields.append(Field(name, kind))
        head = {"type": "record", "name": full}
        row = Struct(tuple(yields))
        return Sides({**head, "fields": written}, {**head, "fields": read}, row), row

    def _column(self, node: Node, column: Field, path: tuple[str, ...], full: str = "") -> Sides:
        if column.as_json and self._is_structure(node):
            return self._texts.structure(node, full)
        before, self._is_exact = self._is_exact, self._is_exact or column.is_exact
        try:
            return self._type(node, column.type, path, full)
        finally:
            self._is_exact = before

    def _type(self, node: Node, column: Type, path: tuple[str, ...], full: str = "") -> Sides:
        if is_union(column) and isinstance(column, Struct):
            return self._members(node, column, path)
        match node, column:
            case Array(items), ListOf(element):
                return self._type(items, element, (*path, "element")).array()
            case Map(values), MapOf(Primitive(Kind.STRING), value):
                return self._type(values, value, (*path, "value")).map()
            case Union(), _:
                return self._union(node, column, path)
            case Named(name), _:
                full = full or f"row.t{next(self._numbers)}"
                kind_of = self._schema.types[name]
                if isinstance(kind_of, Record) and kind_of.is_number:
                    if column == _STRING:
                        return number(kind_of, full)
                elif isinstance(kind_of, Record):
                    if isinstance(column, Struct):
                        return self.record(kind_of, column, path, full)[0]
                elif isinstance(column, Primitive | Decimal) and holds(column, leaf_type(kind_of)):
                    return leaf(kind_of, column, full)
            case Simple(base), Primitive() | Decimal() if base != "null" and holds(column, leaf_type(node)):
                return leaf(node, column, "", is_exact=self._is_exact)
        raise incompatible(path, f"this does not land in a column of {brief(column)}")

    def _union(self, union: Union, column: Type, path: tuple[str, ...]) -> Sides:
        one = collapsed(union)
        if one is None and len(union.values) != 1:
            raise incompatible(path, f"a union of several types does not land in a column of {brief(column)}")
        if one:
            inner = self._type(one, column, path)
            reader = ["null", inner.reader] if union.nullable else inner.reader
            return Sides(self._texts.verbatim(union), reader, inner.yields)
        inner = self._type(union.values[0], column, path)
        writer = ["null" if is_null(branch) else inner.writer for branch in union.branches]
        same_order = ["null" if is_null(branch) else inner.reader for branch in union.branches]
        return Sides(writer, same_order if union.nullable else inner.reader, inner.yields)

    def _members(self, node: Node, column: Struct, path: tuple[str, ...]) -> Sides:
        """Return a union, or a type alone that is a member of other versions' unions, for a column of members."""
        found: dict[str, Sides] = {}
        written: list[Any] = []
        taken = set(UNNAMED)
        own = [field.name.removeprefix(MEMBER) for field in column.fields]
        names = {
            f.name: branch_name(name, taken, next(self._numbers)) for f, name in zip(column.fields, own, strict=True)
        }
        branches = node.branches if isinstance(node, Union) else (node,)
        for branch in branches:
            if is_null(branch):
                written.append("null")
                continue
            wanted = member(names_of(self._schema, branch), _STRING)
            field = same_field(wanted, column.fields)
            if field is None or field.name in found:
                raise incompatible((*path, wanted.name), "the table has no column for this type of the union")
            found[field.name] = self._column(branch, field, (*path, wanted.name), names[field.name])
            written.append(found[field.name].writer)
        read: list[Any] = ["null"] if "null" in written else []
        yields: list[Field] = []
        seen = [type_name(sides.reader).lower() for sides in found.values()]
        if len(set(seen)) < len(seen):
            raise incompatible(path, "two types of the union are not distinguishable")
        for field in column.fields:
            sides = found.get(field.name)
            if sides is None:
                sides = self._absent.branch(field, names[field.name], (*path, field.name))
                if type_name(sides.reader).lower() in seen:
                    yields.append(NOT_YIELDED)
                    continue
                seen.append(type_name(sides.reader).lower())
            read.append(sides.reader)
            yields.append(Field(MEMBER + type_name(sides.reader), sides.yields, as_json=sides.as_json))
        return Sides(written if isinstance(node, Union) else written[0], read, Struct(tuple(yields)))

    def _is_structure(self, node: Node) -> bool:
        match node:
            case Simple():
                return False
            case Named(name):
                kind = self._schema.types[name]
                return isinstance(kind, Record) and not kind.is_number
            case Union() if len(node.values) == 1:
                return self._is_structure(node.values[0])
            case Union():
                return collapsed(node) is None
            case _:
                return True

    def _unused(self, names: Iterable[str]) -> str:
        taken = {name.lower() for name in names}
        return next(name for number in self._numbers if (name := f"over{number}") not in taken)


_STRING = Primitive(Kind.STRING)


def _texts(of: Type) -> int:
    if isinstance(of, Struct):
        return sum(1 if field.as_json else _texts(field.type) for field in of.fields)
    return sum(map(_texts, inside(of)))


def _json(tree: Any) -> str:
    return json.dumps(settled(tree, set()), separators=(",", ":"))
