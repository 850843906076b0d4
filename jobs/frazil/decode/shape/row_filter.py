"""The declared condition over decoded rows: which match, which fail, and what is left of a row that does not match."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.declaration import Field, Pipeline
from frazil.declaration.checks.null_values import ELEMENT, Path
from frazil.declaration.checks.sql_expressions import RowExpression
from frazil.declaration.envelopes import added_columns
from frazil.decode.decoded_columns import (
    CHANGE,
    CHANGED_AT,
    DECODED,
    MATCH,
    OPERATION,
    ROW,
    SOURCE,
    WRITE_KIND,
    schema_id_of,
    writes_row,
)
from frazil.decode.keys.row_key import RowKey
from frazil.decode.shape.expression_types import Asked, has_type, may_be_true, named_by_record, omits, tried, typed
from frazil.decode.shape.selection import Selection, readable
from frazil.decode.spark_types import spark_struct
from frazil.envelopes.envelope import Operation
from frazil.errors import InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.field_ids import by_record, identified, record_of
from frazil.schemas.types import ListOf, MapOf, Struct, Type

_HOLDS, _ASKED = "holds", "_frazil_asked"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition over rows in the column `row`. It is asked of records that write a row, and of no others.

    With a `key` a row that does not match becomes that of a delete, with these `fields`, of which it keeps the columns `kept`. With
    `has_changes` rows say what they do. `parts` are those of the condition that have a type by themselves, as they are written and
    as Spark's SQL.
    """

    condition: RowExpression
    fields: tuple[str, ...]
    asked: Asked
    row: str = ROW
    key: RowKey | None = None
    has_changes: bool = False
    kept: Sequence[str] = ()
    parts: Sequence[tuple[str, str]] = ()

    def matched(self, records: DataFrame, *, once: str) -> DataFrame:
        """Return decoded records with the column `MATCH`; `once` is a nondeterministic column, so that each is computed once."""
        records = self.asked.made(records, self.row, once)
        condition = F.coalesce(F.expr(self.condition.sql(self.asked.column)), F.lit(False))
        is_asked = writes_row(has_changes=self.has_changes, row=self.row) & ~self.omits()
        made = F.struct(F.when(is_asked, condition).otherwise(F.lit(True)).alias(_HOLDS))
        return records.withColumns({MATCH: tried(records.sparkSession, made), once: F.spark_partition_id()})

    def reduced(self, records: DataFrame, *, once: str) -> DataFrame:
        """Return records with `MATCH` whose row is that of a delete where it does not match, if they have a key."""
        if self.key is None:
            return records
        row = F.when(is_filtered(), self._row_of_delete).otherwise(F.col(ROW))
        return records.withColumns({ROW: row, once: F.spark_partition_id()})

    def omits(self) -> Column:
        """Return whether a change omits a value that the condition reads."""
        return omits(self.row, self.condition.columns, has_changes=self.has_changes)

    def failure(self, spark: SparkSession) -> Column:
        """Return the condition, and those of its parts that fail for a record by themselves: text, never null."""
        fails = [F.when(tried(spark, F.struct(F.expr(sql))).isNull(), F.lit(text)) for text, sql in self.parts]
        listed = F.array_join(F.array_compact(F.array(F.lit(None).cast("string"), *fails)), "; ")
        which = F.when(listed != "", F.concat(F.lit(", for which these fail by themselves: "), listed))
        return F.concat(F.lit(f"where {self.condition.text}"), F.coalesce(which, F.lit("")))

    @property
    def _row_of_delete(self) -> Column:
        row = F.col(ROW)
        change = {OPERATION: F.lit(Operation.DELETE.value)} if self.has_changes else {}
        kept = {*self.kept, CHANGED_AT, WRITE_KIND, DECODED}
        columns = (
            change.get(name, row[name] if name in kept else F.when(F.lit(False), row[name])).alias(name)
            for name in self.fields
        )
        return F.struct(*columns)


def row_filter(
    pipeline: Pipeline, spark: SparkSession, target: Struct, key: RowKey | None, selection: Selection | None
) -> RowFilter | None:
    """Return the declared condition over rows of this type, or over those that a selection is of; None if none is declared.

    Raises `InvalidInput` if it does not fit them.
    """
    condition = pipeline.shape.condition
    if condition is None:
        return None
    source, of_record = (target, key) if selection is None else (selection.source, named_by_record(key))
    row = spark_struct(readable(source, Struct(of_record.columns) if of_record is not None else None))
    check_condition(pipeline, spark, row)
    column = ROW if selection is None else SOURCE
    asked = Asked.of(column, _ASKED, row.names, of_record, condition.columns)
    kept = (*key.names, *(key.order.columns.values() if key.order else ())) if key is not None else ()
    return RowFilter(
        condition=condition,
        fields=fields_of(pipeline, target),
        asked=asked,
        row=column,
        key=key,
        has_changes=pipeline.is_change_data,
        kept=(*kept, *added_columns(pipeline.envelope)),
        parts=[part for part in condition.parts(asked.column) if has_type(spark, asked.column, row, part[1])],
    )


def check_condition(pipeline: Pipeline, spark: SparkSession, row: T.StructType) -> None:
    """Raise `InvalidInput` if the declared condition does not fit rows of this type."""
    if (condition := pipeline.shape.condition) is None:
        return
    where, what = f"pipeline {pipeline.name}, shape.where", f"the condition {condition.text}"
    kind = typed(spark, row, condition, what, where)
    if not isinstance(kind, T.BooleanType):
        said = f"{what} is {kind.simpleString()}, not true or false"
        raise InvalidInput(said, where=where, do="Compare it with a value")


def check_fields(
    pipeline: Pipeline,
    spark: SparkSession,
    versions: Sequence[tuple[int, Struct]],
    source: Struct,
    key: Struct | None,
    table: Struct,
) -> None:
    """Raise `InvalidInput` if the newest version of a record (names not yet folded) lost fields that the shape needs.

    A condition would be true for none of its records, so that upserts would delete their rows; by a route they would have no type.
    Expressions read rows of the type `source` and the fields of the record's `key`. Of columns that are declared there is one
    version, and the `table` has the columns of before.
    """
    condition, route = pipeline.shape.condition, pipeline.shape.route
    if condition is None and route is None:
        return
    records = by_record([(schema_id_of(number), row) for number, row in versions])
    if len(versions) == 1 and not pipeline.topic.value.needs_registry and not pipeline.shape.selected:
        records = [[table, *rows] for rows in records]
    of_key = {field.name for field in key.fields} if key is not None else set[str]()
    row = spark_struct(readable(source, key))
    for *earlier, newest in records:
        _check_record(pipeline, earlier, newest, of_key, partial(may_be_true, spark, row))


def _check_record(
    pipeline: Pipeline,
    earlier: Sequence[Struct],
    newest: Struct,
    of_key: Collection[str],
    possible: Callable[[RowExpression, Collection[Path]], bool],
) -> None:
    condition, route = pipeline.shape.condition, pipeline.shape.route

    def is_lost(path: Sequence[str]) -> bool:
        had = [row for row in earlier if _has(row, path)]
        return path[0] not in of_key and bool(had) and not any(_has(newest, path, row) for row in had)

    def refuse(part: str, lost: Iterable[Sequence[str]], effect: str, do: str) -> NoReturn:
        fields = " and ".join(".".join(path).replace(f".{ELEMENT}", ELEMENT) for path in lost)
        raise InvalidInput(
            f"the newest version of the schema has no field {fields}, so that no record of it {effect}",
            where=f"pipeline {pipeline.name}, shape.{part}",
            do=do,
        )

    lost = [path for path in condition.places if is_lost(path)] if condition is not None else []
    if condition is not None and lost and not possible(condition, lost):
        do = _remedy(pipeline, frozenset[str]().union(*map(record_of, earlier)), record_of(newest))
        refuse("where", (path for path in lost if path[:-1] not in lost), "would match", do)
    if route is not None and isinstance(route.by, Field):
        path = route.by.path.lower().split(".")
        if is_lost(path):
            refuse("route", [path], "has a type", "Register a version with it")


def _remedy(pipeline: Pipeline, earlier: frozenset[str], newest: frozenset[str]) -> str:
    """Return what to do about a lost field, and about records that are written without it; the names are those of the record."""
    without_rows = "land as deletes" if pipeline.write.keeps_changes else "are filtered"
    effect = "delete the rows of their keys" if pipeline.write.replaces_rows else without_rows
    do = (
        "Declare a condition that is true without it, such as coalesce(new, old) = 'a', or register a version with it: "
        f"records that were written without it {effect} even then"
    )
    if not earlier or not newest or not earlier.isdisjoint(newest):
        return do
    return f"{do}. If {' and '.join(sorted(newest))} is another record than before, route the topic by RecordName()"


def _has(of: Type, path: Sequence[str], had: Type | None = None) -> bool:
    """Return whether a type has a field, by its name or as a former type that `had` it identifies it."""
    if not path:
        return True
    match of:
        case Struct(fields):
            there = had.fields if isinstance(had, Struct) else ()
            before, now = (
                next((f for f in some if path[0] in (f.name, *map(folded, (f.source, *f.aliases)))), None)
                for some in (there, fields)
            )
            found = now or (identified(before, fields) if before is not None else None)
            return found is not None and _has(found.type, path[1:], before.type if before is not None else None)
        case ListOf(inner) | MapOf(_, inner):
            of_had = had.element if isinstance(had, ListOf) else had.value if isinstance(had, MapOf) else None
            return _has(inner, path[1:] if path[0] == ELEMENT else path, of_had)
    return True


def fields_of(pipeline: Pipeline, target: Struct) -> tuple[str, ...]:
    """Return the fields of decoded rows of this type, with those that say what a change does."""
    return (
        *(field.name for field in target.fields),
        *(field.name for field in CHANGE if pipeline.is_change_data),
        DECODED,
    )


def is_filtered() -> Column:
    """Return whether a record does not match; never null."""
    return ~F.coalesce(F.col(MATCH)[_HOLDS], F.lit(True))
