"""The rows that a batch writes where they depend on those in the table: none for late records, and kept values for soft deletes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from frazil.schemas.metadata import DELETED_AT, NEWEST_ROW
from frazil.upsert.compared_changes import ComparedChanges
from frazil.upsert.fold import IS_BARE, KAFKA_OFFSET, KAFKA_PARTITION, UNRESOLVED
from frazil.upsert.key_literals import conditions
from frazil.upsert.pruned_scan import pruned
from frazil.upsert.resolver_protocol import IS_DELETE, LACKS, OMITTED

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
    change of the batch omits are read, beside the key; all of them if a delete keeps them.

    A late record has no row. A change that omits values has those of the row in the table; without a row it has none. A soft
    delete without values in the batch has those of the row in the table. If there is none, it has no row, or, where rows are
    ordered, one without values: else a record of a lower order would bring the key back. So many `tasks` write each of the two
    kinds.
    """
    columns = [name for name in columns if name not in (IS_DELETE, OMITTED)]
    rules = changes.rules
    late, kept = changes.found.late, changes.found.kept
    is_delete, lacks = F.col(IS_DELETE), F.col(LACKS)
    has_row = F.when(is_delete, F.lit(rules.soft) & (~lacks | F.lit(rules.ordered))).otherwise(~lacks)
    rows = last.where(has_row)
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
        needed = _needed(lacking, values)
        values, others = needed, set(values) - set(needed)
    of_delete = (DELETED_AT.name, *rules.about) if rules.soft and OMITTED in last.columns else ()
    of_stored = dict.fromkeys((*values, *of_delete))
    held = (F.col(name).alias(_HELD + name) for name in of_stored)
    found = changes.found
    is_doubled = found.rows > found.updated + found.deleted  # another engine added rows
    age = [_age(stored.columns).alias(_AGE)] if is_doubled else []
    stored = pruned(stored, filters, [*(F.col(name) for name in changes.key), *held, *age])
    of_row = {name: F.col(_HELD + name) for name in values}
    if rules.fills:
        # Behind a delete of before, a change that omitted values had no effect.
        was_deleted = is_delete & F.col(_HELD + DELETED_AT.name).isNotNull() if rules.soft else F.lit(False)
        has_all = F.col(OMITTED).isNull() | was_deleted
        of_row = {
            name: F.when(has_all | F.array_contains(OMITTED, name), value).otherwise(F.col(name)).alias(name)
            for name, value in of_row.items()
        }
        of_row |= {name: _not_omitted(name) for name in others}
    else:
        lacking = lacking.drop(*values)
    # A tombstone behind a delete of the source says nothing: the row is deleted already.
    is_repeated = F.col(IS_BARE) & F.col(_HELD + DELETED_AT.name).isNotNull() if of_delete else F.lit(False)
    of_row |= {name: F.when(is_repeated, F.col(_HELD + name)).otherwise(F.col(name)).alias(name) for name in of_delete}
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


def _not_omitted(name: str) -> Column:
    """Return a value that no change omits, and fail where one does: it was another reading of a topic that said so."""
    error = F.raise_error(F.lit(f"the value of {name} is omitted, which it was not before: the batch was read again"))
    return F.when(F.array_contains(OMITTED, name), error).otherwise(F.col(name)).alias(name)


def _needed(lacking: DataFrame, values: Sequence[str]) -> Sequence[str]:
    """Return those of the `values` that a change omits; all of them if there is a delete, which keeps its row's."""
    of_writes = F.array_distinct(F.flatten(F.collect_set(OMITTED)))
    row = lacking.agg(F.max(IS_DELETE).alias("deletes"), of_writes.alias("names")).first()
    assert row is not None  # an aggregate of all rows has one
    return values if row["deletes"] else [name for name in values if name in row["names"]]


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
    """Return the key columns of the keys with these numbers."""
    of = last.select(*changes.key)
    return last.sparkSession.createDataFrame(changes.keys_of(numbers), schema=of.schema)
