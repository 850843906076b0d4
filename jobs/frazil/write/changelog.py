"""Changelog: each record is one more row, which says what it changed, and when."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.declaration.envelopes import BEFORE_COLUMN
from frazil.decode import decoded_columns
from frazil.decode.decoded_columns import ROW, WRITE_KIND, is_truncate
from frazil.decode.record_decoder import columns_of
from frazil.decode.spark_types import spark_type
from frazil.envelopes.rows_before import may_be_invented
from frazil.schemas.metadata import CHANGED_AT, OF_CHANGELOGS, OP, ORDER, UNAVAILABLE
from frazil.schemas.types import Field, ListOf, MapOf, Primitive, Struct
from frazil.write.keyed import KeyedMode
from frazil.write.mode import RowLayout

_WRITE, _DELETE, _TRUNCATE = "w", "d", "t"  # of `_op`, next to the kinds of a write that a source names


class ChangelogMode(KeyedMode):
    """See `WriteMode`. Rows are appended as in an append table; their own columns say what each changed."""

    own, tables = OF_CHANGELOGS, "changelogs"

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        self._fields = [OP, CHANGED_AT, *([UNAVAILABLE] if pipeline.is_change_data else [])]

    def columns(self, row: Struct) -> tuple[Field, ...]:
        """Return the order, and the columns that say what a record did."""
        return (*super().columns(row), *self._fields)

    def dropped(self) -> Column:
        """See `WriteMode`: an insert, or a row of a snapshot, that does not match was in no table before."""
        if not self._pipeline.is_change_data:
            return F.lit(False)
        return F.coalesce(F.col(ROW)[WRITE_KIND].isin("c", "r"), F.lit(False))

    def values(self, layout: RowLayout) -> list[Column]:
        """Return the columns of the value, and those that say what the record did.

        A value that the source omits is null, and `_unavailable` names its column: a placeholder is no value of the row. The row
        before a delete is null if all that it has next to the key may be invented.
        """
        key, columns, found = layout.key, layout.columns, list[Column]()
        assert key is not None
        types = {field.name: field.type for field in layout.table.fields}
        row, omitted = F.col(ROW), F.col(ROW)[decoded_columns.UNAVAILABLE] if key.has_changes else None
        for name, value in zip(columns, columns_of(columns, key.values()), strict=True):
            if omitted is not None and isinstance(types[name], ListOf | MapOf | Primitive) and name not in key.names:
                is_known = omitted.isNull() | ~F.array_contains(omitted, name)
                value = F.when(is_known, value).alias(name)
            if name == BEFORE_COLUMN and key.before and isinstance(image := types[name], Struct):
                is_invented = self.deletes() & may_be_invented(row[name], image, [held for _, held in key.before])
                value = F.when(~is_invented, value).alias(name)
            found.append(value)
        if key.order is not None:
            found.append(key.order.value(key.values()).cast(spark_type(types[ORDER])).alias(ORDER))
        kind, at = F.lit(_WRITE), F.col("timestamp")
        if omitted is not None:
            kind = F.when(is_truncate(), _TRUNCATE).otherwise(F.coalesce(row[decoded_columns.WRITE_KIND], kind))
            at = F.coalesce(row[decoded_columns.CHANGED_AT], at)
            found.append(omitted.alias(UNAVAILABLE.name))
        found.append(F.when(self.deletes(), _DELETE).otherwise(kind).alias(OP.name))
        return [*found, F.coalesce(at, F.timestamp_seconds(F.lit(0))).alias(CHANGED_AT.name)]
