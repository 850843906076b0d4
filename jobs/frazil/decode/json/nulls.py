"""Values that are JSON's null. Kafka Connect's JSON converters write one where a record has a schema and no value.

Such is a delete of `ExtractNewRecordState`, and in keyed tables of any producer. Other formats have no value then. In append
tables it is no value where the schema allows it: Confluent's converter writes an optional struct as `oneOf` of null and an object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.declaration.options import ValueFormat
from frazil.decode.decoding import Decoding
from frazil.decode.frames.frame_columns import body_of, frame_of, is_one_of
from frazil.decode.json.enclosing import CORRUPT, NAME
from frazil.decode.json.json_decoder import OPTIONS

_JSON = (ValueFormat.JSON, ValueFormat.JSON_SCHEMA, ValueFormat.CONNECT_JSON)
_SPACE = r"[ \t\r\n]*"
_NULL = f"^{_SPACE}null{_SPACE}$"
_NULL_PAYLOAD = rf'"payload"{_SPACE}:{_SPACE}null{_SPACE}\}}{_SPACE}$'
_READ = T.StructType(
    [
        T.StructField("payload", T.StringType()),
        T.StructField(NAME, T.BooleanType()),
        T.StructField(CORRUPT, T.StringType()),
    ]
)
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
            return _has_null_payload
        case _:
            return None


def with_deletes(decoding: Decoding, value_format: ValueFormat) -> Decoding:
    """Return how the values of a keyed table are decoded: JSON's null is no value, whatever the schema says of it."""
    if value_format not in _JSON:
        return decoding
    if decoding.has_ids:
        return replace(decoding, nullable=tuple(decoding.frames))
    of_format = null_of(ValueFormat.JSON if value_format is ValueFormat.JSON_SCHEMA else value_format)
    assert of_format is not None
    return replace(decoding, is_null=partial(_is_either, of_format))


def without_nulls(records: DataFrame, column: str, is_null: Callable[[Column], Column]) -> DataFrame:
    """Return the records with no value where it is JSON's null; `as_read` still has it."""
    return _without(records, column, is_null(F.col(column)))


def without_framed_nulls(records: DataFrame, decoding: Decoding) -> DataFrame:
    """Return the records, which have frames, without a value where it is null and its schema allows that; `as_read` has it."""
    if not decoding.nullable:
        return records
    is_null = F.coalesce(_is(_NULL, body_of(decoding)), F.lit(False))
    return _without(records, decoding.column, is_one_of(frame_of(decoding), dict.fromkeys(decoding.nullable)) & is_null)


def as_read(records: DataFrame, column: str) -> Column:
    """Return the bytes of a key or value as Kafka holds them: of a dead letter, JSON's null included."""
    return F.col(_as_read(column) if _as_read(column) in records.columns else column)


def _without(records: DataFrame, column: str, is_null: Column) -> DataFrame:
    kept = {} if _as_read(column) in records.columns else {_as_read(column): F.col(column)}
    return records.withColumns({**kept, column: F.when(~is_null, F.col(column))})


def _as_read(column: str) -> str:
    return f"_frazil_{column}_as_read"


def _is(pattern: str, value: Column) -> Column:
    return (F.length(value) <= _END) & value.cast("string").rlike(pattern)


def _is_either(of_format: Callable[[Column], Column], value: Column) -> Column:
    return _is(_NULL, value) | of_format(value)


def _has_null_payload(value: Column) -> Column:
    """Return whether the value is one JSON object whose last member is a null payload, and no other one is a payload.

    The end is looked at first, which few records have. There another member takes the payload's place: only if it is one of the
    outermost object, it is read.
    """
    ends = F.substring(value, -_END, _END).cast("string").rlike(_NULL_PAYLOAD)
    text = F.try_validate_utf8(value.cast("string"))
    read = F.from_json(F.regexp_replace(text, _NULL_PAYLOAD, f'"{NAME}":true}}'), _READ, OPTIONS)
    wanted = F.struct(F.lit(None), F.lit(True), F.lit(None)).cast(_READ)
    return ends & read.eqNullSafe(wanted)
