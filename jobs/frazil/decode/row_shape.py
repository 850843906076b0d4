"""The declared shape of rows: the condition that they match, and the bounds of their event times."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from frazil.declaration import Pipeline
from frazil.decode.event_times import EventTimes, event_times
from frazil.decode.keys.row_key import RowKey
from frazil.decode.row_filter import RowFilter, row_filter
from frazil.schemas.types import Struct


@dataclass(frozen=True, slots=True)
class RowShape:
    """What is declared of it."""

    filter: RowFilter | None = None
    times: EventTimes | None = None

    @property
    def is_declared(self) -> bool:
        """Return whether anything is."""
        return self.filter is not None or self.times is not None


def row_shape(pipeline: Pipeline, spark: SparkSession, target: Struct, key: RowKey | None) -> RowShape:
    """Return the declared shape of rows of this type. Raises `InvalidInput` if it does not fit them."""
    times = event_times(pipeline, target, key)
    return RowShape(row_filter(pipeline, spark, target, key), times)
