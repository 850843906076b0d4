"""A rejected record as a row: everything that a later replay needs, as Kafka held it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.dead_letters.encrypted_bytes import Encryption
from frazil.decode.decoded_columns import CHANGE, DECODED, DETAIL, MASKED, REASON, SCHEMA_ID, UNAVAILABLE, as_read
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
        Field(
            "key",
            _BINARY,
            doc="the key's bytes; null if it had none. With masks null or encrypted, like value and headers",
        ),
        Field("value", _BINARY, doc="the value's bytes, frame included; null for a tombstone"),
        Field("rejected_at", _INSTANT, doc="when the batch was staged"),
        Field("masked", _STRING, doc="with masks: the decoded value as JSON, masked; null if it was not decoded"),
        Field("outcome", _STRING, doc="recovered, superseded, filtered or discarded; null while it is open"),
        Field("outcome_reason", _STRING, doc="why it was discarded"),
        Field("attempts", _INT, doc="replays that tried it"),
        Field("decision", _LONG, doc="number of the decision in the ledger that changed the last three"),
    )
)


_OPEN = {"outcome": "string", "outcome_reason": "string", "attempts": "int", "decision": "long"}
"""The columns of an outcome, which a replay or a discard fills."""


def dead_letter(
    rejected: DataFrame, *, pipeline: str, run: str, is_masked: bool = False, encryption: Encryption | None = None
) -> Column:
    """Return a rejected record as a row of the dead-letter table, but for `rejected_at`: key and value as Kafka holds them.

    If values are masked, it has the record's bytes with an `encryption` only, and the decoded value with its masks.
    """
    value, masked = as_read(rejected, "value"), F.lit(None).cast("string")
    held = {"key": as_read(rejected, "key"), "value": value, "headers": F.col("headers")}
    if is_masked:
        masked = _masked(rejected) if MASKED in rejected.columns else masked
        held = {name: F.lit(None).cast(rejected.schema[name].dataType) for name in held}
        held = held if encryption is None else encryption.held(value)
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
        masked.alias("masked"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in _OPEN.items()),
    )


def _masked(rejected: DataFrame) -> Column:
    """Return the decoded value with its masks as JSON; null if the record was not decoded."""
    fields = rejected.select(f"{MASKED}.*").columns
    names = [name for name in fields if name != DECODED and name not in {field.name for field in CHANGE}]
    omitted = F.col(MASKED)[UNAVAILABLE] if UNAVAILABLE in fields else F.lit(None).cast("array<string>")
    is_there = {name: ~F.coalesce(F.array_contains(omitted, name), F.lit(False)) for name in names}
    row = F.struct(*(F.when(is_there[name], F.col(MASKED)[name]).alias(name) for name in names))
    return F.when(F.col(MASKED)[DECODED], F.to_json(row, {"ignoreNullFields": "false"}))


def _message() -> Column:
    """Return the sentence of the reason, with its detail if it has one."""
    texts = F.create_map(*(F.lit(text) for code, words in MESSAGES.items() for text in (code.value, words)))
    message = F.try_element_at(texts, F.col(REASON))
    return F.when(F.col(DETAIL).isNull(), message).otherwise(F.concat(message, F.lit(": "), F.col(DETAIL)))
