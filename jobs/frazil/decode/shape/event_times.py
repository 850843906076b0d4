"""The times of events next to their records' times: those beyond the declared bounds, and those that are late."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.declaration.checks.constraints import seconds_of
from frazil.decode.decoded_columns import ROW, SOURCE, writes_row
from frazil.decode.keys.row_key import RowKey
from frazil.errors import InvalidInput
from frazil.schemas.types import Kind, Primitive, Struct

_TIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The bounds of the times in a column, each with its text. A record without a row, time or value is within them.

    `plain` is the path of a masked column in the row of the source, whose times are compared.
    """

    column: str
    oldest: str | None
    newest: str | None
    lateness: str | None
    is_date: bool
    key: RowKey | None
    has_changes: bool
    plain: tuple[str, ...] = ()

    def problem(self) -> Column:
        """Return which bound an event is beyond, null if none. No text of it holds a value of the record."""
        found = F.lit(None).cast("string")
        if self.newest is not None:
            found = F.when(
                self._ahead() > seconds_of(self.newest),
                F.lit(f"{self.column}: more than {self.newest} after the record"),
            )
        if self.oldest is not None:
            before = F.lit(f"{self.column}: more than {self.oldest} before the record")
            found = F.when(-self._ahead() > seconds_of(self.oldest), before).otherwise(found)
        return F.when(writes_row(has_changes=self.has_changes), found)

    def is_late(self) -> Column:
        """Return whether the event of a row is late; never null."""
        if self.lateness is None:
            return F.lit(False)
        is_late = writes_row(has_changes=self.has_changes) & (-self._ahead() > seconds_of(self.lateness))
        return F.coalesce(is_late, F.lit(False))

    def _ahead(self) -> Column:
        """Return how many seconds the event is after its record; null if one of them has no time. No date is too far for it."""
        of_key = self.key.values() if self.key is not None else {}  # the value may lack a column of the key
        value = of_key.get(self.column, F.col(ROW)[self.column])
        if self.plain:  # before masks
            value = F.col(SOURCE)
            for name in self.plain:
                value = value[name]
        of_event = (
            F.unix_date(value) * F.lit(86_400.0) if self.is_date else F.unix_micros(value.cast("timestamp")) / 1e6
        )
        return of_event - F.unix_micros("timestamp") / 1e6


def event_times(
    pipeline: Pipeline, target: Struct, key: RowKey | None, plain: tuple[str, ...] = ()
) -> EventTimes | None:
    """Return the declared bounds over rows of this type; None if none are declared.

    Raises `InvalidInput` if the rows have no such column, or one of another type.
    """
    declared = pipeline.shape.event_time
    if declared is None:
        return None
    types = {field.name: field.type for field in target.fields}
    of = types.get(declared.column)
    if not isinstance(of, Primitive) or of.kind not in _TIMES:
        what = f"{declared.column} is of type {of}" if of is not None else f"there is no column {declared.column}"
        times = [name for name, kind in types.items() if isinstance(kind, Primitive) and kind.kind in _TIMES]
        raise InvalidInput(
            f"{what}, so it is no event time",
            where=f"pipeline {pipeline.name}, shape.event_time",
            do=f"Name a date or a timestamp: {', '.join(times) or 'the rows have none'}",
        )
    bounds = declared.oldest, declared.newest, declared.lateness
    is_date, has_changes = of.kind is Kind.DATE, pipeline.is_change_data
    return EventTimes(declared.column, *bounds, is_date=is_date, key=key, has_changes=has_changes, plain=plain)
