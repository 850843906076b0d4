"""Values that are JSON's null. Kafka Connect's JSON converters write one where a record has a schema and no value.

Such is a delete of `ExtractNewRecordState`. Other formats have no value then.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.declaration.options import ValueFormat

_SPACE = r"[ \t\r\n]*"
_NULLS = {
    ValueFormat.JSON: f"^{_SPACE}null{_SPACE}$",
    ValueFormat.CONNECT_JSON: rf'"payload"{_SPACE}:{_SPACE}null{_SPACE}\}}{_SPACE}$',
    ValueFormat.JSON_SCHEMA: r"(?s)^(\x00.{1,4})?null$",  # four bytes of a frame are as many characters, or fewer
}
_END = 64
"""So many bytes at the end of a value are looked at; the payload is the last member that the converter writes."""


def pattern_of(value_format: object) -> str:
    """Return the pattern of null in this format, empty if it has none."""
    return _NULLS.get(value_format, "") if isinstance(value_format, ValueFormat) else ""


def without_nulls(records: DataFrame, column: str, pattern: str) -> DataFrame:
    """Return the records with no value where it is JSON's null."""
    value = F.col(column)
    is_short = F.lit(True) if pattern.endswith("}" + _SPACE + "$") else F.length(value) <= _END
    is_null = is_short & F.substring(value, -_END, _END).cast("string").rlike(pattern)
    return records.withColumn(column, F.when(~is_null, value))
