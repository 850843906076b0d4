"""The declared columns of decoded rows: what each is made of, and which rows they fail for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.decode.decoded_columns import DECODED, MASKED, SELECTED, SOURCE, UNAVAILABLE, writes_row
from frazil.decode.keys.row_key import RowKey
from frazil.decode.shape.expression_types import Asked, named_by_record, omits, tried
from frazil.decode.shape.row_filter import fields_of, is_filtered
from frazil.decode.shape.row_masks import Masks
from frazil.decode.shape.selection import Output, Selection
from frazil.decode.spark_types import spark_type
from frazil.decode.values.conform import conform
from frazil.decode.values.leaves import all_in_years, is_utf8, texts
from frazil.schemas.evolution.schema_changes import columns_of
from frazil.schemas.types import Field, Struct, Type, along

_ASKED = "_frazil_asked_select"


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The making of the rows of a table, whose columns are `target`, from those of the source, of the type `source`.

    `of` has the output of each column that is selected. `fields` are those of the row that is made. The columns `kept`, of the key
    and the order, are made of records that do not match the declared condition, too.
    """

    target: Struct
    fields: tuple[str, ...]
    of: Mapping[str, Output]
    asked: Asked
    has_filter: bool
    has_changes: bool
    kept: frozenset[str]
    source: Struct
    masks: Masks | None

    @property
    def _row(self) -> str:
        """The column with the row that the declared columns are made of: no value that a mask hides is in it."""
        return SOURCE if self.masks is None else MASKED

    def applied(self, records: DataFrame, made: str, *, once: str) -> DataFrame:
        """Return records that have the column `SOURCE`, and `MATCH` with a filter, with their row in the column `made`.

        `once` is a nondeterministic column, so that each is computed once.
        """
        if self.masks is not None:
            # Not of what could not be decoded: a mask may fail for it, such as for a map that has a name twice.
            hidden = F.when(self._is_decoded, self.masks.row(F.col(SOURCE), self.source))
            records = records.withColumns({MASKED: hidden, once: F.spark_partition_id()})
        records = self.asked.made(records, self._row, once)
        if self._computed:
            is_write = writes_row(has_changes=self.has_changes, row=SOURCE) & ~self.omits()
            is_made = {name: is_write & self._is_asked(name) for name, _ in self._computed}
            values = F.struct(*(F.when(is_made[name], self._value(of)).alias(name) for name, of in self._computed))
            records = records.withColumns({SELECTED: tried(records.sparkSession, values), once: F.spark_partition_id()})
        columns = {field.name: self._column(field) for field in self.target.fields}
        if self.has_changes:
            columns[UNAVAILABLE] = self._unavailable()
        row = F.struct(*(columns.get(name, F.col(self._row)[name]).alias(name) for name in self.fields))
        row = F.when(F.col(SOURCE).isNotNull(), row)
        return records.withColumns({made: row, once: F.spark_partition_id()})

    @property
    def _is_decoded(self) -> Column:
        return F.coalesce(F.col(SOURCE)[DECODED], F.lit(False))

    def omits(self) -> Column:
        """Return whether a change omits a value of which something else than a column of the table is made."""
        found = F.lit(False)
        for name, output in self.of.items():
            if output.column is None or not output.is_kept:
                found |= omits(SOURCE, output.reads, has_changes=self.has_changes) & self._is_asked(name)
        return found

    def is_made(self) -> Column:
        """Return whether no expression failed, and every reader of the table can read what they made."""
        if not self._computed:
            return F.lit(True)
        made, of = F.col(SELECTED), Struct(tuple(output.field for _, output in self._computed))
        found = texts(made, of)
        checks = [made.isNotNull(), *([is_utf8(found)] if found else []), *all_in_years(made, of)]
        return F.coalesce(reduce(Column.__and__, checks), F.lit(False))

    def failure(self, spark: SparkSession) -> Column:
        """Return the expressions that fail for a record: text, never null."""
        fails = [
            F.when(tried(spark, F.struct(self._value(output))).isNull(), F.lit(output.text))
            for _, output in self._computed
        ]
        return F.concat(F.lit("select "), F.array_join(F.array_compact(F.array(*fails)), ", "))

    def _is_asked(self, name: str) -> Column:
        return ~is_filtered() if self.has_filter and name not in self.kept else F.lit(True)

    @property
    def _computed(self) -> Sequence[tuple[str, Output]]:
        return [(name, output) for name, output in self.of.items() if output.value is not None]

    def _value(self, output: Output) -> Column:
        assert output.value is not None
        return F.expr(output.value.sql(self.asked.column))

    def _column(self, field: Field) -> Column:
        output = self.of.get(field.name)
        if output is None:
            return F.lit(None).cast(spark_type(field.type))
        value = F.col(SELECTED)[field.name]
        if output.value is None:
            value = F.col(self._row)
            for name in output.path:
                value = value[name]
        return conform(value, aligned(output.field.type, field.type), field.type)

    def _unavailable(self) -> Column:
        """Return the columns of the table whose value is omitted."""
        there = F.col(SOURCE)[UNAVAILABLE]
        names = [
            F.when(F.array_contains(there, output.column), F.lit(name))
            for name, output in self.of.items()
            if output.column is not None and output.is_kept
        ]
        found = F.array_compact(F.array(F.lit(None).cast("string"), *names))
        return F.when(there.isNotNull() & (F.size(found) > 0), found)


def row_selection(
    pipeline: Pipeline, target: Struct, key: RowKey | None, selection: Selection | None, masks: Masks | None
) -> RowSelection | None:
    """Return what makes rows of the type `target` by a selection; None without one. `target` has text in place of variants."""
    if selection is None:
        return None
    columns = columns_of(target, selection.row, top=True)
    of = {columns[one.field.name].name: one for one in selection.outputs if one.field.name in columns}
    column = SOURCE if masks is None else MASKED
    reads = {name for output in of.values() if output.value is not None for name in output.reads}
    names = [field.name for field in selection.source.fields]
    kept = frozenset((*key.names, *(key.order.columns.values() if key.order else ())) if key is not None else ())
    return RowSelection(
        target=target,
        fields=fields_of(pipeline, target),
        of=of,
        asked=Asked.of(column, _ASKED, names, named_by_record(key), reads),
        has_filter=pipeline.shape.condition is not None,
        has_changes=pipeline.is_change_data,
        kept=kept,
        source=selection.source,
        masks=masks,
    )


def aligned(value: Type, column: Type) -> Type:
    """Return the type of a decoded value with the fields of its structs in the order of a column's, as `conform` needs them."""
    if isinstance(value, Struct) and isinstance(column, Struct):
        columns = columns_of(column, value, top=False)
        found = {columns[field.name].name: field for field in value.fields if field.name in columns}
        return Struct(tuple(_aligned(found.get(field.name), field) for field in column.fields))
    return along(value, column, aligned)


def _aligned(field: Field | None, column: Field) -> Field:
    if field is None:
        return Field("", column.type, source=column.source)
    return replace(field, type=aligned(field.type, column.type), as_json=False)
