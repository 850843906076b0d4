"""Values that are JSON's null. Kafka Connect's JSON converters write one where a record has a schema and no value.

Such is a delete of `ExtractNewRecordState`. Other formats have no value then. Of other records than change data, it is no value
where the schema allows it: Confluent's converter writes an optional struct as `oneOf` of null and an object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.declaration.options import ValueFormat
from frazil.decode.decoding import Decoding
from frazil.decode.frame_columns import body_of, frame_of, is_one_of

_SPACE = r"[ \t\r\n]*"
_NULL = f"^{_SPACE}null{_SPACE}$"
_END = 64
"""So many bytes at the end of a value are looked at: no null is longer, and a converter writes `payload` last."""


def null_of(value_format: object) -> Callable[[Column], Column] | None:
    """Return what says of a value in this format whether it is null; None if the format has no null."""
    match value_format:
        case ValueFormat.JSON:
            return partial(_is, _NULL)
        case ValueFormat.JSON_SCHEMA:  # four bytes of a frame are as many characters, or fewer
            return partial(_is, r"(?s)^(\x00.{1,4})?null$")
        case ValueFormat.CONNECT_JSON:
            return partial(_ends_with, rf'"payload"{_SPACE}:{_SPACE}null{_SPACE}\}}{_SPACE}$')
        case _:
            return None


def without_nulls(records: DataFrame, column: str, is_null: Callable[[Column], Column]) -> DataFrame:
    """Return the records with no value where it is JSON's null."""
    value = F.col(column)
    return records.withColumn(column, F.when(~is_null(value), value))


def without_framed_nulls(records: DataFrame, decoding: Decoding) -> DataFrame:
    """Return the records, which have frames, without a value where it is null and its schema allows that."""
    if not decoding.nullable:
        return records
    is_null = F.coalesce(_is(_NULL, body_of(decoding)), F.lit(False))
    is_none = is_one_of(frame_of(decoding), dict.fromkeys(decoding.nullable)) & is_null
    return records.withColumn(decoding.column, F.when(~is_none, F.col(decoding.column)))


def _is(pattern: str, value: Column) -> Column:
    return (F.length(value) <= _END) & value.cast("string").rlike(pattern)


def _ends_with(pattern: str, value: Column) -> Column:
    return F.substring(value, -_END, _END).cast("string").rlike(pattern)
