"""Numbers and escapes that Java cannot hold, and that `from_json` changes: they are found in the text of the document.

A number past a double becomes an infinity, half a surrogate pair a question mark, and an integer of more than 38 digits
in JSON text a double. The text is searched only where what was read is in doubt. What looks like such a number or escape
elsewhere in the document can reject its record; no value is changed.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.json.enclosing import NAME
from frazil.decode.values.leaves import Leaves

_BEFORE, _BEHIND = r"(?<=[:,\[\s])", r"(?=\s*[,}\]])"  # a number is between these
_PAST_A_FLOAT = rf"{_BEFORE}-?(?:\d[\d.]*[eE]\+?\d{{2,}}|\d{{30}})"
_PAST_A_DOUBLE = rf"{_BEFORE}-?(?:\d[\d.]*[eE]\+?\d{{3,}}|\d{{200}})"
_LONG_INTEGER = rf"{_BEFORE}(-?\d{{39,}}){_BEHIND}"
_NO_NUMBER = rf"{_BEFORE}[-+]?(?:NaN|INF|Infinity){_BEHIND}"
_ESCAPED_BACKSLASH = r"\\\\"
_HALF_A_PAIR = (
    r"\\u(?:[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u)[dD][c-fC-F][0-9a-fA-F]{2})"
)
_INFINITE = float("inf")
_DIGITS = f"{NAME}:"


def is_finite(floats: Leaves, doubles: Leaves, text: Column) -> list[Column]:
    """Return whether no number of the document was read as infinity; one that is written as `Infinity` is one."""
    kinds = ((floats, _PAST_A_FLOAT), (doubles, _PAST_A_DOUBLE))
    return [~_any(_infinite(found)) | ~text.rlike(past) for found, past in kinds if found]


def is_text(strings: Leaves, text: Column) -> Column:
    """Return whether no string has half of a surrogate pair, which is no text; Java makes a question mark of it."""
    return ~_any(_containing("?", strings)) | ~_has_half_a_pair(text)


def is_json(text: Column) -> Column:
    """Return whether a variant holds what the document says: no half of a surrogate pair, no number past a double, and no `NaN`.

    JSON has no such number, so a variant makes a string of it.
    """
    # `read` is named once: Spark would make what is named twice of each document, also of those without such a number.
    read = F.to_json(F.try_parse_json(text))
    is_past = text.rlike(f"{_PAST_A_DOUBLE}|{_NO_NUMBER}") & read.rlike('(?:NaN|Infinity)"')
    return ~_has_half_a_pair(text) & ~F.coalesce(is_past, F.lit(True))


def with_long_integers_as_strings(text: Column) -> Column:
    """Return the document with integers as strings that a variant would make a double of; `digits` makes them integers again."""
    return F.when(text.rlike(_LONG_INTEGER), F.regexp_replace(text, _LONG_INTEGER, f'"{_DIGITS}$1"')).otherwise(text)


def digits(json: Column) -> Column:
    """Return JSON text with the integers that were made strings."""
    return F.when(F.contains(json, F.lit(_DIGITS)), F.regexp_replace(json, f'"{_DIGITS}(-?\\d+)"', "$1")).otherwise(
        json
    )


def has_no_digits(strings: Leaves, text: Column) -> Column:
    """Return whether no string is an integer that was made one."""
    return ~F.contains(text, F.lit(_DIGITS)) | ~_any(_containing(_DIGITS, strings))


def _has_half_a_pair(text: Column) -> Column:
    # Escaped backslashes go first, from the left: then each that is left begins an escape. What was around one stays apart.
    bare = F.regexp_replace(text, _ESCAPED_BACKSLASH, " ")
    return F.contains(text, F.lit(r"\u")) & bare.rlike(_HALF_A_PAIR)


def _infinite(numbers: Leaves) -> list[Column]:
    ends = (_INFINITE, -_INFINITE)
    ones = [one == end for one in numbers.ones for end in ends]
    return [*ones, *(F.array_contains(many, F.lit(end)) for many in numbers.arrays for end in ends)]


def _containing(part: str, strings: Leaves) -> list[Column]:
    ones = [F.contains(one, F.lit(part)) for one in strings.ones]
    return [*ones, *(F.contains(F.concat_ws("", many), F.lit(part)) for many in strings.arrays)]


def _any(found: list[Column]) -> Column:
    return F.coalesce(reduce(Column.__or__, found), F.lit(False))
