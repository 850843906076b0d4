"""Conversion of what a decoder yields to the table's row type, where they differ: JSON text, odd names, wider decimals."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.spark_types import spark_type
from frazil.decode.values.semantic_types import meant
from frazil.schemas.connect.connect_types import meaning
from frazil.schemas.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type

# All digits that a time has, and the same text in every session.
_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
    "timeZone": "UTC",
}


def conform(value: Column, yielded: Type, target: Type) -> Column:
    """Return `value`, of type `yielded`, as `target`; fields match by position.

    A field of `yielded` that is `as_json` is a structure and is converted to its JSON text. One that is `as_json` only in the
    target is text already. A field without a name does not exist, and is null.
    """
    if not _remains(yielded, target):
        return value
    match yielded, target:
        case Struct(found), Struct(wanted):
            fields = [_field(value, f, w) for f, w in zip(found, wanted, strict=True)]
            return F.when(value.isNotNull(), F.struct(*fields))
        case ListOf(old), ListOf(new):
            return F.transform(value, lambda element: conform(element, old, new))
        case MapOf(_, old), MapOf(_, new):
            return F.transform_values(value, lambda _, inner: conform(inner, old, new))
        case _:
            made = meant(value, yielded, target)
            return value.cast(spark_type(target)) if made is None else made


def _field(struct: Column, found: Field, wanted: Field) -> Column:
    if not found.name:
        return F.lit(None).cast(spark_type(wanted.type)).alias(wanted.name)
    value = struct[found.name]
    if found.as_json:
        return F.to_json(conform(value, found.type, meaning(found.type)), _OPTIONS).alias(wanted.name)
    return conform(value, found.type, wanted.type).alias(wanted.name)


def _remains(yielded: Type, target: Type) -> bool:
    """Return whether any text, name or type is left to convert; sources and comments do not count."""
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


def in_json(yielded: Type) -> Type:
    """Return the part of a type that is converted to JSON text; a struct without fields if there is none."""
    match yielded:
        case Struct(fields):
            kept = (Field(f.name, f.type if f.as_json else in_json(f.type)) for f in fields)
            return Struct(tuple(field for field in kept if field.type != _NOTHING))
        case ListOf(element):
            inner = in_json(element)
            return _NOTHING if inner == _NOTHING else ListOf(inner)
        case MapOf(_, value):
            inner = in_json(value)
            return (
                _NOTHING if inner == _NOTHING else MapOf(Primitive(Kind.LONG), inner)
            )  # its keys are looked at elsewhere
        case _:
            return _NOTHING


_NOTHING = Struct(())
