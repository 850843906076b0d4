"""The rows that a batch writes where they depend on those in the table: none for late records, and kept values for soft deletes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from frazil.schemas.metadata import DELETED_AT, NEWEST_ROW
from frazil.upsert.compared_changes import ComparedChanges
from frazil.upsert.fold import UNRESOLVED
from frazil.upsert.key_literals import conditions
from frazil.upsert.omitted_values import needed, not_omitted
from frazil.upsert.pruned_scan import pruned
from frazil.upsert.resolver_protocol import IS_DELETE, KAFKA_OFFSET, KAFKA_PARTITION, LACKS, OMITTED
from frazil.upsert.soft_deletes import columns_of_delete, has_row, repeated

_HELD, _AGE, _RANK = "_frazil_held_", "_frazil_age", "_frazil_rank"


def rows_to_write(
    last: DataFrame,
    columns: Sequence[str],
    values: Sequence[str],
    stored: DataFrame,
    changes: ComparedChanges,
    tasks: int,
) -> DataFrame:
    """Return the rows of the folded changes `last`, with those of the `columns` that the table has.

    `stored` is the table. Its `values` are those that a soft delete keeps, and that a change can omit. Only those that a
    change of the batch omits are read, next to the key; all of them if a delete keeps them.

    A late record has no row. A change that omits values, or a soft delete without values in the batch, has those of the row in
    the table; without a row it has none, but for the deletes that have one (`has_row`). So many `tasks` write each of the two
    kinds.
    """
    columns = [name for name in columns if name not in (IS_DELETE, OMITTED)]
    rules = changes.rules
    late, kept = changes.found.late, changes.found.kept
    is_delete = F.col(IS_DELETE)
    rows = last.where(F.when(is_delete, has_row(rules)).otherwise(~F.col(LACKS)))
    if late or kept:
        rows = rows.join(F.broadcast(_keys(last, changes, late | kept)), changes.key, "left_anti")
    rows = rows.select(*columns)
    if not kept or not (rules.soft or rules.fills):
        return rows
    lacking = last.join(F.broadcast(_keys(last, changes, kept)), changes.key, "left_semi")
    if not rules.soft:
        lacking = lacking.where(~is_delete)
    # Read by the table's own schema, which may be newer than that of the searched snapshot. Rows of a newer snapshot are the
    # same ones, or the commit finds that they are not. Without a filter every row would be read with all its columns.
    schema, truncated = last.select(*changes.key).schema, changes.partition_sources()
    filters = conditions(changes.keys_of(kept), schema, changes.key, partitioned_by=truncated)
    others = set[str]()
    if rules.fills:
        others, values = set(values), needed(lacking, values)
    of_delete = columns_of_delete(last.columns, rules)
    of_stored = dict.fromkeys((*values, *of_delete))
    held = (F.col(name).alias(_HELD + name) for name in of_stored)
    found = changes.found
    is_doubled = found.rows > found.updated + found.deleted  # another engine added rows
    age = [_age(stored.columns).alias(_AGE)] if is_doubled else []
    stored = pruned(stored, filters, [*(F.col(name) for name in changes.key), *held, *age])
    of_row = {name: F.col(_HELD + name) for name in values}
    if rules.fills:
        # After a delete of before, a change that omitted values had no effect.
        was_deleted = is_delete & F.col(_HELD + DELETED_AT.name).isNotNull() if rules.soft else F.lit(False)
        has_all = F.col(OMITTED).isNull() | was_deleted
        of_row = {
            name: F.when(has_all | F.array_contains(OMITTED, name), value).otherwise(F.col(name)).alias(name)
            for name, value in of_row.items()
        }
        of_row |= {name: not_omitted(name) for name in others.difference(values)}
    else:
        lacking = lacking.drop(*values)
    of_row |= repeated(of_delete, _HELD)
    joined = stored.join(F.broadcast(lacking), changes.key).repartition(tasks, *changes.key)
    if is_doubled:
        newest_first = Window.partitionBy(*changes.key).orderBy(F.col(_AGE).desc())
        joined = joined.withColumn(_RANK, F.row_number().over(newest_first)).where(F.col(_RANK) == 1)
    else:
        joined = joined.dropDuplicates(changes.key)
    return rows.union(joined.select(*(of_row.get(name, F.col(name)) for name in columns)))


def _age(columns: Sequence[str]) -> Column:
    """Return what orders the rows of one key: a live row is newer than one that is marked as deleted."""
    is_live = [F.col(DELETED_AT.name).isNull()] if DELETED_AT.name in columns else []
    return F.struct(F.lit(0), *is_live, *(F.col(name) for name in NEWEST_ROW if name in columns))


def unresolved_of(folded: DataFrame, changes: ComparedChanges) -> frozenset[tuple[int, int]]:
    """Return partition and offset of the changes that omit values which no change before them and no live row has."""
    gone = folded.where(UNRESOLVED)
    if changes.unresolved:
        of_table = folded.where(F.col(UNRESOLVED).isNull())
        gone = gone.union(
            of_table.join(F.broadcast(_keys(folded, changes, changes.unresolved)), changes.key, "left_semi").select(
                *gone.columns
            )
        )
    at = gone.select(KAFKA_PARTITION, KAFKA_OFFSET).collect()
    return frozenset((int(row[0]), int(row[1])) for row in at)


def _keys(last: DataFrame, changes: ComparedChanges, numbers: Collection[int]) -> DataFrame:
    of = last.select(*changes.key)
    return last.sparkSession.createDataFrame(changes.keys_of(numbers), schema=of.schema)
