"""The rows of a history: what one commit of the state did to each key that it changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.lake import ledger
from frazil.lake.constant import constant
from frazil.lake.history.changed_keys import AFTER, CAME, WENT, is_there
from frazil.lake.history.changed_keys import BEFORE as ROW_BEFORE
from frazil.lake.history.history_columns import BEFORE, COMMITTED_AT, END, SEQUENCE
from frazil.lake.ledger import Entry
from frazil.lake.offsets import Offsets, canonical
from frazil.schemas.metadata import CHANGED_AT, DELETED_AT, OP

_KAFKA_TIMESTAMP = "_kafka_timestamp"


def _next(offsets: Mapping[str, str]) -> str:
    at = Offsets.parse(offsets[ledger.END]).at
    return canonical({str(partition): offset for partition, offset in at.items()})


def history_values(
    changed: DataFrame, columns: Sequence[Any], by: Entry, sequence: int, offsets: Mapping[str, str]
) -> Iterator[Column]:
    """Yield the values of a history's `columns`, fields of its Spark schema, for the keys that the commit `by` changed."""
    after, before = F.col(AFTER), F.col(ROW_BEFORE)
    row = changed.schema[AFTER].dataType
    assert isinstance(row, T.StructType)
    names = {field.name: field.dataType for field in row.fields}
    keys = {*changed.columns} - {AFTER, ROW_BEFORE, CAME, WENT}
    committed = F.timestamp_millis(_of_commit(by.at_ms))
    staged_us = by.summary.get(ledger.STAGED_AT)
    batch = F.timestamp_micros(_of_commit(int(staged_us))) if staged_us else committed
    is_live, was_live = is_there(AFTER), is_there(ROW_BEFORE)
    times: list[Column] = []
    if DELETED_AT.name in names:
        is_live, was_live = is_live & after[DELETED_AT.name].isNull(), was_live & before[DELETED_AT.name].isNull()
        times.append(after[DELETED_AT.name])
    if _KAFKA_TIMESTAMP in names:
        times.append(after[_KAFKA_TIMESTAMP])
    own = {
        OP.name: F.when(~is_live, "d").when(was_live, "u").otherwise("c"),
        CHANGED_AT.name: F.coalesce(*times, batch),
        COMMITTED_AT.name: committed,
        SEQUENCE.name: _of_commit(sequence),
        END.name: F.lit(_next(offsets)),
    }
    for column in columns:
        name, null = column.name, F.lit(None).cast(column.dataType)
        if name == BEFORE:
            fields = (_value(before, field, names).alias(field.name) for field in column.dataType.fields)
            yield F.when(is_there(ROW_BEFORE), F.struct(*fields)).alias(BEFORE)
        elif name in own:
            yield own[name].alias(name)
        elif name in keys:
            yield F.col(f"`{name}`").alias(name)
        else:
            yield F.when(is_there(AFTER), _value(after, column, names)).otherwise(null).alias(name)


def _of_commit(number: int) -> Column:
    return constant(F.lit(number).cast("long"), F.spark_partition_id())


def _value(row: Column, column: Any, fields: Mapping[str, Any]) -> Column:
    """Return a column of a row, in the type of the history; null if the state has it no longer."""
    if column.name not in fields:
        return F.lit(None).cast(column.dataType)
    return _as(row[column.name], fields[column.name], column.dataType)


def _as(value: Column, of: Any, wanted: Any) -> Column:
    """Return a value of a Spark type in another one, which has fields that this one has no longer: they are null."""
    match of, wanted:
        case _ if of == wanted:
            return value
        case T.StructType(), T.StructType():
            fields = {field.name: field.dataType for field in of.fields}
            inside = F.struct(*(_value(value, field, fields).alias(field.name) for field in wanted.fields))
            return F.when(value.isNotNull(), inside)
        case T.ArrayType(), T.ArrayType():
            return F.transform(value, lambda element: _as(element, of.elementType, wanted.elementType))
        case T.MapType(), T.MapType():
            return F.transform_values(value, lambda _, inside: _as(inside, of.valueType, wanted.valueType))
    return value.cast(wanted)
