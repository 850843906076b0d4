"""Conditions on a batch's keys that Iceberg prunes partitions and data files by: it derives none from the join.

Few values of a column that the table is partitioned by are listed: Iceberg applies every transform to them, `bucket` too. Other
columns get intervals between the largest gaps of their values, so that one old key among many new ones does not have every file
read. Text, bytes and decimals get one interval.

Iceberg computes `truncate` of an int or a long in as many bits: below the first multiple of the width the result wraps, to a
partition at the other end of the type. So no interval crosses that multiple (`Truncation`).

Iceberg's filter of ORC files reads literals before October 1582 by the calendar of then, and those before 1970 with a fraction of a
second one second off: it omits rows. So dates and times as old prune nothing: another engine may have written such files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

if TYPE_CHECKING:
    import pyarrow as pa

LISTED_AT_MOST = 200
"""So many values of a column are listed: Iceberg compares no more with the bounds of a file."""
INTERVALS_AT_MOST = 16
_Literal = Callable[[Any], Column]
_NUMBERED: Mapping[str, tuple[str, _Literal]] = {
    "int": ("int64", lambda value: F.lit(value).cast("int")),
    "bigint": ("int64", lambda value: F.lit(value).cast("bigint")),
    "date": ("int32", lambda days: F.date_from_unix_date(F.lit(days).cast("int"))),
    "timestamp": ("int64", lambda micros: F.timestamp_micros(F.lit(micros).cast("bigint"))),
    # The session's time zone is UTC.
    "timestamp_ntz": ("int64", lambda micros: F.timestamp_micros(F.lit(micros).cast("bigint")).cast("timestamp_ntz")),
}
"""By Spark's type, the Arrow type of a value as a number, and its literal. Python's own dates end with the year 9999."""
_OLDEST: Mapping[str, int] = {"date": -141_427, "timestamp": 0, "timestamp_ntz": 0}
"""The least number that prunes: days or microseconds since 1970."""
_COMPARED = frozenset({"string", "binary", "boolean"})
_BITS: Mapping[str, int] = MappingProxyType({"int": 32, "bigint": 64})


@dataclass(frozen=True, slots=True)
class Truncation:
    """The widths by which a column is or was truncated to partitions, if at all, and whether the column `was_int` then.

    Or all its partitions `are_buckets`.
    """

    widths: tuple[int, ...] = ()
    was_int: bool = False
    are_buckets: bool = False

    def prunes(self, values: int) -> bool:
        """Return whether so many distinct values may omit a partition: intervals of them omit no bucket."""
        return not self.are_buckets or values <= LISTED_AT_MOST

    def cuts(self, values: pa.ChunkedArray, kind: str) -> list[int] | None:
        """Return the values, of Spark's type `kind`, that no interval of these `values` crosses; None if only all rows will do."""
        if kind not in _BITS or not self.widths:
            return []
        of_int, cuts = self.was_int or kind == "int", [_first_multiple(width, _BITS[kind]) for width in self.widths]
        # Iceberg adds the width to the remainder, in 32 bits.
        if of_int and max(self.widths) > 2**30:
            return None
        wrapped, numbers = max(_first_multiple(width, 32) for width in self.widths), values.to_numpy()
        if self.was_int and ((numbers >= -(2**31)) & (numbers < wrapped)).any():
            return None  # the partition of an older data file is that of the int
        return sorted(set(cuts))


def conditions(
    keys: pa.Table,
    schema: Any,
    names: Sequence[str],
    *,
    partitioned_by: Mapping[str, Truncation] = MappingProxyType({}),
) -> list[Column]:
    """Return conditions on the columns `names` that the rows of all `keys` meet; none of a column whose type has no literal.

    `schema` is the Spark schema of `keys`; `partitioned_by` are columns that the table is partitioned by, in whatever way.
    """
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    found = (_condition(F.col(name), keys[name], types[name], partitioned_by.get(name)) for name in names)
    return [one for one in found if one is not None]


def _condition(column: Column, values: pa.ChunkedArray, kind: str, by: Truncation | None) -> Column | None:
    """Return a condition that a column of Spark's type `kind` meets if it is one of `values`; None without literals.

    If the table is partitioned `by` the column, few values are listed.
    """
    import pyarrow.compute as pc

    literal: _Literal
    if kind in _NUMBERED:
        number, literal = _NUMBERED[kind]
        values = _as_numbers(values, number)
        if kind in _OLDEST and len(values) and pc.min(values).as_py() < _OLDEST[kind]:
            return None
    elif kind in _COMPARED or kind.startswith("decimal"):
        literal = partial(_cast, kind)
    else:
        return None
    if not len(values) or (cuts := (by or Truncation()).cuts(values, kind)) is None:
        return None
    if by is not None and len(distinct := values.unique()) <= LISTED_AT_MOST:
        return column.isin([literal(value) for value in distinct.to_pylist()])
    ends = intervals(values, cuts=cuts) if kind in _NUMBERED else [_ends(values)]
    return reduce(Column.__or__, (column.between(literal(low), literal(high)) for low, high in ends))


def _cast(kind: str, value: object) -> Column:
    return F.lit(value).cast(kind)


def intervals(
    values: pa.ChunkedArray, most: int = INTERVALS_AT_MOST, cuts: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Return at most `most` intervals (two or more) that hold all of some integers, divided at the largest gaps between them.

    Each of the `cuts`, which begins an interval if values are before and after it, may add one.
    """
    import numpy as np

    sorted_ = np.unique(values.to_numpy())
    # Of two neighbours the difference may be more than 63 bits hold; as an unsigned number it never is.
    gaps = np.diff(sorted_.astype("u8") if sorted_.dtype == np.int64 else sorted_)
    first = len(gaps) - (most - 1)
    at = np.argpartition(gaps, first)[first:] if first > 0 else np.arange(len(gaps))
    begins = {0, *(at + 1).tolist(), *(int(np.searchsorted(sorted_, cut)) for cut in cuts)} - {len(sorted_)}
    parts = np.split(sorted_, sorted(begins)[1:])
    return [(int(part[0]), int(part[-1])) for part in parts]


def _first_multiple(width: int, bits: int) -> int:
    """Return the lowest multiple of a width that an integer of so many bits holds."""
    return -((1 << bits - 1) // width) * width


def _as_numbers(values: pa.ChunkedArray, number: str) -> pa.ChunkedArray:
    import pyarrow as pa

    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz))
    return values.cast(number)


def _ends(values: pa.ChunkedArray) -> tuple[Any, Any]:
    import pyarrow.compute as pc

    ends = pc.min_max(values)
    return ends["min"].as_py(), ends["max"].as_py()
