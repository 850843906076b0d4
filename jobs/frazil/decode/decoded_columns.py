"""The columns that decoding makes: their names, and what they say of a record."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.envelopes.envelope import Operation
from frazil.schemas.types import Field, Kind, ListOf, Primitive

ROW, SCHEMA_ID, REASON, KEY = "_frazil_row", "_frazil_schema_id", "_frazil_reason", "_frazil_key"
SOURCE, MASKED, SELECTED = "_frazil_source", "_frazil_masked", "_frazil_selected"
"""The row before the declared columns are made of it, the same with masks, and the columns that are computed."""
MATCH = "_frazil_match"  # whether the declared condition holds for a row: a struct, null if it fails
ELSEWHERE = "_frazil_elsewhere"  # whether a record is another table's
DETAIL = "_frazil_detail"  # what the reason is about, such as a column; null if it is about none
UNKNOWN, UNKNOWN_KEY = "_frazil_unknown", "_frazil_unknown_key"
WAITING, WAITING_KEY = "_frazil_waiting", "_frazil_waiting_key"
OPERATION, CHANGED_AT, UNAVAILABLE = "_frazil_operation", "_frazil_changed_at", "_frazil_unavailable"
WRITE_KIND = "_frazil_write_kind"
CHANGE = (
    Field(OPERATION, Primitive(Kind.STRING)),
    Field(WRITE_KIND, Primitive(Kind.STRING)),
    Field(CHANGED_AT, Primitive(Kind.TIMESTAMPTZ)),
    Field(UNAVAILABLE, ListOf(Primitive(Kind.STRING))),
)
"""Fields that a row from an envelope has next to its columns: the operation and its kind, its time, columns without their value."""
DECODED = "_decoded"  # the last field of a row: true exactly when the record could be decoded, else null


def schema_id_of(number: int) -> int:
    """Return the schema id of a writer's number: its lower 32 bits. The upper bits number the schema's type."""
    return number & 0xFFFF_FFFF


def is_truncate() -> Column:
    """Return whether a decoded change is a truncate."""
    return F.coalesce(F.col(ROW)[OPERATION] == Operation.TRUNCATE.value, F.lit(False))


def is_delete(*, has_changes: bool) -> Column:
    """Return whether a record that landed deletes its row: it has no value, or is a change that does."""
    has_no_value = F.col("value").isNull()
    if not has_changes:
        return has_no_value
    return has_no_value | F.coalesce(F.col(ROW)[OPERATION] == Operation.DELETE.value, F.lit(False))


def writes_row(*, has_changes: bool, row: str = ROW) -> Column:
    """Return whether a record was decoded, has a value, and writes a row; never null."""
    is_write = F.coalesce(F.col(row)[DECODED], F.lit(False)) & F.col("value").isNotNull()
    if has_changes:
        is_write &= F.coalesce(F.col(row)[OPERATION] == Operation.WRITE.value, F.lit(False))
    return is_write


def without(records: DataFrame, column: str, is_null: Column) -> DataFrame:
    """Return the records with no value where JSON says null; `as_read` still has it."""
    kept = {} if _as_read(column) in records.columns else {_as_read(column): F.col(column)}
    return records.withColumns({**kept, column: F.when(~is_null, F.col(column))})


def as_read(records: DataFrame, column: str) -> Column:
    """Return the bytes of a key or value as Kafka holds them: of a dead letter, JSON's null included."""
    return F.col(_as_read(column) if _as_read(column) in records.columns else column)


def _as_read(column: str) -> str:
    return f"_frazil_{column}_as_read"
