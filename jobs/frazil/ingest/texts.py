"""Texts: all text in a row, wherever it is, as columns of strings and of arrays of strings. No lambda, but for lists of maps."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.schemas.types import Kind, ListOf, MapOf, Primitive, Struct, Type


def texts(value: Column, kind: Type) -> list[Column]:
    """The strings in a value, as columns that are a string or an array of strings each, nulls included."""
    match kind:
        case Primitive(kind=Kind.STRING):
            return [value]
        case Struct(fields=fields):
            return [text for f in fields for text in texts(value[f.name], f.type)]
        case ListOf():
            return _texts_in(value, kind.element)
        case MapOf():
            return [*_texts_in(F.map_keys(value), kind.key), *_texts_in(F.map_values(value), kind.value)]
    return []


def _texts_in(items: Column, kind: Type) -> list[Column]:
    """The strings in the items of an array."""
    if not _has_text(kind):
        return []
    match kind:
        case Struct(fields=fields):
            return [text for f in fields for text in _texts_in(items[f.name], f.type)]  # an array of each field
        case ListOf():
            return _texts_in(_flat(items), kind.element)
        case MapOf():
            keys, values = (F.transform(items, part) for part in (F.map_keys, F.map_values))
            return [*_texts_in(_flat(keys), kind.key), *_texts_in(_flat(values), kind.value)]
    return [items]


def _flat(items: Column) -> Column:
    return F.flatten(F.array_compact(items))  # one null among them would make all of it null


def _has_text(kind: Type) -> bool:
    match kind:
        case Primitive():
            return kind.kind is Kind.STRING
        case Struct(fields=fields):
            return any(_has_text(f.type) for f in fields)
        case ListOf():
            return _has_text(kind.element)
        case MapOf():
            return _has_text(kind.key) or _has_text(kind.value)
    return False
