"""Tombstones, records without a value: their reason where they are no row, and their row of nulls where they are one.

In a keyed table that row is a delete (`decoded_columns.is_delete`); `ingest.batch.record_counts.skips` lets them go where that is
declared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.options import Tombstones
from frazil.schemas.reasons import Reason

if TYPE_CHECKING:
    from frazil.decode.decoder import Side


def tombstone(value: Column) -> Column:
    """Return the reason of a record without a value, to which `when` adds those of other records."""
    return F.when(value.isNull(), Reason.TOMBSTONE.value)


def with_row_of_nulls(row: Column, side: Side, tombstones: Tombstones) -> Column:
    """Return `row`, and for a tombstone a row whose columns are all null, if the declaration lands it as one."""
    if tombstones is not Tombstones.NULL_ROW:
        return row
    return F.when(side.bytes.isNull(), side.row_of_nulls()).otherwise(row)
