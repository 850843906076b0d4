"""Expressions of a declaration over decoded rows: their types by Spark, and what is wrong where they have none."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.declaration.checks.null_values import ELEMENT
from frazil.declaration.checks.sql_expressions import RowExpression
from frazil.decode.decoded_columns import UNAVAILABLE
from frazil.decode.keys.row_key import RowKey
from frazil.errors import InvalidInput

_NAME = "_frazil_typed"


def typed(spark: SparkSession, row: T.StructType, expression: RowExpression, what: str, where: str) -> T.DataType:
    """Return the type of an expression over rows of this type.

    Raises `InvalidInput` if it does not fit them; `what` is the expression in the message.
    """
    try:
        found, analyzed = _type_of(spark, _NAME, row, expression.sql(_NAME))
    except (PySparkException, Py4JJavaError) as error:
        text = error.getMessage() if isinstance(error, PySparkException) else str(error.java_exception)
        said = (text or str(error)).splitlines()[0].replace(f"`{_NAME}`.", "").replace(f"{_NAME}.", "")
        said = re.sub(r"^\[[A-Z0-9_.]+\] | SQLSTATE: \w+.*$", "", said).rstrip(".")
        said = said.replace("No such struct field", "the rows lack the field")
        columns = ", ".join(row.names)
        raise InvalidInput(
            f"{what} does not fit the rows: {said}", where=where, do=f"The columns are {columns}"
        ) from None
    if expression.may_be_now and any(_casts_a_text(each) for each in _members(analyzed.expressions())):
        said = "compares a time with a text such as 'today', of which Spark makes the time at which it runs"
        raise InvalidInput(f"{what} {said}", where=where, do="Write a date, such as date '2026-01-31'")
    return found


def typed_together(
    spark: SparkSession, row: T.StructType, expressions: Sequence[tuple[RowExpression, str]], where: str
) -> list[T.DataType]:
    """Return the types of several expressions, by one plan; each has what it is in a message. Raises as `typed` does."""
    if len(expressions) > 1 and not any(expression.may_be_now for expression, _ in expressions):
        named = (F.expr(one.sql(_NAME)).alias(f"c{number}") for number, (one, _) in enumerate(expressions))
        with suppress(PySparkException, Py4JJavaError):  # each by itself says which one it is
            found = spark.createDataFrame([], T.StructType([T.StructField(_NAME, row)])).select(*named)
            cast(Any, found)._jdf.queryExecution().optimizedPlan()
            return [field.dataType for field in found.schema]
    return [typed(spark, row, expression, what, where) for expression, what in expressions]


def has_type(spark: SparkSession, name: str, row: T.StructType, sql: str) -> bool:
    """Return whether Spark's SQL over rows in the column `name` has a type."""
    try:
        _type_of(spark, name, row, sql)
    except (PySparkException, Py4JJavaError):
        return False
    return True


def may_be_true(
    spark: SparkSession, row: T.StructType, condition: RowExpression, nulls: Collection[tuple[str, ...]]
) -> bool:
    """Return whether a condition over rows of this type may be true where these places are null.

    Spark's optimizer evaluates what depends on the nulls and on constants alone. What fails is true of no record, but rejects it.
    """
    several = [
        path for path in nulls if _is_of_several(row, path)
    ]  # a field of all elements is a list of nulls, not null
    if not condition.may_be_true([path for path in nulls if path not in several]):
        return False
    sql, replaced = condition.without(nulls, _NAME)
    no_rows = spark.sparkContext.emptyRDD()  # the optimizer does not see that it is empty
    rows = spark.createDataFrame(no_rows, T.StructType([T.StructField(_NAME, row, nullable=False)]))
    with suppress(PySparkException, Py4JJavaError):
        types = rows.select(*(F.expr(one).alias(name) for name, one in replaced.items())).schema
        for value in (None, (), (None,), (None, None)) if several else (None,):
            made = F.col(_NAME)
            for field in types:
                is_list = value is not None and isinstance(field.dataType, T.ArrayType)
                known = F.array(*(F.lit(None) for _ in value or ())) if is_list else F.lit(None)
                made = made.withField(field.name, known.cast(field.dataType))
            left = rows.select(made.alias(_NAME)).filter(F.expr(sql))
            most = cast(Any, left)._jdf.queryExecution().optimizedPlan().maxRows()
            if most.isEmpty() or most.get() > 0:
                return True
        return False
    return True


def _is_of_several(of: T.DataType, path: Sequence[str]) -> bool:
    """Return whether a path goes through a list or map without naming an element."""
    match of:
        case T.StructType() if path:
            inner = next((field.dataType for field in of.fields if field.name == path[0]), None)
            return inner is not None and _is_of_several(inner, path[1:])
        case T.ArrayType() | T.MapType() if path:
            inner = of.elementType if isinstance(of, T.ArrayType) else of.valueType
            return path[0] != ELEMENT or _is_of_several(inner, path[1:])
    return False


def _type_of(spark: SparkSession, name: str, row: T.StructType, sql: str) -> tuple[T.DataType, Any]:
    """Return the type of an expression, and its analyzed plan. Raises what Spark does when it types or optimises it."""
    found = spark.createDataFrame([], T.StructType([T.StructField(name, row)])).select(F.expr(sql))
    execution = cast(Any, found)._jdf.queryExecution()
    execution.optimizedPlan()
    return found.schema[0].dataType, execution.analyzed()


def _casts_a_text(expression: Any) -> bool:
    """Return whether a text without a column becomes a date or a timestamp in an expression of Spark."""
    inner = _members(expression.children())
    is_cast = expression.getClass().getSimpleName() == "Cast" and inner[0].foldable()
    if is_cast and inner[0].dataType().typeName() == "string":
        return str(expression.dataType().typeName()).startswith(("date", "timestamp"))
    return any(map(_casts_a_text, inner))


def _members(sequence: Any) -> list[Any]:
    """Return the members of a Scala sequence."""
    return [sequence.apply(number) for number in range(sequence.length())]


def tried(spark: SparkSession, made: Column) -> Column:
    """Return a struct, null if an expression in it fails. It costs nothing that can be measured."""
    jvm = cast(Any, spark)._jvm.org.apache.spark.sql
    expression = jvm.classic.ExpressionUtils.expression(cast(Any, made)._jc)
    return Column(jvm.classic.ExpressionUtils.column(jvm.catalyst.expressions.TryEval(expression)))


@dataclass(frozen=True, slots=True)
class Asked:
    """The column that expressions read: that of decoded rows, or one of the `fields` that they read, with those of the `key`."""

    column: str
    fields: tuple[str, ...] = ()
    key: RowKey | None = None

    @classmethod
    def of(cls, row: str, name: str, fields: Iterable[str], key: RowKey | None, reads: Collection[str]) -> Asked:
        """Return `row`, or the column `name` if expressions read one of the columns of the `key`: the value may lack it."""
        if key is None or set(key.names).isdisjoint(reads):
            return cls(row)
        return cls(name, tuple(dict.fromkeys(one for one in (*fields, *key.names) if one.lower() in reads)), key)

    def made(self, records: DataFrame, row: str, once: str) -> DataFrame:
        """Return records with the column; `once` is a nondeterministic column, so that it is computed once."""
        if self.key is None:
            return records
        of_key = self.key.values()
        made = F.struct(*(of_key.get(name, F.col(row)[name]).alias(name) for name in self.fields))
        return records.withColumns({self.column: made, once: F.spark_partition_id()})


def named_by_record(key: RowKey | None) -> RowKey | None:
    """Return a key if its columns are of the record's key, and not of the value."""
    return None if key is None or key.is_of_value else key


def omits(row: str, columns: Collection[str], *, has_changes: bool) -> Column:
    """Return whether a change, whose row is in this column, omits the value of one of these columns; never null."""
    if not has_changes or not columns:
        return F.lit(False)
    return F.coalesce(F.arrays_overlap(F.col(row)[UNAVAILABLE], F.array(*map(F.lit, columns))), F.lit(False))
