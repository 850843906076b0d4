"""The declared condition over decoded rows: which match, which fail, and what is left of a row that does not match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.declaration import Pipeline
from frazil.declaration.checks.sql_expressions import RowExpression
from frazil.declaration.envelopes import added_columns
from frazil.decode.decoded_columns import (
    CHANGE,
    CHANGED_AT,
    DECODED,
    MATCH,
    OPERATION,
    ROW,
    UNAVAILABLE,
    WRITE_KIND,
    writes_row,
)
from frazil.decode.keys.row_key import RowKey
from frazil.decode.spark_types import spark_struct
from frazil.envelopes.envelope import Operation
from frazil.errors import InvalidInput
from frazil.schemas.types import Struct

_HOLDS, _ASKED = "holds", "_frazil_asked"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition over rows with these `fields`, in their order. It is asked of records that write a row, and of no others.

    With a `key` it reads the columns of the key, which the value may lack, and a row that does not match becomes that of a delete:
    it keeps the columns `kept`. With `has_changes` rows say what they do. `asked` is the column that the condition reads: the row,
    or one with the columns of the key. `parts` are those of the condition that have a type by themselves, as they are written and
    as Spark's SQL.
    """

    condition: RowExpression
    fields: tuple[str, ...]
    key: RowKey | None = None
    has_changes: bool = False
    kept: Sequence[str] = ()
    asked: str = ROW
    parts: Sequence[tuple[str, str]] = ()

    def applied(self, records: DataFrame, *, once: str) -> DataFrame:
        """Return decoded records with the column `MATCH`; `once` is a nondeterministic column, so that each is computed once."""
        if self.key is not None and self.asked == _ASKED:
            of_key, read = self.key.values(), [name for name in self.fields if name.lower() in self.condition.columns]
            row = F.struct(*(of_key.get(name, F.col(ROW)[name]).alias(name) for name in read))
            records = records.withColumns({_ASKED: row, once: F.spark_partition_id()})
        condition = F.coalesce(F.expr(self.condition.sql(self.asked)), F.lit(False))
        asked = F.when(writes_row(has_changes=self.has_changes) & ~self.omits(), condition).otherwise(F.lit(True))
        made = F.struct(asked.alias(_HOLDS))
        records = records.withColumns({MATCH: tried(records.sparkSession, made), once: F.spark_partition_id()})
        if self.key is None:
            return records
        row = F.when(is_filtered(), self._row_of_delete).otherwise(F.col(ROW))
        return records.withColumns({ROW: row, once: F.spark_partition_id()})

    def omits(self) -> Column:
        """Return whether a change omits a value that the condition reads."""
        if not self.has_changes:
            return F.lit(False)
        read = F.array(*map(F.lit, self.condition.columns))
        return F.coalesce(F.arrays_overlap(F.col(ROW)[UNAVAILABLE], read), F.lit(False))

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


def row_filter(pipeline: Pipeline, spark: SparkSession, target: Struct, key: RowKey | None) -> RowFilter | None:
    """Return the declared condition over rows of this type; None if none is declared.

    Raises `InvalidInput` if it does not fit them.
    """
    condition = pipeline.shape.condition
    if condition is None:
        return None
    row, where = spark_struct(target), f"pipeline {pipeline.name}, shape.where"
    try:
        kind = _type_of(spark, ROW, row, condition.sql(ROW))
    except (PySparkException, Py4JJavaError) as error:
        text = error.getMessage() if isinstance(error, PySparkException) else str(error.java_exception)
        what = (text or str(error)).splitlines()[0].replace(f"`{ROW}`.", "").replace(f"{ROW}.", "")
        columns = ", ".join(name for name in row.names if not name.startswith("_"))
        raise InvalidInput(
            f"the condition {condition.text} does not fit the rows: {what}",
            where=where,
            do=f"The columns are {columns}",
        ) from None
    if not isinstance(kind, T.BooleanType):
        what = f"the condition {condition.text} is {kind.simpleString()}, not true or false"
        raise InvalidInput(what, where=where, do="Compare it with a value")
    asked = _ASKED if key is not None and not set(key.names).isdisjoint(condition.columns) else ROW
    kept = (*key.names, *(key.order.columns.values() if key.order else ())) if key is not None else ()
    return RowFilter(
        condition=condition,
        fields=(*row.names, *(field.name for field in CHANGE if pipeline.is_change_data), DECODED),
        key=key,
        has_changes=pipeline.is_change_data,
        kept=(*kept, *added_columns(pipeline.envelope)),
        asked=asked,
        parts=[part for part in condition.parts(asked) if _has_type(spark, asked, row, part[1])],
    )


def _type_of(spark: SparkSession, name: str, row: T.StructType, sql: str) -> T.DataType:
    """Return the type of an expression over rows in a column of this name. Raises what Spark does when it types or optimises it."""
    found = spark.createDataFrame([], T.StructType([T.StructField(name, row)])).select(F.expr(sql))
    cast(Any, found)._jdf.queryExecution().optimizedPlan()
    return found.schema[0].dataType


def _has_type(spark: SparkSession, name: str, row: T.StructType, sql: str) -> bool:
    try:
        _type_of(spark, name, row, sql)
    except (PySparkException, Py4JJavaError):
        return False
    return True


def is_filtered() -> Column:
    """Return whether a record does not match; never null."""
    return ~F.coalesce(F.col(MATCH)[_HOLDS], F.lit(True))


def tried(spark: SparkSession, made: Column) -> Column:
    """Return a struct, null if an expression in it fails. It costs nothing that can be measured."""
    jvm = cast(Any, spark)._jvm.org.apache.spark.sql
    expression = jvm.classic.ExpressionUtils.expression(cast(Any, made)._jc)
    return Column(jvm.classic.ExpressionUtils.column(jvm.catalyst.expressions.TryEval(expression)))
