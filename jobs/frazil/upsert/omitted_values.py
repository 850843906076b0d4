"""Values that changes omit: those of the change before in the batch, or none, so that the row in the table must have them.

A source may omit a value that a change did not touch. The change names such columns (`OMITTED`), and what it has in them
means nothing. A delete ends a row: no change after it has the values of the row before, though a soft delete keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.upsert.resolver_protocol import IS_DELETE, OMITTED

IS_GONE = "_frazil_gone"
"""True if a change omits a value that a delete before it in the batch removed: it has no effect."""
_FILLED = "_frazil_filled_"
_CAN_BE_OMITTED = (T.StringType, T.BinaryType, T.ArrayType, T.MapType, T.VariantType)


def fill(changed: DataFrame, key: Sequence[str], values: Sequence[str], place: Sequence[str]) -> DataFrame:
    """Return the changes with the `values` that they omit, as far as changes before them have these, and with marks.

    `OMITTED` are then the columns that the row in the table must have, null for none. `place` orders the changes of a key.
    """
    so_far = Window.partitionBy(*key).orderBy(*place).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_delete = F.col(IS_DELETE)
    names = [name for name in values if isinstance(changed.schema[name].dataType, _CAN_BE_OMITTED)]
    columns: dict[str, Column] = {}
    for name in names:
        said = F.struct(F.when(~is_delete, F.col(name)).alias("value"), is_delete.alias("gone"))
        is_said = is_delete | ~F.coalesce(F.array_contains(OMITTED, name), F.lit(False))
        columns[_FILLED + name] = F.last(F.when(is_said, said), ignorenulls=True).over(so_far)
    changed = changed.withColumns(columns)
    found = {name: F.col(_FILLED + name) for name in names}
    is_gone, lacking, filled = F.lit(False), [], {}
    for name, of_name in found.items():
        is_gone = is_gone | F.coalesce(of_name["gone"], F.lit(False))
        lacking.append(F.when(of_name.isNull(), F.lit(name)))
        filled[name] = F.coalesce(of_name["value"], F.when(of_name.isNull(), F.col(name)))
    of_table = F.array_compact(F.array(*lacking)) if lacking else F.lit(None).cast("array<string>")
    of_table = F.when(~is_delete & (F.size(of_table) > 0), of_table)
    # One after the other: the second reads what the first has not changed yet.
    changed = changed.withColumns({IS_GONE: ~is_delete & is_gone, OMITTED: of_table})
    filled = {name: F.when(is_delete, F.col(name)).otherwise(value) for name, value in filled.items()}
    return changed.withColumns(filled).drop(*(_FILLED + name for name in names))


def not_omitted(name: str) -> Column:
    """Return a value that no change omits, and fail where one does: it was another reading of a topic that said so."""
    error = F.raise_error(F.lit(f"the value of {name} is omitted, which it was not before: the batch was read again"))
    return F.when(F.array_contains(OMITTED, name), error).otherwise(F.col(name)).alias(name)


def needed(lacking: DataFrame, values: Sequence[str]) -> Sequence[str]:
    """Return those of the `values` that a change omits; all of them if there is a delete, which keeps its row's."""
    of_writes = F.array_distinct(F.flatten(F.collect_set(OMITTED)))
    row = lacking.agg(F.max(IS_DELETE).alias("deletes"), of_writes.alias("names")).first()
    assert row is not None  # an aggregate of all rows has one
    return values if row["deletes"] else [name for name in values if name in row["names"]]
