"""The row type of a JSON Schema; `docs/schemas.md` has the table of the mapping, and each of its rows is a test.

A value without a column type lands as its JSON text (`as_json`), so that every record of a readable schema can
land. A list or a map whose elements have no type lands as one JSON text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from frazil.schemas.connect.connect_types import (
    DECIMAL,
    NUMBER,
    VARIABLE_SCALE_DECIMAL,
    Held,
    Number,
    connect_decimal,
    named,
    with_unit,
)
from frazil.schemas.evolution.field_ids import SINGLE_VALUE, made_of
from frazil.schemas.json.documents import JsonSchema, Node
from frazil.schemas.json.documents import parse as parse
from frazil.schemas.json.keywords import NO_VALUE, Keywords, keywords
from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type

_TEXT, _LONG, _DOUBLE = Primitive(Kind.STRING), Primitive(Kind.LONG), Primitive(Kind.DOUBLE)
_WRITTEN_AS_STRING = {Kind.STRING, Kind.DATE, Kind.TIMESTAMPTZ, Kind.BINARY}


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of values: `type` is None if the only value is null."""

    type: Type | None
    nullable: bool = False
    as_json: bool = False
    doc: str = ""


def union(shapes: Iterable[Shape]) -> Shape:
    """Return the one shape that takes the values of all."""
    first, *others = shapes
    for other in others:
        first = _either(first, other)
    return first


def _either(a: Shape, b: Shape) -> Shape:
    nullable, doc = a.nullable or b.nullable, a.doc or b.doc
    if a.type is None or b.type is None:
        some = b if a.type is None else a
        return Shape(some.type, True, some.as_json, doc)
    joined = None if a.as_json or b.as_json else _join(a.type, b.type)
    return Shape(_TEXT, nullable, True, doc) if joined is None else Shape(joined, nullable, False, doc)


def _join(a: Type, b: Type) -> Type | None:
    """Return the type that takes values of both without loss of meaning, or None."""
    match a, b:
        case _ if a == b:
            return a
        case _ if isinstance(a, Held | Number) or isinstance(b, Held | Number):
            return None
        case Primitive(left), Primitive(right) if {left, right} <= {Kind.INT, Kind.LONG}:
            return _LONG
        case Primitive(left), Primitive(right) if {left, right} <= {Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE}:
            return _DOUBLE
        case Primitive(left), Primitive(right) if {left, right} <= _WRITTEN_AS_STRING:
            return _TEXT
        case Struct(), Struct():
            return _join_structs(a, b)
        case ListOf(), ListOf():
            element = _join(a.element, b.element)
            return None if element is None else ListOf(element, a.element_required and b.element_required)
        case MapOf(), MapOf():
            value = _join(a.value, b.value)
            return None if value is None else MapOf(_TEXT, value, a.value_required and b.value_required)
        case _:
            return None


def _join_structs(a: Struct, b: Struct) -> Struct:
    """Return all fields of both; one that is not in both may be absent, one whose types differ is JSON text."""
    theirs = {f.name: f for f in b.fields}
    fields = [_join_fields(f, theirs.pop(f.name, None)) for f in a.fields]
    return Struct((*fields, *(_join_fields(f, None) for f in theirs.values())))


def _join_fields(a: Field, b: Field | None) -> Field:
    if b is None:
        return Field(a.name, a.type, doc=a.doc, as_json=a.as_json)
    joined = None if a.as_json or b.as_json else _join(a.type, b.type)
    required, doc = a.required and b.required, a.doc or b.doc
    return Field(a.name, _TEXT if joined is None else joined, required=required, doc=doc, as_json=joined is None)


RECURSIONS = 1
"""So many levels of a definition inside itself are columns; the next level is JSON text."""

NESTING = 50
"""Structs, lists and maps within each other that become columns; what is deeper is JSON text."""

MOST_TYPES = 20_000
"""A schema that makes more fields, elements and alternatives than this, all levels together, is refused."""

VALUE_COLUMN = "value"
"""The column that holds a complete record which is no object with known properties."""

TO_LAND = "Name them under properties to land them"
"""The remedy for properties that are `omitted`."""

_FORMATS = {"date": Kind.DATE, "date-time": Kind.TIMESTAMPTZ}
_INTEGERS = {"int8": Kind.INT, "int16": Kind.INT, "int32": Kind.INT}


def row_type(schema: JsonSchema, *, connect_types: bool = False) -> Struct:
    """Return the columns of records that were written with `schema`.

    A schema of anything but an object with properties makes the one column `value`; see `is_single_value`. With `connect_types`,
    a type that Kafka Connect or Debezium names (`title`) is `Held` or `Number`, and columns have the order of Connect's fields.
    Raises `UnreadableSchema`, with the JSON pointer of the place, if a keyword is malformed or a reference leads
    nowhere.
    """
    shape = _Reading(schema, connect_types=connect_types).root()
    if isinstance(shape.type, Struct) and _is_object(shape):
        return replace(shape.type, origins=(_OBJECT,))
    of = made_of(shape.type or _TEXT, _OBJECT) if shape.as_json else shape.type or _TEXT
    value = Field(VALUE_COLUMN, of, not shape.nullable, shape.doc, as_json=shape.as_json)
    return Struct((value,), origins=(SINGLE_VALUE,))


def omitted(schema: JsonSchema, *, connect_types: bool = False, keeps_unknown: bool = False) -> tuple[str, ...]:
    """Return which properties the schema describes, or names, that land in no column.

    A name that only a pattern has, or none, is no column's. With `keeps_unknown` those of the record itself land.
    """
    reading = _Reading(schema, connect_types=connect_types)
    shape = reading.root()
    return tuple(
        f"{'.'.join(path) or 'the record'}: {what}"
        for (path, what), name in reading.omitted.items()
        if not (keeps_unknown and not path)
        and not _lands(shape, (*path, name) if name is not None else path, name is not None)
    )


def _lands(shape: Shape, path: Sequence[str], is_property: bool) -> bool:
    """Return whether what is at a path lands: in a column, or inside JSON text."""
    of: Type | None = shape.type
    if shape.as_json:
        return True
    for step in path:
        match of:
            case ListOf(inner) | MapOf(_, inner):
                of = inner
            case Struct(fields):
                field = next((field for field in fields if field.name == step), None)
                if field is None or field.as_json:
                    return field is not None
                of = field.type
            case _:
                return True
    return is_property or not isinstance(of, Struct)


def is_single_value(schema: JsonSchema, *, connect_types: bool = False) -> bool:
    """Return whether a record is the one column `value` (a list, a map, a scalar, anything), not an object with columns."""
    return not _is_object(_Reading(schema, connect_types=connect_types).root())


def is_nullable(schema: JsonSchema, *, connect_types: bool = False) -> bool:
    """Return whether a record may be null, as Kafka Connect's optional struct is."""
    return _Reading(schema, connect_types=connect_types).root().nullable


def _is_object(shape: Shape) -> bool:
    return isinstance(shape.type, Struct) and not isinstance(shape.type, Number)


_OBJECT = ("object",)
_JSON = Shape(_TEXT, nullable=True, as_json=True)


class _Reading:
    """One walk over a schema, which counts the types it makes.

    `omitted` are the places whose struct lacks properties that the schema describes, what they are, and their name if it is known.
    """

    def __init__(self, schema: JsonSchema, *, connect_types: bool) -> None:
        self.schema, self.connect_types = schema, connect_types
        self.types = 0
        self.omitted: dict[tuple[tuple[str, ...], str], str | None] = {}
        self.path: tuple[str, ...] = ()

    def root(self) -> Shape:
        """Return the shape of the records. Raises `UnreadableSchema` if there can be none."""
        root = self.schema.root
        try:
            shape = self.shape(keywords(self.schema, [root]), Counter([root.where]))
        except RecursionError:
            raise root.unreadable("the schema is nested too deeply") from None
        if shape is None or shape.type is None:
            raise root.unreadable("no record can be valid under this schema")
        return shape

    def shape(self, k: Keywords, outside: Counter[str]) -> Shape | None:
        """Return the shape of what the keywords describe; None if no value can be valid.

        `outside` counts the definitions that the place is in, and under "" the structs, lists and maps.
        """
        self._count()
        if NO_VALUE in k.types:
            return None
        inside = outside + Counter(k.definitions)
        if any(inside[name] > RECURSIONS + 1 for name in k.definitions):
            return _with(_JSON, k)
        if k.alternatives:
            shapes = [self.shape(branch, outside) for branch in k.branches(self.schema)]
            possible = [shape for shape in shapes if shape is not None]
            return _with(union(possible), k) if possible else None
        options = [self._of(kind, k, inside) for kind in sorted(k.types - {"null"})]
        if "null" in k.types:
            options.append(Shape(None, nullable=True))
        return _with(union(options) if options else _JSON, k)

    def _count(self) -> None:
        self.types += 1
        if self.types > MOST_TYPES:
            raise self.schema.root.unreadable(f"the schema makes more than {MOST_TYPES} types")

    def _parts(self, k: Keywords) -> list[Keywords]:
        """Return what the schemas describe that hold for some values only, alternatives inside them included."""
        found: dict[str, Keywords] = {}
        todo = list(k.conditional)
        while todo:
            node = todo.pop(0)
            if node.where not in found:
                self._count()
                found[node.where] = part = keywords(self.schema, [node])
                todo += [*part.conditional, *(member for members in part.alternatives for member in members)]
        return list(found.values())

    def _of(self, kind: str, k: Keywords, inside: Counter[str]) -> Shape:
        if kind not in ("object", "array"):
            of = _scalar(kind, k)
            name = k.hints.get("title")
            return Shape((named(name, of) if self.connect_types else None) or with_unit(name, of))
        if inside[""] == NESTING:
            return _JSON
        inside = inside + Counter([""])
        return self._object(k, inside) if kind == "object" else self._array(k, inside)

    def _object(self, k: Keywords, inside: Counter[str]) -> Shape:
        if self.connect_types and k.hints.get("title") == VARIABLE_SCALE_DECIMAL:
            return Shape(NUMBER)
        parts, values = self._parts(k), _values_of(k) if k.is_map else []
        marks = {name for part in parts for name in (*part.definitions, *((part.node.where,) if part.node else ()))}
        inside = inside + Counter(marks)
        if any(inside[name] > RECURSIONS + 1 for name in marks):
            return _JSON
        fields = [] if values else self._fields(k, parts, inside)
        if fields:
            self._omit(k, parts, {field.name for field in fields})
            return Shape(Struct(tuple(fields)))
        more = tuple(node for part in parts for node in _values_of(part))
        candidates = [self._together([node], more) for node in values]
        if values and k.additional is None:  # else its schema holds for these, too
            candidates += [keywords(self.schema, nodes) for part in parts for nodes in part.properties.values()]
        value = self._element(candidates, inside)
        return _JSON if value is None else Shape(MapOf(_TEXT, value[0], value_required=value[1]))

    def _fields(self, k: Keywords, parts: Sequence[Keywords], inside: Counter[str]) -> list[Field]:
        """Return the properties, and after them those that are described for some objects only."""
        more: dict[str, list[tuple[Node, ...]]] = {}
        for part in parts:
            for name, nodes in part.properties.items():
                more.setdefault(name, []).append(nodes)
        properties = {
            name: [self._together(nodes, tuple(n for found in more.pop(name, ()) for n in found))]
            for name, nodes in k.properties.items()
        }
        if self.connect_types:  # its converter writes the properties in no order
            properties = dict(sorted(properties.items(), key=lambda item: _index(item[1][0])))
        properties |= {name: [keywords(self.schema, nodes) for nodes in found] for name, found in more.items()}
        fields = []
        for name, candidates in properties.items():
            shapes = [shape for each in candidates if (shape := self._at(name, each, inside)) is not None]
            shape = union(shapes) if shapes else None
            if shape is not None and shape.type is not None:
                required = name in k.required and name in k.properties and not shape.nullable
                fields.append(Field(name, shape.type, required=required, doc=shape.doc, as_json=shape.as_json))
        return fields

    def _omit(self, k: Keywords, parts: Sequence[Keywords], names: Set[str]) -> None:
        """Note the properties that the schema describes, or names, without those that are fields."""
        for each in (k, *parts):
            for keyword in each.others:
                self.omitted.setdefault((self.path, f"other properties ({keyword})"), None)
            for name, keyword in each.named.items():
                if name not in names and name not in k.properties:
                    self.omitted.setdefault((self.path, f"the property {name} ({keyword})"), name)

    def _together(self, nodes: Sequence[Node], conditional: tuple[Node, ...] = ()) -> Keywords:
        found = keywords(self.schema, nodes)
        found.conditional += conditional
        return found

    def _at(self, step: str, k: Keywords, inside: Counter[str]) -> Shape | None:
        outside, self.path = self.path, (*self.path, step)
        shape = self.shape(k, inside)
        self.path = outside
        return shape

    def _array(self, k: Keywords, inside: Counter[str]) -> Shape:
        more = (*k.some_items, *(node for part in self._parts(k) for node in (*part.items, *part.some_items)))
        candidates = [self._together(k.items, more)] if k.items and not k.is_tuple else []
        element = self._element(candidates, inside)
        return _JSON if element is None else Shape(ListOf(element[0], element_required=element[1]))

    def _element(self, candidates: Sequence[Keywords], inside: Counter[str]) -> tuple[Type, bool] | None:
        """Return the type of elements or values, and whether they are never null; None if only JSON text fits."""
        shapes = [shape for k in candidates if (shape := self._at("*", k, inside)) is not None]
        joined = union(shapes) if shapes else _JSON
        return None if joined.type is None or joined.as_json else (joined.type, not joined.nullable)


def _values_of(k: Keywords) -> list[Node]:
    """Return what the values of properties without a schema of their own are."""
    return [*k.patterns, *([k.additional] if k.additional else [])]


def _scalar(kind: str, k: Keywords) -> Type:
    hint, is_decimal = k.hints.get("connect.type"), k.hints.get("title") == DECIMAL
    match kind:
        case "boolean":
            return Primitive(Kind.BOOLEAN)
        case "integer":
            return Primitive(_INTEGERS.get(str(hint), Kind.LONG))
        case "number" if is_decimal:
            return _decimal(k).means
        case "number":
            return Primitive(Kind.FLOAT if hint == "float32" else Kind.DOUBLE)
        case "string" if str(k.hints.get("contentEncoding")).lower() == "base64" or hint == "bytes":
            return _decimal(k) if is_decimal else Primitive(Kind.BINARY)
        case _:
            return Primitive(_FORMATS.get(str(k.hints.get("format")), Kind.STRING))


def _index(k: Keywords) -> int:
    """Return the place of a field in Kafka Connect's struct; fields without one are last."""
    index = k.hints.get("connect.index")
    return index if isinstance(index, int) else MOST_TYPES


def _decimal(k: Keywords) -> Held:
    try:
        return connect_decimal(k.hints.get("connect.parameters"))
    except ValueError as problem:
        assert k.node is not None
        raise k.node.unreadable(str(problem)) from None


def _with(shape: Shape, k: Keywords) -> Shape:
    """Return the shape with the description of the place that uses it, which goes before that of the definition."""
    doc = k.hints.get("description")
    return Shape(shape.type, shape.nullable, shape.as_json, doc.strip() if isinstance(doc, str) else shape.doc)
