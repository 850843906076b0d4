"""A rejected record as a row: everything that a later replay needs, as Kafka held it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.decode.decoded_columns import DETAIL, REASON, SCHEMA_ID, as_read
from frazil.schemas.metadata import HEADERS
from frazil.schemas.reasons import MESSAGES
from frazil.schemas.types import Field, Kind, Primitive, Struct

_STRING, _LONG, _INT = Primitive(Kind.STRING), Primitive(Kind.LONG), Primitive(Kind.INT)
_BINARY, _INSTANT = Primitive(Kind.BINARY), Primitive(Kind.TIMESTAMPTZ)

COLUMNS = Struct(
    (
        Field("reason", _STRING, doc="reason code; schemas/reasons.py explains each"),
        Field("stage", _STRING, doc="where the record was rejected: decode or route"),
        Field(
            "message",
            _STRING,
            doc="the reason as a sentence; of the record at most the beginning of a partition's value",
        ),
        Field("schema_id", _LONG, doc="writer schema id in the record's frame, if it has one"),
        Field("pipeline", _STRING),
        Field("run", _STRING, doc="id of the run that rejected it"),
        Field("topic", _STRING),
        Field("partition", _INT),
        Field("offset", _LONG),
        Field("timestamp", _INSTANT, doc="the record's timestamp"),
        Field("timestamp_type", _INT, doc="0: set by the producer, 1: by the broker"),
        Field("headers", HEADERS),
        Field("key", _BINARY, doc="the key's bytes; null if it had none"),
        Field("value", _BINARY, doc="the value's bytes, frame included; null for a tombstone"),
        Field("rejected_at", _INSTANT, doc="when the batch was staged"),
    )
)


def dead_letter(rejected: DataFrame, *, pipeline: str, run: str, is_masked: bool = False) -> Column:
    """Return a rejected record as a row of the dead-letter table, but for `rejected_at`: key and value as Kafka holds them.

    If values are masked, it has none of the record's bytes.
    """
    held = {"key": as_read(rejected, "key"), "value": as_read(rejected, "value"), "headers": F.col("headers")}
    if is_masked:
        held = {name: F.lit(None).cast(rejected.schema[name].dataType) for name in held}
    return F.struct(
        F.col(REASON).alias("reason"),
        F.lit("decode").alias("stage"),
        _message().alias("message"),
        F.col(SCHEMA_ID).alias("schema_id"),
        F.lit(pipeline).alias("pipeline"),
        F.lit(run).alias("run"),
        "topic",
        "partition",
        "offset",
        "timestamp",
        F.col("timestampType").alias("timestamp_type"),
        *(column.alias(name) for name, column in sorted(held.items())),
    )


def _message() -> Column:
    """Return the sentence of the reason, with its detail if it has one."""
    texts = F.create_map(*(F.lit(text) for code, words in MESSAGES.items() for text in (code.value, words)))
    message = F.try_element_at(texts, F.col(REASON))
    return F.when(F.col(DETAIL).isNull(), message).otherwise(F.concat(message, F.lit(": "), F.col(DETAIL)))
