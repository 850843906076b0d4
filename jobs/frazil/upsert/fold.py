"""Fold the changes of a batch to the last one of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.schemas.metadata import COORDINATES, DELETED_AT, INGESTED_AT, ORDER
from frazil.upsert import soft_deletes
from frazil.upsert.omitted_values import IS_GONE, fill
from frazil.upsert.resolver_protocol import (
    HASH,
    IS_DELETE,
    KAFKA_OFFSET,
    KAFKA_PARTITION,
    KAFKA_TIMESTAMP,
    LACKS,
    OF_VALUES,
    OMITTED,
    PARTITION,
    PLACE,
    SECOND_HASH,
    key_hash,
    place,
)

RECORDS, REPEATED = "_frazil_records", "_frazil_repeated"
"""Columns with the number of a key's records in the batch, and of its deletes that directly follow a delete."""
NEWEST = "_frazil_newest"
"""Column with the highest partition and offset of a key's records in the batch that have an effect, whatever orders them."""
_RANK, _NEXT, _TIE, _IS_REPEATED = "_frazil_rank", "_frazil_next", "_frazil_tie", "_frazil_is_repeated"
_LAST = "_frazil_last"  # the timestamp of the last record of a key and partition
IS_LAST = "_frazil_is_last"
"""Column that says whether a change is the last of its key that has an effect."""
UNRESOLVED = "_frazil_unresolved"
"""Column that says whether a change is rejected: it has no effect, and follows the last one that has.

Null means: if the table has no row with the values that the last one omits. No delete is before such a one, and all changes
that omit values, the last one among them, are rejected then.
"""
_OF_RECORD = frozenset({f"_kafka_{f.name}" for f in COORDINATES} - {"_kafka_schema_id"}) | {
    INGESTED_AT.name,
    DELETED_AT.name,
    ORDER,
}
"""Columns that say which record made a row what it is; the others are the row's values, with the id of their schema."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of changes: the column `_order` decides if rows are `ordered`; a `soft` delete keeps the row and its values.

    Where nothing orders the records of a key but their offsets, and keys `moved` from one partition to another, those of the
    partition take effect whose last record has the highest timestamp. With `fills`, a value that a change omits is that of the
    change before, or of the row in the table. `about` are columns of the change that made a row what it is, deletes included.
    Where rows are ordered, deletes are remembered for `remember_us`, microseconds.
    """

    ordered: bool = False
    soft: bool = False
    moved: bool = False
    fills: bool = False
    about: tuple[str, ...] = ()
    remember_us: int = 0

    @property
    def need_rows(self) -> bool:
        """Return whether what a batch writes depends on the rows in the table."""
        return self.ordered or self.soft or self.fills


def value_columns(columns: Sequence[str], key: Sequence[str], rules: Rules) -> list[str]:
    """Return those of a table's columns that a soft delete keeps, and that a change can omit."""
    others = {*key, *_OF_RECORD, *rules.about, IS_DELETE, OMITTED}
    return [name for name in columns if name not in others]


def fold(
    changed: DataFrame, key: Sequence[str], values: Sequence[str], rules: Rules, observed: Observation | str
) -> DataFrame:
    """Return the last change of each key, with marks, and, with `fills`, those that are or may be `UNRESOLVED`.

    `IS_LAST` distinguishes them. `observed` gets counts.

    They are the number of `records`, of their `keys`, of records that omit values (`omitted`, 0 if these are filled), of keys
    that `moved`, of `ties`, and of `repeated` deletes.

    The later record is that of the higher order if rows are ordered, else that of the higher partition and offset; of a key that
    `moved`, that of the highest offset in the partition whose last record has the highest timestamp. A soft
    delete has the `values` of the record before it, if the batch has one that takes effect; else it `LACKS` them, as a change does
    that omits values which none before it in the batch has.
    """
    if rules.moved:
        newest = Window.partitionBy(*key, KAFKA_PARTITION).orderBy(F.col(KAFKA_OFFSET).desc())
        changed = changed.withColumn(_LAST, F.first(KAFKA_TIMESTAMP).over(newest))
    by = [F.col(name).desc() for name in _sequence(rules)]
    if rules.fills:
        changed = fill(changed, key, values, _sequence(rules))
        by = [F.col(IS_GONE), *by]  # what has no effect precedes everything
    newest_first = Window.partitionBy(*key).orderBy(*by)
    following = F.lead(KAFKA_PARTITION).over(newest_first)
    columns = {_RANK: F.row_number().over(newest_first), _NEXT: following != F.col(KAFKA_PARTITION)}
    columns[_IS_REPEATED] = F.col(IS_DELETE) & F.coalesce(F.lead(IS_DELETE).over(newest_first), F.lit(False))
    if rules.ordered:
        columns[_TIE] = columns[_NEXT] & (F.lead(ORDER).over(newest_first) == F.col(ORDER))
    if rules.fills:
        # A list of them, on any row, would be copied for each change of the key.
        columns[UNRESOLVED] = _is_unresolved(rules, newest_first)
    if rules.soft:
        columns |= soft_deletes.kept(key, values, rules, newest_first)
    ranked = changed.withColumns(columns).observe(
        observed,
        F.count(F.lit(1)).alias("records"),
        F.count_if(F.col(_RANK) == 1).alias("keys"),
        (F.lit(0) if rules.ordered or rules.moved else F.count_if(F.col(_NEXT))).alias("moved"),
        (F.count_if(F.col(_TIE)) if rules.ordered else F.lit(0)).alias("ties"),
        (F.lit(0) if rules.fills or OMITTED not in changed.columns else F.count(OMITTED)).alias("omitted"),
        F.count_if(F.col(_IS_REPEATED)).alias("repeated"),
    )
    at = F.struct(KAFKA_PARTITION, KAFKA_OFFSET)
    at = F.when(~F.col(IS_GONE), at) if rules.fills else at
    of_key = {NEWEST: F.max(at).over(Window.partitionBy(*key)) if rules.ordered or rules.moved else at}
    if rules.need_rows:
        of_key[RECORDS] = F.count(F.lit(1)).over(Window.partitionBy(*key))
        of_key[REPEATED] = F.count_if(F.col(_IS_REPEATED)).over(Window.partitionBy(*key))
    ranked = ranked.withColumns(of_key)
    is_last = F.col(_RANK) == 1
    is_needed = is_last | F.coalesce(F.col(UNRESOLVED), F.lit(True)) if rules.fills else is_last
    last = ranked.where(is_needed).withColumn(IS_LAST, is_last)
    if rules.need_rows:
        last = last.withColumns(_with_values(last, values, rules))
    last = last.withColumns(
        {
            HASH: key_hash(changed, key),
            SECOND_HASH: key_hash(changed, key, is_second=True),
            PARTITION: F.col(KAFKA_PARTITION),
        }
    )
    return last.drop(_RANK, _NEXT, _TIE, _LAST, _IS_REPEATED, IS_GONE, soft_deletes.VALUES, soft_deletes.BEFORE)


def _sequence(rules: Rules) -> tuple[str, ...]:
    first = (ORDER,) if rules.ordered else (_LAST,) if rules.moved else ()
    return (*first, KAFKA_PARTITION, KAFKA_OFFSET)


def _is_unresolved(rules: Rules, newest_first: WindowSpec) -> Column:
    at, depends = F.struct(*_sequence(rules)), F.col(OMITTED).isNotNull()
    so_far = newest_first.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    last = F.first(F.struct(at.alias("at"), depends.alias("depends"))).over(so_far)
    of_table = F.when(~depends & ~F.col(IS_GONE), F.lit(False))
    return F.when(last["depends"], of_table).otherwise(F.coalesce(F.col(IS_GONE) & (at > last["at"]), F.lit(False)))


def _with_values(last: DataFrame, values: Sequence[str], rules: Rules) -> dict[str, Column]:
    found: dict[str, Column] = {LACKS: F.col(OMITTED).isNotNull() if rules.fills else F.lit(False)}
    if rules.soft:
        found |= soft_deletes.marked(values, rules)
    if rules.ordered:
        # With fields that may be null: Arrow takes no null struct whose fields are never null.
        of = T.StructType([T.StructField(name, last.schema[name].dataType) for name in _sequence(rules)])
        found[PLACE] = place().cast(of)
        of_values = F.when(F.col(IS_DELETE), F.col(soft_deletes.VALUES)[PLACE]) if rules.soft else F.lit(None)
        found[OF_VALUES] = of_values.cast(of)
    return found
