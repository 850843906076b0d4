"""The rows that a topic's schemas describe, and those that are made of them where columns are declared."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from frazil.declaration import Pipeline, Shape
from frazil.declaration.checks.column_rules import is_reserved
from frazil.declaration.options import SchemaEvolution
from frazil.decode.decoded_columns import ROW
from frazil.decode.shape.event_times import event_times
from frazil.decode.shape.row_filter import check_condition, check_fields
from frazil.decode.shape.row_masks import check_aliases, of_fields
from frazil.decode.shape.row_route import row_route
from frazil.decode.shape.selection import Selection, check_key, readable, selection
from frazil.decode.spark_types import spark_struct
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.ingest.setup.existing_table import layout_of
from frazil.ingest.setup.mask_notes import Notes, check_notes, note
from frazil.ingest.setup.table_masks import check_masked_key
from frazil.job.context import JobContext
from frazil.lake.layout import Layout, shapes
from frazil.schemas.evolution.table_mapping import Landing, landing
from frazil.schemas.json_columns import with_texts, with_variants
from frazil.schemas.types import Struct

SELECTED = -2
"""The number of the declared columns among the versions of a table's rows; schema ids are not negative."""
_NOTHING = Struct(())
Versions = tuple[tuple[int, Struct], ...]
Unfit = Mapping[int, IncompatibleSchema]


class SourceRows:
    """The versions of the rows that a table gets: those of the writers, or one of the declared columns, typed on all of them."""

    def __init__(
        self,
        pipeline: Pipeline,
        job: JobContext,
        writers: WriterSchemas,
        key_fields: Callable[[], Struct | None],
        table: Callable[[], Struct],
    ) -> None:
        self._pipeline, self._job, self._writers = pipeline, job, writers
        self._key_fields, self._table = key_fields, table
        self._typed: tuple[object, object, Selection | None, Unfit] = None, None, None, {}

    @property
    def needs_none(self) -> bool:
        """True if the table of a topic's other types can be made before one of them has a schema: nothing names a column."""
        route, table = self._pipeline.shape.route, self._pipeline.table
        if route is None or not route.new_types or route.types or self._pipeline.write.has_key:
            return False
        named = [one.source for one in table.partition_fields] + [one.source for one in table.sort_fields]
        is_plain = Shape(route=route, dead_letters=self._pipeline.shape.dead_letters) == self._pipeline.shape
        return is_plain and all(is_reserved(name.partition(".")[0]) for name in named)

    def versions(self, key: Callable[[], Struct | None]) -> tuple[tuple[int, Struct], ...]:
        """Return the versions, oldest first; none if no schema is known. Expressions may read the fields of the record's `key`.

        Raises `InvalidInput` if the declared columns do not fit the rows, and `MasksDiffer` if the table's key has other masks.
        """
        made = self.selection(key)
        found = self._writers.versions if made is None else ((SELECTED, made.row),)
        return tuple((n, with_variants(row)) for n, row in found) if self._pipeline.table.has_variants else found

    def selection(self, key: Callable[[], Struct | None]) -> Selection | None:
        """Return the declared columns; None if there are none, or if no schema is known. Raises as `versions` does."""
        versions = self._writers.versions
        if not versions or not (self._pipeline.shape.selected or self._pipeline.is_change_data):
            return None
        fields = key()
        if self._typed[:2] != (versions, fields):
            self._typed = versions, fields, *self._fitting(versions, fields)
        return self._typed[2]

    def _fitting(self, versions: Versions, fields: Struct | None) -> tuple[Selection | None, Unfit]:
        """Return the declared columns of the versions that fit the table together, and why the others do not.

        A column that was made of something else before is for the declaration to change: then all versions are returned.
        """
        made, unfit = self._made(versions, fields)
        if made is None or (problem := self._misfit(made)) is None:
            return made, unfit
        wrong = [one for one in made.outputs if self._misfit(replace(made, outputs=(one,))) is not None]
        if not all(one.is_kept for one in wrong):
            return made, unfit
        lengths = range(1, len(versions))
        fit = versions[: bisect_left(lengths, True, key=lambda n: self._problem(versions[:n], fields) is not None)]
        others = dict[int, IncompatibleSchema]()
        for one in versions[len(fit) :]:
            if (found := self._problem((*fit, one), fields)) is not None:
                others[one[0]] = found
            else:
                fit = (*fit, one)
        if not fit:  # nothing is decoded, so the columns are those that fit
            made = replace(made, outputs=tuple(one for one in made.outputs if one not in wrong))
            return made, dict.fromkeys((number for number, _ in versions), problem)
        made, unfit = self._made(fit, fields)
        return made, {**unfit, **others}

    def _problem(self, versions: Versions, fields: Struct | None) -> IncompatibleSchema | None:
        """Return why the last of these versions does not fit the others, or why all together do not fit the table."""
        try:
            made, unfit = self._made(versions, fields)
        except InvalidInput:  # a field that the shape names is in a later version, or in none, which is said at the end
            return None
        return unfit.get(versions[-1][0]) or self._misfit(made)

    def _misfit(self, made: Selection | None) -> IncompatibleSchema | None:
        """Return why the declared columns do not fit an existing table."""
        table, evolution = self._table(), self._pipeline.table.schema_evolution
        if made is None or not table.fields:
            return None
        row = with_variants(made.row) if self._pipeline.table.has_variants else made.row
        may_add, may_widen = evolution is not SchemaEvolution.FREEZE, evolution is SchemaEvolution.WIDEN
        return landing(table, ((SELECTED, row),), may_add=may_add, may_widen=may_widen).incompatible.get(SELECTED)

    def _made(self, versions: Versions, fields: Struct | None) -> tuple[Selection | None, Unfit]:
        """Return the declared columns of versions, and why some do not fit the others."""
        source = landing(_NOTHING, versions)
        return self._selection(source, versions, fields), source.incompatible

    def _selection(self, source: Landing, versions: Versions, fields: Struct | None) -> Selection | None:
        pipeline, table = self._pipeline, self._table()
        layout = layout_of(self._job.iceberg, pipeline) if table.fields else None
        had = shapes(layout) if layout is not None else []
        if not pipeline.shape.selected and not any(shape.get("select") or shape.get("mask") for shape in had):
            return None
        rows = (row for number, row in versions if number not in source.incompatible)
        check_aliases(rows, of_fields(pipeline.shape.masks), f"pipeline {pipeline.name}, shape.mask")
        made = selection(pipeline, self._job.spark, with_texts(source.target), fields, table, had)
        if layout is not None:
            check_masked_key(pipeline, made, layout)
        return made

    def check(self, row: Struct, key: Callable[[], Struct | None]) -> None:
        """Raise `InvalidInput` if the declared shape does not fit the `row` of a table that is to be made."""
        made = self.selection(key)
        self._check_key(made)
        shape, fields = self._pipeline.shape, key()
        if not shape.where and not shape.event_time and not shape.route:
            return
        of_key = [field.name for field in fields.fields] if fields is not None else []
        row_route(self._pipeline, row if made is None else made.source, ROW, of_key)
        source = row if made is None else readable(made.source, fields)
        check_condition(self._pipeline, self._job.spark, spark_struct(source))
        event_times(self._pipeline, row, None)

    def decoded(self, landed: Landing, made: Selection | None) -> tuple[Struct, Unfit]:
        """Return the rows that are decoded for a landing, and the writers that do not fit them.

        Raises `IncompatibleSchema` if the declared columns do not fit the table, and `InvalidInput` if the newest version lost a
        field of the condition.
        """
        unfit, fields = landed.incompatible if made is None else self._typed[3], self._key_fields()
        if not self._writers.is_in_records:
            fit = [(number, row) for number, row in self._writers.versions if number not in unfit]
            source = landed.target if made is None else made.source
            check_fields(self._pipeline, self._job.spark, fit, source, fields, self._table())
        if made is None:
            return landed.target, landed.incompatible
        self._check_key(made)
        if SELECTED in landed.incompatible:
            raise landed.incompatible[SELECTED]
        return made.source, unfit

    def check_masks(self, key: Callable[[], Struct | None]) -> None:
        """Raise what `check_notes` raises if values without their mask would land in the table as it is."""
        self._notes(key)

    @contextlib.contextmanager
    def noted(self, key: Callable[[], Struct | None]) -> Iterator[None]:
        """Check masks before and after the table changes, and note then which of its columns are masked."""
        self._notes(key)
        yield
        if (found := self._notes(key)) is not None:
            note(self._pipeline, self._job, *found)

    def _notes(self, key: Callable[[], Struct | None]) -> tuple[Layout, Notes] | None:
        made = self.selection(key) if self._pipeline.shape.mask else None
        if made is None:
            return None
        actual = layout_of(self._job.iceberg, self._pipeline)
        refused = [row for number, row in self._writers.versions if number in self._typed[3]]
        return actual, check_notes(self._pipeline, actual, made, refused)

    def _check_key(self, made: Selection | None) -> None:
        if made is not None and self._pipeline.shape.mask and (fields := self._key_fields()) is not None:
            check_key(self._pipeline, made, fields)
