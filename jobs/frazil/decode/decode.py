"""Decoding of records to rows by schemas, each with a reason if it is rejected. One pass, in the JVM; a bad record is a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.declaration.options import Tombstones
from frazil.decode.decoding import (
    DECODED,
    DETAIL,
    KEY,
    REASON,
    ROW,
    SCHEMA_ID,
    UNKNOWN,
    UNKNOWN_KEY,
    WAITING,
    WAITING_KEY,
    Decoding,
    is_truncate,
    schema_id_of,
)
from frazil.decode.frames.frame_columns import (
    body_of,
    bytes_of,
    choice,
    id_in_frame,
    step_columns,
    unframed_columns,
    with_frames,
)
from frazil.decode.json.nulls import as_read, without_framed_nulls, without_nulls
from frazil.decode.keys.row_key import RowKey
from frazil.decode.rejection import (
    change_reason,
    has_row,
    has_valid_key,
    key_reason_of,
    missing_columns,
    reason_of,
    unknown_frame,
    verdict_column,
    verdict_of,
    waiting_frame,
)
from frazil.decode.values.variants import as_variants, settled
from frazil.schemas.json_columns import has_variants
from frazil.schemas.reasons import Reason

_ONCE, _JUDGED, _TEXTS = "_frazil_once", "_frazil_judged", "_frazil_texts"


def decode(records: DataFrame, decoding: Decoding) -> DataFrame:
    """Return `records` with their row (null where there is none) and schema id.

    The row is computed once however often it is used: without the nondeterministic column beside it, Spark would push a filter on
    the row below the projection and decode every record twice (measured: 1.7 times the CPU).
    """
    for side in (decoding, decoding.key):
        if side is not None and side.is_null is not None:
            records = without_nulls(records, side.column, side.is_null)
    records = without_framed_nulls(with_frames(records, decoding), decoding)
    made = _TEXTS if has_variants(decoding.variants) else ROW
    columns = {made: _row(decoding), SCHEMA_ID: _schema_id(decoding), _ONCE: F.spark_partition_id()}
    if decoding.key is not None:
        records = without_framed_nulls(with_frames(records, decoding.key), decoding.key)
        columns[KEY] = _row(decoding.key)
    records = records.withColumns(columns)
    if made == ROW:
        return records
    records = records.withColumn(ROW, as_variants(F.col(_TEXTS), decoding.variants))
    row = settled(F.col(ROW), F.col(_TEXTS), decoding.variants)
    return records.withColumns({ROW: row, _ONCE: F.spark_partition_id()})


def rows(
    decoded: DataFrame,
    decoding: Decoding | None = None,
    row_key: RowKey | None = None,
    unplaced: Column | None = None,
) -> DataFrame:
    """Return the records that have a row; with `decoding`, those whose key has one too, if keys are decoded.

    With `row_key` they have a valid key. `unplaced` says why the table's partitions cannot hold the row, null if they can.
    """
    is_row = F.col(ROW)[DECODED]
    if decoding is not None:
        is_row = has_row(decoding)
        if (missing := missing_columns(decoding)) is not None:
            is_row = is_row & missing.isNull()
        if (reason := change_reason(decoding)) is not None:
            is_row = is_row & reason.isNull()
        if decoding.key is not None:
            is_row = is_row & has_valid_key(decoding.key)
    if row_key is not None:
        is_row = is_row & _verdict(row_key, decoding).isNull()
    if unplaced is not None:
        is_row = is_row & unplaced.isNull()
    return decoded.where(is_row & (F.col(_ONCE) >= 0))


def rejected(
    decoded: DataFrame,
    decoding: Decoding,
    row_key: RowKey | None = None,
    unavailable: Column | None = None,
    unplaced: Column | None = None,
) -> DataFrame:
    """Return the records that have no row, with the reason, and in hex the frames that are unknown or wait.

    `unavailable` says which of the others are changes that leave out a value that is nowhere. `unplaced` is as in `rows`.
    """
    sides = [side for side in (decoding, decoding.key) if side is not None and side.unframed is None]
    verdicts = {verdict_column(side): verdict_of(side) for side in sides}
    # Nondeterministic beside the verdicts, too: a filter below them would hold all that is refused several times.
    decoded = decoded.where(F.col(_ONCE) >= 0).withColumns({**verdicts, _JUDGED: F.spark_partition_id()})
    decoded = decoded.where(F.col(_JUDGED) >= 0)
    reason = F.when(~F.coalesce(has_row(decoding), F.lit(False)), reason_of(decoding))
    open_reasons = (Reason.UNKNOWN_SCHEMA, Reason.FOREIGN_SCHEMA)
    columns = {
        DETAIL: F.lit(None).cast("string"),
        SCHEMA_ID: id_in_frame(decoding, as_read(decoded, decoding.column)),
        UNKNOWN: unknown_frame(decoding, *open_reasons),
        WAITING: waiting_frame(decoding, Reason.UNKNOWN_SCHEMA),
        UNKNOWN_KEY: F.lit(None).cast("string"),
        WAITING_KEY: F.lit(None).cast("string"),
    }
    if (missing := missing_columns(decoding)) is not None:
        reason = reason.when(missing.isNotNull(), Reason.REQUIRED_NULL.value)
        columns[DETAIL] = F.when(F.col(REASON) == Reason.REQUIRED_NULL.value, missing)
    if (of_change := change_reason(decoding)) is not None:
        reason = reason.when(of_change.isNotNull(), of_change)
    if row_key is not None and row_key.plain is not None:  # before its text, which a frame may spoil
        reason = reason.when(row_key.names_schema(), Reason.KEY_REGISTRY_FRAME.value)
    if decoding.key is not None:
        reason = reason.when(~has_valid_key(decoding.key), key_reason_of(decoding.key))
        columns[UNKNOWN_KEY] = unknown_frame(decoding.key, Reason.KEY_SCHEMA)
        columns[WAITING_KEY] = waiting_frame(decoding.key, Reason.KEY_SCHEMA)
    verdicts_of_row = []
    if row_key is not None:
        verdicts_of_row.append(_verdict(row_key, decoding))
    if unplaced is not None:
        verdicts_of_row.append(F.when(unplaced.isNotNull(), Reason.PARTITION_VALUE.value))
        of_value = F.when(F.col(REASON) == Reason.PARTITION_VALUE.value, unplaced)
        columns[DETAIL] = F.coalesce(columns[DETAIL], of_value)
    if unavailable is not None:
        verdicts_of_row.append(F.when(unavailable, Reason.VALUE_UNAVAILABLE.value))
    if verdicts_of_row:
        reason = reason.otherwise(F.coalesce(*verdicts_of_row))
    return decoded.withColumn(REASON, reason).where(F.col(REASON).isNotNull()).withColumns(columns)


def with_bytes_as_read(rejected: DataFrame) -> DataFrame:
    """Return rejected records with key and value as Kafka holds them; those that are JSON's null were taken for none."""
    return rejected.withColumns({column: as_read(rejected, column) for column in ("key", "value")})


def key_of_rejected(decoding: Decoding, row_key: RowKey) -> Column:
    """Return the key that the row of a rejected record would have: the columns of the key, null where they cannot be read."""
    has_key = has_valid_key(decoding.key) if decoding.key is not None else F.lit(True)
    found = row_key.of_rejected(F.coalesce(has_row(decoding), F.lit(False)), has_key)
    return F.struct(*(column.alias(name) for name, column in found.items()))


def _verdict(row_key: RowKey, decoding: Decoding | None) -> Column:
    """Return why a decoded record has no row for its key or order, null if it has one; a truncate that lands has neither."""
    verdict = row_key.verdict()
    return F.when(~is_truncate(), verdict) if decoding is not None and decoding.lands_truncates else verdict


def columns_of(target: Sequence[str], key: Mapping[str, Column] | None = None) -> list[Column]:
    """Return the row's fields as columns of their own; those of the `key` are the record's key."""
    of_key = key or {}
    return [of_key.get(name, F.col(ROW)[name]).alias(name) for name in target]


def _row(decoding: Decoding) -> Column:
    value = F.col(decoding.column)
    # Null always; written so that Spark does not see it, which else drops the read from the plan, and fails to observe it.
    nothing = F.when(F.spark_partition_id() < 0, F.from_json(F.lit("{}"), decoding.row_type))
    if decoding.unframed is not None:
        row = decoding.unframed.steps[-1](bytes_of(decoding), *map(F.col, unframed_columns(decoding)))
    elif decoding.batched is not None:
        number = choice(
            decoding, lambda number: F.lit(number).cast("long"), F.lit(None).cast("long"), same=lambda number: number
        )
        row = decoding.batched(body_of(decoding), number)
    else:
        begun = step_columns(decoding)

        def made(number: int) -> Column:
            body = decoding.bodies[number]
            return body.steps[-1](body_of(decoding), *map(F.col, begun.get(body, ())))

        row = choice(decoding, made, nothing, same=lambda number: decoding.bodies[number])
    if decoding.tombstones is Tombstones.NULL_ROW:
        empty = F.from_json(F.lit('{"_decoded":true}'), decoding.row_type)
        row = F.when(value.isNull(), empty).otherwise(row)
    return row


def _schema_id(decoding: Decoding) -> Column:
    nothing = F.lit(None).cast("long")
    if not decoding.has_ids:
        return nothing
    return choice(decoding, lambda number: F.lit(schema_id_of(number)).cast("long"), nothing, same=schema_id_of)
