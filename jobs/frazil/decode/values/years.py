"""The dates and times that every reader of a table can read, from the year 1 to the year 9999.

Iceberg holds more, and Python does not: PyIceberg and pandas fail on a table that has one such value.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.values.leaves import leaves
from frazil.schemas.types import Kind, Type

DAYS = (-719_162, 2_932_896)
"""From 0001-01-01 to 9999-12-31, in days since 1970."""

MICROSECONDS = (DAYS[0] * 86_400_000_000, (DAYS[1] + 1) * 86_400_000_000 - 1)
"""The same as microseconds since 1970."""


def in_years(value: Column, kind: Kind) -> Column:
    """Return whether a date or time is in the years 1 to 9999; null if it is null."""
    first, last = _bounds(kind)
    return value.between(first, last)


def all_in_years(value: Column, of: Type) -> list[Column]:
    """Return whether all dates and times in a value are in the years 1 to 9999, as columns none of which is null."""
    checks: list[Column] = []
    for kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        found = leaves(value, of, {kind})
        checks += [in_years(one, kind) for one in found.ones]
        for many in found.arrays:
            checks += [in_years(F.array_min(many), kind), in_years(F.array_max(many), kind)]
    return [F.coalesce(check, F.lit(True)) for check in checks]


def _bounds(kind: Kind) -> tuple[Column, Column]:
    if kind is Kind.DATE:
        first, last = (F.date_from_unix_date(F.lit(day)) for day in DAYS)
        return first, last
    first, last = (F.timestamp_micros(F.lit(micros)) for micros in MICROSECONDS)
    if kind is Kind.TIMESTAMP:
        return F.lit("0001-01-01 00:00:00").cast("timestamp_ntz"), F.lit("9999-12-31 23:59:59.999999").cast(
            "timestamp_ntz"
        )
    return first, last
