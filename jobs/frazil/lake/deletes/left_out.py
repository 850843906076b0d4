"""Values that changes leave out: those of the change before in the batch, or none, so that the row in the table must have them.

A source may leave out a value that a change did not touch. The change names such columns (`LEFT_OUT`), and what it has in them
means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.lake.deletes.positions import IS_DELETE, LACKS, LEFT_OUT

UNRESOLVED = "_frazil_unresolved"
"""Partition and offset of the changes of a key that leave out a value that no change before them has."""
IS_GONE = "_frazil_gone"
"""Whether a delete precedes them in the batch: then no row of the table has the values, and the key's change is that delete."""
_DELETED_AT = "_frazil_deleted_last"
_FILLED = "_frazil_filled_"
_CAN_BE_LEFT_OUT = (T.StringType, T.BinaryType, T.ArrayType, T.MapType)


@dataclass(frozen=True, slots=True)
class Filled:
    """How the columns `values` of `changed` are filled. A `soft` delete leaves the row there, so it is no end of a row's values."""

    changed: DataFrame
    values: Sequence[str]
    soft: bool

    @property
    def columns(self) -> list[str]:
        """The columns that a change can leave out."""
        return [name for name in self.values if isinstance(self.changed.schema[name].dataType, _CAN_BE_LEFT_OUT)]

    def over(self, newest_first: WindowSpec, place: Sequence[str]) -> dict[str, Column]:
        """Return what the changes of a key say together; `place` are the columns that say where a change is."""
        every = newest_first.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
        is_delete, at = F.col(IS_DELETE), F.struct(*place)
        found: dict[str, Column] = {}
        for name in self.columns:
            counts = ~_is_left_out(name) & ~is_delete if self.soft else is_delete | ~_is_left_out(name)
            value = F.struct(F.when(~is_delete, F.col(name)).alias("value"), is_delete.alias("gone"))
            found[_FILLED + name] = F.first(F.when(counts, value), ignorenulls=True).over(every)
        found[UNRESOLVED] = F.collect_list(F.when(F.col(LEFT_OUT).isNotNull(), at)).over(every)
        found[_DELETED_AT] = F.max(F.when(F.lit(not self.soft) & is_delete, at)).over(every)
        return found

    def of(self, last: DataFrame) -> DataFrame:
        """Return the last change of each key with its values filled. `LEFT_OUT` are then those that the row in the table must have.

        It is null for a soft delete that `LACKS` all values. A change behind a delete has no row that could have them: it becomes
        that delete.
        """
        is_write, none = ~F.col(IS_DELETE), F.lit(None).cast("array<string>")
        lacks_all = F.col(IS_DELETE) & F.col(LACKS)
        is_gone, lacking, columns = F.lit(False), [], {}
        for name in self.columns:
            found = F.col(_FILLED + name)
            is_gone = is_gone | F.coalesce(is_write & found["gone"], F.lit(False))
            lacking.append(F.when(found.isNull(), F.lit(name)))
            columns[name] = F.when(found.isNull(), F.col(name)).otherwise(found["value"])
        names = F.array_compact(F.array(*lacking)) if lacking else none
        of_table = (is_write | F.lit(self.soft)) & ~lacks_all & (F.size(names) > 0)
        after = F.filter(UNRESOLVED, lambda at: F.col(_DELETED_AT).isNull() | (at > F.col(_DELETED_AT)))
        # One after the other: each of these reads what the ones before it have not changed yet.
        last = last.withColumns({IS_GONE: is_gone, UNRESOLVED: after, LEFT_OUT: F.when(of_table, names)})
        kept = {name: F.when(lacks_all, F.col(name)).otherwise(value) for name, value in columns.items()}
        lacks = ~F.col(IS_GONE) & (F.col(LACKS) | F.col(LEFT_OUT).isNotNull())
        last = last.withColumns({**kept, LACKS: lacks, IS_DELETE: F.col(IS_DELETE) | F.col(IS_GONE)})
        return last.drop(_DELETED_AT, *(_FILLED + name for name in self.columns))


def _is_left_out(name: str) -> Column:
    return F.coalesce(F.array_contains(LEFT_OUT, name), F.lit(False))
