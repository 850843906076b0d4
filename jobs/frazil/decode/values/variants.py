"""JSON text in decoded rows to variants. A row has none if a variant would not hold what the text says."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.decoded_columns import DECODED
from frazil.schemas.json_columns import has_variants
from frazil.schemas.types import ListOf, MapOf, Struct, Type

_PAST_A_DECIMAL = r"(?:^|[:,\[])\s*-?(?:\d{39,}|0\.\d{39,}|(?=[1-9]\d*\.\d)[\d.]{40,})\s*(?:[,}\]]|$)"
"""A number without an exponent that has more digits than a decimal: a variant would make a double of it."""
_LARGE, _INFINITE = r"(?:[eE]\+?0*[1-9]\d\d|\d{100,}[\d.]*[eE])", '"-?Infinity"'
"""A number that may be larger than any double, and what JSON says of the double that a variant makes of it."""
_ESCAPE, _STRING = r"\\.", r'"[^"]*"'


def as_variants(row: Column, of: Struct) -> Column:
    """Return the row with variants in the place of JSON text, where `of` has them; null where none can be made."""
    made = row  # each text is read from the row as it was: of the growing one, expressions would double
    for field in of.fields:
        if has_variants(field.type):
            made = made.withField(f"`{field.name}`", _made(row[field.name], field.type))
    return made


def settled(row: Column, texts: Column, of: Struct) -> Column:
    """Return what `as_variants` made of the row `texts`; not decoded unless each text became a variant of the same value.

    Both are columns of an earlier projection: an expression that is used twice would be computed twice.
    """
    return row.withField(DECODED, texts[DECODED] & _is_kept(texts, row, of))


def _made(text: Column, of: Type) -> Column:
    match of:
        case Struct():
            return as_variants(text, of)
        case ListOf(element):
            return F.transform(text, lambda item: _made(item, element))
        case MapOf(_, value):
            return F.transform_values(text, lambda _, item: _made(item, value))
        case _:
            return F.try_parse_json(text)


def _is_kept(text: Column, made: Column, of: Type) -> Column:
    """Return whether each text became a variant, and has no number that a variant changes; never null."""
    match of:
        case Struct(fields):
            inner = [_is_kept(text[f.name], made[f.name], f.type) for f in fields if has_variants(f.type)]
            return reduce(Column.__and__, inner)
        case ListOf(element):
            return _all(F.zip_with(text, made, lambda t, m: _is_kept(t, m, element)))
        case MapOf(_, value):
            return _all(F.zip_with(F.map_values(text), F.map_values(made), lambda t, m: _is_kept(t, m, value)))
        case _:
            # Strings may contain what looks like a number. Escapes go first, so that each quote begins or ends a string.
            bare = F.regexp_replace(F.regexp_replace(text, _ESCAPE, ""), _STRING, '""')
            is_infinite = bare.rlike(_LARGE) & F.to_json(made).rlike(_INFINITE)
            return text.isNull() | (made.isNotNull() & ~bare.rlike(_PAST_A_DECIMAL) & ~is_infinite)


def _all(kept: Column) -> Column:
    return F.coalesce(F.forall(kept, lambda one: one), F.lit(True))
