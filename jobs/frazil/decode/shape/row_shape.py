"""The declared shape of rows: the condition that they match, the columns of the table, and the bounds of their event times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.decode.decoded_columns import MATCH, ROW, SOURCE
from frazil.decode.keys.row_key import RowKey
from frazil.decode.shape.event_times import EventTimes, event_times
from frazil.decode.shape.expression_types import named_by_record
from frazil.decode.shape.row_filter import RowFilter, is_filtered, row_filter
from frazil.decode.shape.row_masks import Masks
from frazil.decode.shape.row_route import RowRoute, row_route
from frazil.decode.shape.row_selection import RowSelection, row_selection
from frazil.decode.shape.selection import Selection
from frazil.schemas.json_columns import with_texts
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct


@dataclass(frozen=True, slots=True)
class RowShape:
    """The declared parts of a shape."""

    filter: RowFilter | None = None
    selection: RowSelection | None = None
    times: EventTimes | None = None
    masks: Masks | None = None
    route: RowRoute | None = None

    @property
    def is_observed(self) -> bool:
        """Return whether records are counted by it."""
        return self.filter is not None or self.times is not None

    @property
    def is_divided(self) -> bool:
        """Return whether records may be divided by their types before they are decoded."""
        return self.route is not None and self.route.is_early

    def selected(self, records: DataFrame, made: str, *, once: str) -> DataFrame:
        """Return records that have the column `SOURCE` with their row in the column `made`; others as they are."""
        if self.selection is None:
            return records
        if self.filter is not None:
            records = self.filter.matched(records, once=once)
        return self.selection.applied(records, made, once=once)

    def filtered(self, records: DataFrame, *, once: str) -> DataFrame:
        """Return records with a row, which are not all the same: with `MATCH`, and the rows of deletes."""
        if self.filter is None:
            return records
        if self.selection is None:
            records = self.filter.matched(records, once=once)
        return self.filter.reduced(records, once=once)

    def is_filtered(self) -> Column:
        """Return whether a record does not match; never null."""
        return F.lit(False) if self.filter is None else is_filtered()

    def checks(self, spark: SparkSession | None) -> Iterator[tuple[Column, Reason, Column | None]]:
        """Yield what must hold for a row to be made, never null, the reason if it does not, and what fails, if `spark` is given."""
        if self.route is not None:
            yield self.route.is_routed(), Reason.UNROUTED, None
        if self.filter is not None:
            yield ~self.filter.omits(), Reason.OMITTED_VALUE, None
            failure = F.when(F.col(MATCH).isNull(), self.filter.failure(spark)) if spark is not None else None
            yield F.col(MATCH).isNotNull(), Reason.TRANSFORM_FAILED, failure
        if self.selection is not None:
            yield ~self.selection.omits(), Reason.OMITTED_VALUE, None
            failure = F.when(~self.selection.is_made(), self.selection.failure(spark)) if spark is not None else None
            yield self.selection.is_made(), Reason.TRANSFORM_FAILED, failure
        if self.times is not None:
            beyond = self.times.problem()
            yield beyond.isNull() | self.is_filtered(), Reason.EVENT_TIME, beyond


def row_shape(
    pipeline: Pipeline,
    spark: SparkSession,
    target: Struct,
    key: RowKey | None,
    selection: Selection | None,
    masks: Masks | None,
) -> RowShape:
    """Return the declared shape of rows of the type `target`, which a selection makes of other ones.

    Raises `InvalidInput` if it does not fit them.
    """
    row_type = (with_texts(target), ROW) if selection is None else (selection.source, SOURCE)
    return RowShape(
        filter=row_filter(pipeline, spark, target, key, selection),
        selection=row_selection(pipeline, with_texts(target), key, selection, masks),
        times=event_times(pipeline, target, key, _plain(pipeline, selection)),
        masks=masks,
        route=row_route(pipeline, *row_type, named.names if (named := named_by_record(key)) is not None else ()),
    )


def _plain(pipeline: Pipeline, selection: Selection | None) -> tuple[str, ...]:
    """Return the path of the event time in the row of the source, if masks are declared and it is not an expression."""
    declared = pipeline.shape.event_time
    if declared is None or selection is None or not pipeline.shape.mask:
        return ()
    return next((one.path for one in selection.outputs if one.field.name == declared.column), ())
