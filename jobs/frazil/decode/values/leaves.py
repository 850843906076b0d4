"""All values of a kind in a row, at any depth, as columns of values and of arrays.

Arrays in arrays cost Spark a function that has a function: its plan doubles with each of them (measured: eight levels of maps and
lists fill a heap of 2 GB). So texts below `MOST_NESTED` arrays are not taken apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.spark_types import spark_type
from frazil.schemas.types import Kind, ListOf, MapOf, Primitive, Struct, Type, inside

_TEXT = frozenset({Kind.STRING})
MOST_NESTED = 3
"""Of so many arrays within each other the texts are taken apart; all that lies deeper is one text."""


@dataclass(frozen=True, slots=True)
class Leaves:
    """Columns of one value each, and columns of arrays of values, nulls included; it is false if there are none."""

    ones: tuple[Column, ...] = ()
    arrays: tuple[Column, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ones or self.arrays)


def texts(value: Column, kind: Type) -> list[Column]:
    """Return the strings in a value, as columns that are a string or an array of strings each, nulls included.

    What is deep inside comes as one string that has all of them, unless it has bytes, which are no text.
    """
    found = leaves(value, kind, _TEXT, nested=MOST_NESTED)
    return [*found.ones, *found.arrays]


def is_utf8(found: Sequence[Column]) -> Column:
    """Return whether all texts, null or not, are valid UTF-8."""
    # Check all of them at once: a comma follows each, and no broken sequence of bytes is valid with a comma after it.
    return F.is_valid_utf8(F.concat_ws(",", *found))


def leaves(value: Column, kind: Type, wanted: Set[Kind], *, nested: int | None = None) -> Leaves:
    """Return the values of the wanted kinds in a value; what lies below `nested` arrays as one text, if it has no bytes."""
    match kind:
        case Primitive() if kind.kind in wanted:
            return Leaves(ones=(value,))
        case Struct(fields=fields):
            inner = [leaves(value[f.name], f.type, wanted, nested=nested) for f in fields]
            return Leaves(tuple(c for i in inner for c in i.ones), tuple(c for i in inner for c in i.arrays))
        case ListOf():
            return Leaves(arrays=tuple(_inside(value, kind.element, wanted, nested)))
        case MapOf():
            keys, values = F.map_keys(value), F.map_values(value)
            arrays = (*_inside(keys, kind.key, wanted, nested), *_inside(values, kind.value, wanted, nested))
            return Leaves(arrays=arrays)
    return Leaves()


def _inside(items: Column, kind: Type, wanted: Set[Kind], nested: int | None) -> Iterable[Column]:
    """Return the wanted values in the items of an array; `nested` counts down to the arrays that are one text."""
    if not _has(kind, wanted):
        return []
    less = None if nested is None else nested - 1
    match kind:
        case Struct(fields=fields):  # an array of each field
            return [found for f in fields for found in _inside(items[f.name], f.type, wanted, nested)]
        case ListOf() | MapOf() if nested is not None and nested <= 1 and not _has(kind, {Kind.BINARY}):
            return [items.cast("string")]
        case ListOf():
            return _inside(_flat(items), kind.element, wanted, less)
        case MapOf():
            keys, values = (F.transform(items, part) for part in (F.map_keys, F.map_values))
            return [*_inside(_flat(keys), kind.key, wanted, less), *_inside(_flat(values), kind.value, wanted, less)]
    return [items]


def _flat(items: Column) -> Column:
    return F.flatten(F.array_compact(items))  # one null among them would make all of it null


def _has(kind: Type, wanted: Set[Kind]) -> bool:
    keys = (kind.key,) if isinstance(kind, MapOf) else ()
    is_wanted = isinstance(kind, Primitive) and kind.kind in wanted
    return is_wanted or any(_has(inner, wanted) for inner in (*keys, *inside(kind)))


DAYS = (-719_162, 2_932_896)
"""From 0001-01-01 to 9999-12-31, in days since 1970."""

MICROSECONDS = (DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1)
"""The same as microseconds since 1970."""


def in_years(value: Column, kind: Kind) -> Column:
    """Return whether a date or time is in the years 1 to 9999; null if it is null."""
    if kind is Kind.DATE:
        return value.between(*(F.date_from_unix_date(F.lit(day)) for day in DAYS))
    bounds = (F.timestamp_micros(F.lit(micros)) for micros in MICROSECONDS)
    return value.between(
        *(bound.cast(spark_type(Primitive(kind))) for bound in bounds)
    )  # the session's time zone is UTC


def all_in_years(value: Column, of: Type) -> list[Column]:
    """Return whether all dates and times in a value are in the years 1 to 9999, as columns none of which is null."""
    checks: list[Column] = []
    for kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        found = leaves(value, of, {kind})
        checks += [in_years(one, kind) for one in found.ones]
        for many in found.arrays:
            checks += [in_years(F.array_min(many), kind), in_years(F.array_max(many), kind)]
    return [F.coalesce(check, F.lit(True)) for check in checks]
