"""The keys that a commit changed, each once: its row after the commit beside the row before it.

A key has one row in a table of current state. It has several if another engine added them.
Then the newest of them is the key's row, and the others are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from frazil.schemas.metadata import DELETED_AT, INGESTED_AT, NEWEST_ROW

AFTER, BEFORE = "_frazil_after", "_frazil_before"
CAME, WENT = "_frazil_came", "_frazil_went"
TEXT = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
"""Options with which the JSON of two rows is the same only if they are: Spark's own formats end with milliseconds."""
_OF_A_ROW = ("_kafka_partition", "_kafka_offset", INGESTED_AT.name, DELETED_AT.name)
_ROW, _IS_AFTER, _IDENTITY = "_frazil_row", "_frazil_is_after", "_frazil_identity"


def changed_keys(
    came: DataFrame, went: DataFrame, key: Sequence[str], tasks: int, *, is_rewritten: bool, is_own: bool
) -> DataFrame:
    """Return a row for each changed key, made by so many tasks, of the rows that a commit added and of those that it deleted.

    It has the key's columns, the newest row `AFTER` and `BEFORE` the commit, null where there is none, and the number of rows that
    `CAME` and `WENT`. If the commit wrote rows to other files as they were (`is_rewritten`), these are no change. `is_own` says
    that it is the pipeline's.
    """
    columns, names = came.columns, [*map(quoted, key)]
    row = F.struct(*map(quoted, columns)).alias(_ROW)
    sides = (side.select(*names, row, F.lit(after).alias(_IS_AFTER)) for side, after in ((came, True), (went, False)))
    first, second = sides
    rows = first.unionByName(second).repartition(tasks, *names)
    if is_rewritten:
        rows = _without_rewritten(rows, names, _identity(columns, is_own=is_own))
    parts = [F.col(_ROW)[name] for name in NEWEST_ROW if name in columns]
    newest = F.struct(*parts) if parts else F.lit(0)
    is_after = F.col(_IS_AFTER)

    def newest_of(side: Column) -> Column:
        return F.max_by(F.when(side, F.col(_ROW)), F.when(side, newest))

    return rows.groupBy(*names).agg(
        newest_of(is_after).alias(AFTER),
        newest_of(~is_after).alias(BEFORE),
        F.count_if(is_after).alias(CAME),
        F.count_if(~is_after).alias(WENT),
    )


def is_there(side: str) -> Column:
    """Return whether a changed key has a row `AFTER` or `BEFORE` the commit."""
    return F.col(side).isNotNull()


def quoted(name: str) -> Column:
    """Return the column of this name, whatever characters it has."""
    return F.col(f"`{name.replace('`', '``')}`")


def _identity(columns: Sequence[str], *, is_own: bool) -> Column:
    """Return what two rows of a key have in common if one is the other, written to another file.

    In a commit of Frazil's own that is record and batch; another engine changes values and leaves these.
    """
    names = [name for name in _OF_A_ROW if name in columns]
    if is_own and INGESTED_AT.name in names:
        return F.struct(*(F.col(_ROW)[name] for name in names))
    return F.xxhash64(F.to_json(_ROW, TEXT))  # as text: maps cannot be compared


def _without_rewritten(rows: DataFrame, names: Sequence[Column], identity: Column) -> DataFrame:
    """Return the rows without those that went and came back: in the order of their identity, these are neighbours."""
    order = Window.partitionBy(*names).orderBy(_IDENTITY, _IS_AFTER)
    here = F.struct(_IDENTITY, _IS_AFTER)
    other = F.struct(_IDENTITY, (~F.col(_IS_AFTER)).alias(_IS_AFTER))
    neighbours = rows.withColumn(_IDENTITY, identity).select(
        "*", F.lag(here).over(order).alias("_frazil_previous"), F.lead(here).over(order).alias("_frazil_next")
    )
    is_same = F.col("_frazil_previous").eqNullSafe(other) | F.col("_frazil_next").eqNullSafe(other)
    return neighbours.where(~is_same).select(*rows.columns)
