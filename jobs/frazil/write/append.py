"""Append: each record is one more row, and the table only grows."""

from __future__ import annotations

from pyspark.sql import Column

from frazil.decode.record_decoder import columns_of
from frazil.write.mode import RowLayout, WriteMode


class AppendMode(WriteMode):
    """See `WriteMode`. No row depends on another, so this mode has no columns, keys or deletes."""

    def values(self, layout: RowLayout) -> list[Column]:
        """Return the columns of the value."""
        return columns_of(layout.columns)
