"""The types that `from_json` is given for a target: a string or a variant wherever it would be lenient.

It makes a string of whatever is in place of one: `1` and `"1"`, two keys, would be one. So a string of a key is a variant, too.
"""

from __future__ import annotations

from pyspark.sql import types as T

from frazil.decode.spark_types import spark_type
from frazil.schemas.json.written_times import WRITTEN
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type, inside


def has_json(document: Field | None) -> bool:
    """Return whether a document of this type has JSON text somewhere."""
    return document is not None and (document.as_json or any(map(has_json, _fields(document.type))))


def has_integers(document: Field | None) -> bool:
    """Return whether a document of this type has integers somewhere."""
    if document is None or document.as_json:
        return False
    of = document.type
    is_integer = isinstance(of, Primitive) and of.kind in (Kind.INT, Kind.LONG)
    return is_integer or any(map(has_integers, _fields(of)))


def _fields(of: Type) -> tuple[Field, ...]:
    return of.fields if isinstance(of, Struct) else tuple(Field("", inner) for inner in inside(of))


def is_exact_text(field: Field) -> bool:
    """Return whether the field is a string of a key; a text that means a time is one, too."""
    return field.is_exact and isinstance(field.type, Primitive) and field.type.kind is Kind.STRING


def written(of: Type, *, as_variant: bool = False, by_source: bool = True) -> T.DataType:
    """Return the type to read as: a variant or a string where `from_json` would be lenient."""
    if as_variant:
        return T.VariantType()
    match of:
        case Primitive(kind):
            return T.StringType() if kind in WRITTEN else spark_type(of)
        case Decimal():
            return T.VariantType()
        case ListOf(element):
            return T.ArrayType(written(element, by_source=by_source))
        case MapOf(key, value):
            return T.MapType(written(key), written(value, by_source=by_source))
        case Struct(fields):
            return T.StructType(
                [
                    T.StructField(
                        f.source if by_source else f.name,
                        written(f.type, as_variant=f.as_json or is_exact_text(f), by_source=by_source),
                    )
                    for f in fields
                ]
            )


def is_read_as_is(of: Type) -> bool:
    """Return whether what `from_json` reads is the value, but for the names of fields."""
    match of:
        case Primitive(kind):
            return kind not in WRITTEN
        case Decimal():
            return False
        case Struct(fields):
            return all(not f.as_json and not is_exact_text(f) and is_read_as_is(f.type) for f in fields)
        case _:
            return all(map(is_read_as_is, inside(of)))


def has_no_checks(of: Type) -> bool:
    """Return whether a value that `from_json` has read needs no check at any depth."""
    match of:
        case Primitive(kind):
            return kind not in WRITTEN
        case ListOf(element):
            return has_no_checks(element)
        case Struct(fields):
            return all(f.as_json or (not is_exact_text(f) and has_no_checks(f.type)) for f in fields)
        case _:
            return False


def has_times(field: Field) -> bool:
    """Return whether the field is a date or a time, or a struct that has one somewhere, lists and maps apart."""
    if field.as_json:
        return False
    match field.type:
        case Primitive(kind):
            return kind in WRITTEN
        case Struct(fields):
            return any(map(has_times, fields))
        case _:
            return False


def is_ambiguous(of: Type) -> bool:
    """Return whether a struct has sources that differ in case only: Spark finds fields without regard to case."""
    fields = of.fields if isinstance(of, Struct) else ()
    folded = {field.source.upper().lower() for field in fields}
    return len(folded) < len(fields) or any(map(is_ambiguous, inside(of)))
