"""Decode: records, schemas -> rows, each with a reason if it is rejected. One pass, in the JVM; a bad record is a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from frazil.declaration.formats import Tombstones
from frazil.ingest.conform import conform
from frazil.schemas.avro import OPTIONS, Reader
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct

ROW, SCHEMA_ID, REASON = "_frazil_row", "_frazil_schema_id", "_frazil_reason"
DECODED = "_decoded"  # the last field of a row: true exactly when the record could be decoded, else null
_ONCE = "_frazil_once"
_MARK = Field(DECODED, Primitive(Kind.BOOLEAN))
_NO_SCHEMA = -1

Body = Callable[[Column], Column]  # the bytes after the frame -> the row: the table's columns, then `_decoded`


def avro(reader: Reader, target: Struct) -> Body:
    """Decode the Avro binary of one writer schema into `target`."""

    def body(value: Column) -> Column:
        row = from_avro(value, reader.writer, {**OPTIONS, "avroSchema": reader.reader})
        if reader.conforms:
            return row
        # In an array of one, so that the record is decoded once and not for each field of it.
        whole = Struct((*reader.yields.fields, _MARK)), Struct((*target.fields, _MARK))
        return F.transform(F.array(row), lambda decoded: conform(decoded, *whole))[0]

    return body


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the values of a topic are decoded.

    `writers` by schema id, when values are framed; else `unframed`. `refused` are the schema ids that are known and not landed,
    each with its reason. All bodies give one and the same type; `row_type` is its DDL.
    """

    row_type: str
    writers: Mapping[int, Body] = field(default_factory=dict)
    refused: Mapping[int, Reason] = field(default_factory=dict)
    unframed: Body | None = None
    tombstones: Tombstones = Tombstones.DEAD_LETTER


def decode(records: DataFrame, decoding: Decoding) -> DataFrame:
    """`records` with their row (null where there is none) and schema id.

    The row is computed once however often it is used: without the nondeterministic column beside it, Spark would push a filter on
    the row below the projection and decode every record twice (measured: 1.7 times the CPU).
    """
    return records.withColumns({ROW: _row(decoding), SCHEMA_ID: _schema_id(decoding), _ONCE: F.spark_partition_id()})


def rows(decoded: DataFrame) -> DataFrame:
    """The records that have a row."""
    return decoded.where(F.col(ROW)[DECODED] & (F.col(_ONCE) >= 0))


def rejected(decoded: DataFrame, decoding: Decoding) -> DataFrame:
    """The records that have no row, with the reason why."""
    is_row = F.coalesce(F.col(ROW)[DECODED], F.lit(False))
    lost = decoded.where(~is_row & (F.col(_ONCE) >= 0))
    return lost.withColumns({REASON: _reason(decoding), SCHEMA_ID: _id_in_frame(decoding)})


def _row(decoding: Decoding) -> Column:
    value = F.col("value")
    if decoding.unframed is not None:
        row = decoding.unframed(value)
    else:
        row = F.lit(None).cast(decoding.row_type)
        body, frame = F.substring(value, 6, 2_147_483_647), F.substring(value, 1, 5)
        branches: Column | None = None
        for schema_id, decode_body in sorted(decoding.writers.items(), reverse=True):  # the newest is met most
            matches = frame == F.lit(_frame(schema_id))
            decoded = decode_body(body)
            branches = F.when(matches, decoded) if branches is None else branches.when(matches, decoded)
        if branches is not None:
            row = branches
    if decoding.tombstones is Tombstones.NULL_ROW:
        nothing = F.from_json(F.lit('{"_decoded":true}'), decoding.row_type)
        row = F.when(value.isNull(), nothing).otherwise(row)
    return row


def _schema_id(decoding: Decoding) -> Column:
    frame = F.substring(F.col("value"), 1, 5)
    column: Column | None = None
    for schema_id in sorted(decoding.writers, reverse=True):
        matches, number = frame == F.lit(_frame(schema_id)), F.lit(schema_id).cast("long")
        column = F.when(matches, number) if column is None else column.when(matches, number)
    return F.lit(None).cast("long") if column is None else column


def _frame(schema_id: int) -> bytearray:
    return bytearray(b"\x00" + schema_id.to_bytes(4, "big"))


def _id_in_frame(decoding: Decoding) -> Column:
    if decoding.unframed is not None:
        return F.lit(None).cast("long")
    value = F.col("value")
    number = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10).cast("long")
    return F.when((F.length(value) >= 5) & (F.substring(value, 1, 1) == F.lit(bytearray(b"\x00"))), number)


def _reason(decoding: Decoding) -> Column:
    value = F.col("value")
    reason = F.when(value.isNull(), F.lit(Reason.TOMBSTONE.value))
    if decoding.unframed is not None:
        return reason.otherwise(F.lit(Reason.UNDECODABLE.value))
    schema_id = _id_in_frame(decoding)
    reason = reason.when(F.length(value) < 5, F.lit(Reason.TOO_SHORT.value))
    reason = reason.when(F.substring(value, 1, 1) != F.lit(bytearray(b"\x00")), F.lit(Reason.WRONG_MAGIC.value))
    for why in sorted(set(decoding.refused.values())):
        ids = [i for i, r in decoding.refused.items() if r is why]
        reason = reason.when(schema_id.isin(ids), F.lit(why.value))
    known = sorted(decoding.writers) or [_NO_SCHEMA]
    reason = reason.when(~schema_id.isin(known), F.lit(Reason.UNKNOWN_SCHEMA.value))
    return reason.otherwise(F.lit(Reason.UNDECODABLE.value))


def text(column: str = "value") -> Body:
    """UTF-8 text as one column."""

    def body(value: Column) -> Column:
        words = value.cast("string")
        return F.struct(words.alias(column), F.when(F.is_valid_utf8(words), F.lit(True)).alias(DECODED))

    return body


def raw(column: str = "value") -> Body:
    """Bytes as one column."""
    return lambda value: F.struct(value.alias(column), F.when(value.isNotNull(), F.lit(True)).alias(DECODED))


def unknown_ids(reasons: Column) -> Column:
    """The schema ids of records that were rejected as unknown: an aggregate for `observe`."""
    return F.collect_set(F.when(reasons == Reason.UNKNOWN_SCHEMA.value, F.col(SCHEMA_ID)))


def columns_of(target: Sequence[str]) -> list[Column]:
    """The row's fields as columns of their own."""
    return [F.col(ROW)[name].alias(name) for name in target]


def json_text(column: str = "value") -> Body:
    """Schemaless JSON as one column of validated text."""

    def body(value: Column) -> Column:
        words = value.cast("string")
        is_json = F.is_valid_utf8(words) & F.try_parse_json(words).isNotNull()
        return F.struct(words.alias(column), F.when(is_json, F.lit(True)).alias(DECODED))

    return body
