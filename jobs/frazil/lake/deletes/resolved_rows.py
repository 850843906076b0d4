"""The rows that a batch writes where they depend on those in the table: none for late records, and kept values for soft deletes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.lake.deletes.folding import Rules, value_columns
from frazil.lake.deletes.key_literals import conditions
from frazil.lake.deletes.positions import IS_DELETE, LACKS
from frazil.lake.deletes.resolved_changes import ResolvedChanges
from frazil.lake.iceberg_java import Iceberg

_HELD = "_frazil_held_"


def rows_to_write(
    iceberg: Iceberg,
    table: str,
    last: DataFrame,
    columns: Sequence[str],
    changes: ResolvedChanges,
    rules: Rules,
    tasks: int,
) -> DataFrame:
    """Return the rows of the folded changes `last`, with those of the `columns` that the table has.

    A late record has none. A soft delete without values in the batch has those of the row in the table. If there is none, it
    has no row, or, where rows are ordered, one without values: else a record of a lower order would bring the key back. So many
    `tasks` write each of the two kinds.
    """
    columns = [name for name in columns if name != IS_DELETE]
    late, kept = changes.found.late, changes.found.kept
    has_row = ~F.col(IS_DELETE) | (F.lit(rules.soft) & (~F.col(LACKS) | F.lit(rules.ordered)))
    rows = last.where(has_row)
    if late or kept:
        rows = rows.join(F.broadcast(_keys(last, changes, late | kept)), changes.key, "left_anti")
    rows = rows.select(*columns)
    if not kept or not rules.soft:
        return rows
    deletes = last.join(F.broadcast(_keys(last, changes, kept)), changes.key, "left_semi")
    # Read by the table's own schema, which may be newer than that of the searched snapshot. Rows of a newer snapshot are the
    # same ones, or the commit finds that they are not.
    held = value_columns(columns, changes.key)
    stored = iceberg.spark.table(f"{iceberg.name}.{table}")
    for condition in conditions(changes.keys_of(kept), last.select(*changes.key).schema, changes.key):
        stored = stored.where(condition)  # else every row of the table would be read with all its columns
    stored = stored.select(*changes.key, *(F.col(n).alias(_HELD + n) for n in held))
    found = stored.join(F.broadcast(deletes.drop(*held)), changes.key)
    found = found.repartition(tasks, *changes.key).dropDuplicates(changes.key)
    return rows.union(found.select(*(F.col(_HELD + name if name in held else name) for name in columns)))


def _keys(last: DataFrame, changes: ResolvedChanges, numbers: Collection[int]) -> DataFrame:
    """Return the key columns of the keys with these numbers."""
    of = last.select(*changes.key)
    return last.sparkSession.createDataFrame(changes.keys_of(numbers), schema=of.schema)
