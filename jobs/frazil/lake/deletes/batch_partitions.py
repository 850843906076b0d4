"""The partitions of a batch's rows, in a table whose keys keep their partition: the rows that they replace are there.

The partition is known of a key whose row the batch writes. A delete has its key alone, whatever else the source says of the row;
so has a change that leaves out the values that decide on the partition. A row that the batch writes behind a delete of its key
says nothing of the deleted row's partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.declaration.partitioning import PartitionField, Transform
from frazil.lake.deletes.folding import REMOVED
from frazil.lake.deletes.key_literals import condition, in_periods
from frazil.lake.deletes.positions import KNOWN, LEFT_OUT, Within
from frazil.lake.key_account import KeyAccount

if TYPE_CHECKING:
    import pyarrow as pa

CONFIRMED_FIRST = 10_000
"""So many keys are searched everywhere, before batches search the partitions of their rows only."""
CHECKED_ROWS = 1_000_000
"""In a table of so many rows each batch is checked, in one of twice as many every second: the cost of a batch does not grow."""
_VALUE = "_frazil_value_"
_UNITS: Mapping[Transform, str] = MappingProxyType(
    {Transform.YEARS: "Y", Transform.MONTHS: "M", Transform.DAYS: "D", Transform.HOURS: "h"}
)
_COUNTED = frozenset({"int", "bigint", "string", "binary"})  # and decimals: types of `bucket` and `truncate`


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPartitions:
    """Rows in the partitions of a batch's rows meet a `condition` on the columns `sources`; nested ones have dots.

    `known` is how many of the batch's `keys` have their row in one of them, if keys keep their partition. The `promise` is of which
    fields they keep the value.
    """

    condition: Column
    sources: tuple[str, ...]
    known: int
    keys: int
    promise: str = ""

    def confirmed(self, before: KeyAccount) -> int:
        """Return how many keys the table's account says were searched everywhere since this was promised."""
        return before.confirmed if before.promise == self.promise else 0

    def within(self, before: KeyAccount) -> Within:
        """Return where the keys are searched, by the table's account before the batch.

        All are searched everywhere if one is not known: a search reads the key of each row, and joins more keys at almost no cost.
        """
        is_due = (before.unchecked + 1) * CHECKED_ROWS >= before.rows
        checked = self.known < self.keys or self.confirmed(before) < CONFIRMED_FIRST or is_due
        return Within(condition=self.condition, checked=checked)


@dataclass(frozen=True, slots=True)
class _Source:
    """A partition field whose values the search is narrowed by, the type of its source, and that of what is compared."""

    field: PartitionField
    kind: str

    @property
    def column(self) -> Column:
        """The source."""
        return F.col(".".join(f"`{name.replace('`', '``')}`" for name in self.field.source.split(".")))

    def term(self, catalog: str) -> Column:
        """Return what is compared: Iceberg's own function where the partitions are no intervals of the source."""
        if self.field.argument is None:
            return self.column
        return F.call_function(f"`{catalog}`.system.{self.field.transform}", F.lit(self.field.argument), self.column)

    def within(self, values: pa.ChunkedArray, catalog: str) -> Column | None:
        """Return the condition on rows in the partitions of some rows; `values` are their terms. None if there is no literal."""
        term, found = self.term(catalog), values.drop_null()
        kind = "int" if self.field.transform is Transform.BUCKET else self.kind
        conditions = [] if not values.null_count else [term.isNull()]
        if len(found):
            unit = _UNITS.get(self.field.transform)
            among = (
                condition(term, found, kind, is_listed=True, is_nullable=True)
                if unit is None
                else in_periods(term, found, kind, unit)
            )
            if among is None:
                return None
            conditions.append(among)
        return reduce(Column.__or__, conditions)


class PartitionSources:
    """The partition fields that a key keeps its value of, and whose sources are no columns of the key: these say it themselves.

    If rows `may_lack_values`, a key may have one in which all sources are null.
    """

    def __init__(
        self,
        rows: T.StructType,
        key: Sequence[str],
        fields: Sequence[PartitionField],
        catalog: str,
        *,
        may_lack_values: bool = False,
    ) -> None:
        kinds = {field: _kind(rows, field.source) for field in fields if field.source.partition(".")[0] not in key}
        self._sources = [_Source(field, kind) for field, kind in kinds.items() if _is_served(field, kind)]
        self._catalog, self._may_lack_values = catalog, may_lack_values
        self._promise = ", ".join(str(source.field) for source in self._sources)

    def values(self, folded: DataFrame) -> list[Column]:
        """Return `KNOWN` and the partition values of folded changes; these `of` takes out of the keys again."""
        if not self._sources:
            return []
        known = ~F.col(REMOVED)
        if LEFT_OUT in folded.columns:
            names = F.array(*(F.lit(source.field.source.partition(".")[0]) for source in self._sources))
            known &= ~F.coalesce(F.arrays_overlap(LEFT_OUT, names), F.lit(False))
        values = (F.when(known, source.term(self._catalog)) for source in self._sources)
        return [known.alias(KNOWN), *(value.alias(f"{_VALUE}{number}") for number, value in enumerate(values))]

    def of(self, keys: pa.Table) -> tuple[pa.Table, BatchPartitions | None]:
        """Return the keys without the partition values, and the partitions; None if nothing narrows the search."""
        if not self._sources:
            return keys, None
        written = keys.filter(keys[KNOWN])
        keys = keys.drop_columns([f"{_VALUE}{number}" for number in range(len(self._sources))])
        if not written.num_rows:
            everywhere = F.lit(True)
            return keys, BatchPartitions(
                condition=everywhere, sources=(), known=0, keys=keys.num_rows, promise=self._promise
            )
        found = {
            source: within
            for number, source in enumerate(self._sources)
            if (within := source.within(written[f"{_VALUE}{number}"], self._catalog)) is not None
        }
        if not found:
            return keys, None
        condition, named = reduce(Column.__and__, found.values()), list(found)
        if self._may_lack_values:
            named = self._sources
            condition |= reduce(Column.__and__, (source.column.isNull() for source in named))
        sources = tuple(dict.fromkeys(source.field.source for source in named))
        return keys, BatchPartitions(
            condition=condition, sources=sources, known=written.num_rows, keys=keys.num_rows, promise=self._promise
        )


def _is_served(field: PartitionField, kind: str) -> bool:
    """Return whether the search is narrowed by a field; a declared field may be none that the table has."""
    if field.argument is None:
        return bool(kind)
    is_time = kind.startswith(("date", "timestamp")) and field.transform is Transform.BUCKET
    return is_time or kind in _COUNTED or kind.startswith("decimal")


def _kind(rows: T.DataType, source: str) -> str:
    """Return the type of a column in Spark's short notation; empty if there is none."""
    for name in source.split("."):
        if not isinstance(rows, T.StructType) or name not in rows.names:
            return ""
        rows = rows[name].dataType
    return rows.simpleString()
