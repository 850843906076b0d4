"""Integers that are written with a fraction of zero or an exponent, `1.0` and `1e3`: integers since JSON Schema's draft 6.

`from_json` takes neither for an integer. A document in which it finds no row is read once more with a variant wherever an
integer is due. A variant keeps up to 38 digits of a number without an exponent; any other number is a double.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_PLAIN = r"^(-?\d+)(?:\.0+)?$"
_PAST_ITS_DIGITS = r"(?:\d{16,}|\d[\d.]{16,})[eE]|\d{39,}|\d[\d.]{39,}"
"""More than 15 digits with an exponent, or more than 38; a point is not a digit."""
_TO_NOTHING = r"[1-9][\d.]*[eE]-\d{3}"
"""Without the digits past its own, a double is 0 only where the number is, or below 1e-308."""
_EXACT = float(2**53)
"""Up to here every integer is a double of its own."""


def read(text: Column, of: T.StructType, options: dict[str, str]) -> Column:
    """Return what `from_json` reads from the text with a variant for every integer of `of`; each field has its position as name."""
    lenient = _with_variants(of)
    assert isinstance(lenient, T.StructType)
    return F.from_json(text, lenient, options).cast(_with_variants(of, numbered=True))


def settled(read: Column, of: T.StructType, text: Column) -> Column:
    """Return what was read of the text, of the type `of`. Null if a value in place of an integer is none, or does not fit.

    A number with an exponent is accepted up to 2^53.
    """
    fits = _every(read, of, text)
    return F.when(F.coalesce(fits, F.lit(False)), _mapped(read, of).cast(of))


def keeps_digits(raw: Column, text: Column) -> Column:
    """Return whether this variant's double is the number as written in this document: at most 15 digits, and not too small.

    The number's place in the text is not known: another one with more digits rejects the record, too.
    """
    is_nothing = F.try_variant_get(raw, "$", "double") == 0
    return ~text.rlike(_PAST_ITS_DIGITS) & ~(is_nothing & text.rlike(_TO_NOTHING))


def _with_variants(of: T.DataType, *, numbered: bool = False) -> T.DataType:
    """Return the type with variants for integers; if `numbered`, fields have their positions as names: Spark ignores case."""
    match of:
        case T.IntegerType() | T.LongType():
            return T.VariantType()
        case T.ArrayType():
            return T.ArrayType(_with_variants(of.elementType, numbered=numbered))
        case T.MapType():
            return T.MapType(of.keyType, _with_variants(of.valueType, numbered=numbered))
        case T.StructType():
            names = [f"_{n}" if numbered else f.name for n, f in enumerate(of.fields)]
            types = (_with_variants(f.dataType, numbered=numbered) for f in of.fields)
            return T.StructType([T.StructField(name, kind) for name, kind in zip(names, types, strict=True)])
    return of


def _has_integers(of: T.DataType) -> bool:
    return _with_variants(of) != of


def _mapped(raw: Column, of: T.DataType) -> Column:
    """Return what was read, with integers in place of their variants."""
    match of:
        case T.IntegerType() | T.LongType():
            return _integer(raw, of)
        case T.ArrayType() if _has_integers(of):
            return F.transform(raw, lambda item: _mapped(item, of.elementType))
        case T.MapType() if _has_integers(of):
            return F.transform_values(raw, lambda _, item: _mapped(item, of.valueType))
        case T.StructType() if _has_integers(of):
            fields = [_mapped(raw[f"_{n}"], f.dataType).alias(f"_{n}") for n, f in enumerate(of.fields)]
            return F.when(raw.isNotNull(), F.struct(*fields))
    return raw


def _every(raw: Column, of: T.DataType, text: Column) -> Column:
    """Return whether every variant in place of an integer is one; null only where there is nothing."""
    match of:
        case T.IntegerType() | T.LongType():
            return raw.isNull() | _is_integer(raw, of, text)
        case T.ArrayType() if _has_integers(of):
            return raw.isNull() | F.forall(raw, lambda item: _every(item, of.elementType, text))
        case T.MapType() if _has_integers(of):
            return raw.isNull() | F.forall(F.map_values(raw), lambda item: _every(item, of.valueType, text))
        case T.StructType() if _has_integers(of):
            parts = [(raw[f"_{n}"], f.dataType) for n, f in enumerate(of.fields) if _has_integers(f.dataType)]
            return reduce(Column.__and__, (_every(part, inner, text) for part, inner in parts))
    return F.lit(True)


def _integer(raw: Column, of: T.DataType) -> Column:
    value = F.try_variant_get(raw, "$", "double")
    from_double = F.when(F.abs(value) <= _EXACT, value.cast("long")).try_cast(of)
    plain = F.regexp_extract(F.to_json(raw), _PLAIN, 1).try_cast(of)
    return F.coalesce(plain, F.when(F.schema_of_variant(raw) == "DOUBLE", from_double))


def _is_integer(raw: Column, of: T.DataType, text: Column) -> Column:
    value = F.try_variant_get(raw, "$", "double")
    is_integral = (F.schema_of_variant(raw) != "DOUBLE") | ((value == F.floor(value)) & keeps_digits(raw, text))
    return F.is_variant_null(raw) | F.coalesce(_integer(raw, of).isNotNull() & is_integral, F.lit(False))
