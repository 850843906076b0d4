"""Conform: what a decoder yields -> the table's row type, where they differ: JSON text, odd names, wider decimals."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.ingest.spark_types import spark_type
from frazil.schemas.types import Field, ListOf, MapOf, Struct, Type


def conform(value: Column, yielded: Type, target: Type) -> Column:
    """`value`, of type `yielded`, as `target`; fields match by position.

    A field of `yielded` that is `as_json` is a structure, whatever its type says, and becomes its JSON text. One that is
    only in the target is text already.
    """
    if not _remains(yielded, target):
        return value
    match yielded, target:
        case Struct(found), Struct(wanted):
            fields = [_field(value[f.name], f, w) for f, w in zip(found, wanted, strict=True)]
            return F.when(value.isNotNull(), F.struct(*fields))
        case ListOf(old), ListOf(new):
            return F.transform(value, lambda element: conform(element, old, new))
        case MapOf(_, old), MapOf(_, new):
            return F.transform_values(value, lambda _, inner: conform(inner, old, new))
        case _:
            return value.cast(spark_type(target))


def _field(value: Column, found: Field, wanted: Field) -> Column:
    if found.as_json:
        return F.to_json(value).alias(wanted.name)
    return conform(value, found.type, wanted.type).alias(wanted.name)


def _remains(yielded: Type, target: Type) -> bool:
    """Whether there is text to make, a name or a type to change; sources and comments do not count."""
    match yielded, target:
        case Struct(found), Struct(wanted):
            pairs = zip(found, wanted, strict=True)
            return any(f.as_json or f.name != w.name or _remains(f.type, w.type) for f, w in pairs)
        case ListOf(old), ListOf(new):
            return _remains(old, new)
        case MapOf(old_key, old), MapOf(new_key, new):
            return _remains(old_key, new_key) or _remains(old, new)
        case _:
            return yielded != target
