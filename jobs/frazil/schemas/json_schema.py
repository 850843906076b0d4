"""The row type of a JSON Schema; `docs/schemas.md` has the table of the mapping, and each of its rows is a test.

A value without a column type lands as its JSON text (`as_json`), so that every record of a readable schema can
land. A list or a map whose elements have no type lands as one JSON text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from frazil.schemas.connect_types import DECIMAL, NUMBER, VARIABLE_SCALE_DECIMAL, Number, named, unscaled_decimal
from frazil.schemas.field_ids import SINGLE_VALUE, made_of
from frazil.schemas.json_documents import JsonSchema, parse
from frazil.schemas.json_keywords import NO_VALUE, Keywords, keywords
from frazil.schemas.json_shapes import Shape, union
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

__all__ = [
    "MOST_TYPES",
    "NESTING",
    "RECURSIONS",
    "VALUE_COLUMN",
    "JsonSchema",
    "is_nullable",
    "is_single_value",
    "parse",
    "row_type",
]

RECURSIONS = 1
"""How many levels of a definition inside itself are columns; the next level is JSON text."""

NESTING = 50
"""Structs, lists and maps within each other that become columns; what is deeper is JSON text."""

MOST_TYPES = 20_000
"""A schema that makes more fields, elements and alternatives than this, all levels together, is refused."""

VALUE_COLUMN = "value"
"""The column that holds a complete record which is no object with known properties."""

_TEXT, _LONG, _DOUBLE = Primitive(Kind.STRING), Primitive(Kind.LONG), Primitive(Kind.DOUBLE)
_FORMATS = {"date": Kind.DATE, "date-time": Kind.TIMESTAMPTZ}
_INTEGERS = {"int8": Kind.INT, "int16": Kind.INT, "int32": Kind.INT}


def row_type(schema: JsonSchema, *, connect_types: bool = False) -> Struct:
    """Return the columns of records that were written with `schema`.

    A schema of anything but an object with properties makes the one column `value`; see `is_single_value`. With `connect_types`,
    a type that Kafka Connect or Debezium names (`title`) is `Held` or `Number`, and columns have the order of Connect's fields.
    Raises `UnreadableSchema`, with the JSON pointer of the place, if a keyword is malformed or a reference leads
    nowhere.
    """
    shape = _root(schema, connect_types=connect_types)
    if isinstance(shape.type, Struct) and _is_object(shape):
        return replace(shape.type, origins=(_OBJECT,))
    required, of = not shape.nullable, shape.type or _TEXT
    value = Field(
        VALUE_COLUMN, made_of(of, _OBJECT) if shape.as_json else of, required, shape.doc, as_json=shape.as_json
    )
    return Struct((value,), origins=(SINGLE_VALUE,))


def is_single_value(schema: JsonSchema, *, connect_types: bool = False) -> bool:
    """Return whether a record is the one column `value` (a list, a map, a scalar, anything), not an object with columns."""
    return not _is_object(_root(schema, connect_types=connect_types))


def is_nullable(schema: JsonSchema, *, connect_types: bool = False) -> bool:
    """Return whether a record is an object with columns or null, as Kafka Connect's optional struct is."""
    shape = _root(schema, connect_types=connect_types)
    return shape.nullable and _is_object(shape)


def _is_object(shape: Shape) -> bool:
    return isinstance(shape.type, Struct) and not isinstance(shape.type, Number)


_OBJECT = ("object",)
_JSON = Shape(_TEXT, nullable=True, as_json=True)


def _root(schema: JsonSchema, *, connect_types: bool = False) -> Shape:
    try:
        shape = _Reading(schema, connect_types=connect_types).shape(
            keywords(schema, [schema.root]), Counter([schema.root.where])
        )
    except RecursionError:
        raise schema.root.unreadable("the schema is nested too deeply") from None
    if shape is None or shape.type is None:
        raise schema.root.unreadable("no record can be valid under this schema")
    return shape


class _Reading:
    """One walk over a schema, which counts the types it makes."""

    def __init__(self, schema: JsonSchema, *, connect_types: bool) -> None:
        self.schema, self.connect_types = schema, connect_types
        self.types = 0

    def shape(self, k: Keywords, outside: Counter[str]) -> Shape | None:
        """Return the shape of what the keywords describe; None if no value can be valid.

        `outside` counts the definitions that the place is in, and under "" the structs, lists and maps.
        """
        self.types += 1
        if self.types > MOST_TYPES:
            raise self.schema.root.unreadable(f"the schema makes more than {MOST_TYPES} types")
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

    def _of(self, kind: str, k: Keywords, inside: Counter[str]) -> Shape:
        if kind not in ("object", "array"):
            return Shape((_connect_type(kind, k) if self.connect_types else None) or _scalar(kind, k))
        if inside[""] == NESTING:
            return _JSON
        inside = inside + Counter([""])
        return self._object(k, inside) if kind == "object" else self._array(k, inside)

    def _object(self, k: Keywords, inside: Counter[str]) -> Shape:
        if self.connect_types and k.hints.get("title") == VARIABLE_SCALE_DECIMAL:
            return Shape(NUMBER)
        fields = []
        properties = {name: keywords(self.schema, nodes) for name, nodes in k.properties.items()}
        if self.connect_types:  # its converter writes the properties in no order
            properties = dict(sorted(properties.items(), key=lambda item: _index(item[1])))
        for name, property in properties.items():
            shape = self.shape(property, inside)
            if shape is not None and shape.type is not None:
                required = name in k.required and not shape.nullable
                fields.append(Field(name, shape.type, required=required, doc=shape.doc, as_json=shape.as_json))
        if fields:
            return Shape(Struct(tuple(fields)))
        values = [*k.patterns, *([k.additional] if k.additional else [])] if k.is_map else []
        value = self._element([keywords(self.schema, [node]) for node in values], inside)
        return _JSON if value is None else Shape(MapOf(_TEXT, value[0], value_required=value[1]))

    def _array(self, k: Keywords, inside: Counter[str]) -> Shape:
        candidates = [keywords(self.schema, k.items)] if k.items and not k.is_tuple else []
        element = self._element(candidates, inside)
        return _JSON if element is None else Shape(ListOf(element[0], element_required=element[1]))

    def _element(self, candidates: Sequence[Keywords], inside: Counter[str]) -> tuple[Type, bool] | None:
        """Return the type of elements or values, and whether they are never null; None if only JSON text fits."""
        shapes = [shape for k in candidates if (shape := self.shape(k, inside)) is not None]
        joined = union(shapes) if shapes else _JSON
        return None if joined.type is None or joined.as_json else (joined.type, not joined.nullable)


def _scalar(kind: str, k: Keywords) -> Type:
    hint = k.hints.get("connect.type")
    match kind:
        case "boolean":
            return Primitive(Kind.BOOLEAN)
        case "integer":
            return Primitive(_INTEGERS.get(str(hint), Kind.LONG))
        case "number" if k.hints.get("title") == DECIMAL:
            return _connect_decimal(k)
        case "number":
            return Primitive(Kind.FLOAT if hint == "float32" else Kind.DOUBLE)
        case "string" if str(k.hints.get("contentEncoding")).lower() == "base64" or hint == "bytes":
            return Primitive(Kind.BINARY)
        case _:
            return Primitive(_FORMATS.get(str(k.hints.get("format")), Kind.STRING))


def _connect_type(kind: str, k: Keywords) -> Type | None:
    """Return what a scalar that Kafka Connect or Debezium names is held as; None if it means what JSON Schema says."""
    title, of = k.hints.get("title"), _scalar(kind, k)
    if title == DECIMAL and (decimal := unscaled_decimal(k.hints.get("connect.parameters"))):
        return decimal.means if kind == "number" else decimal if of == Primitive(Kind.BINARY) else None
    return named(title, of)


def _index(k: Keywords) -> int:
    """Return the place of a field in Kafka Connect's struct; fields without one are last."""
    index = k.hints.get("connect.index")
    return index if isinstance(index, int) else MOST_TYPES


def _connect_decimal(k: Keywords) -> Type:
    parameters = k.hints.get("connect.parameters")
    given = parameters if isinstance(parameters, dict) else {}
    scale, precision = str(given.get("scale", "0")), str(given.get("connect.decimal.precision", "38"))
    if scale.isdecimal() and precision.isdecimal() and int(scale) <= int(precision) <= 38 and int(precision) > 0:
        return Decimal(int(precision), int(scale))
    return _DOUBLE


def _with(shape: Shape, k: Keywords) -> Shape:
    """Return the shape with the description of the place that uses it, which goes before that of the definition."""
    doc = k.hints.get("description")
    return Shape(shape.type, shape.nullable, shape.as_json, doc.strip() if isinstance(doc, str) else shape.doc)
