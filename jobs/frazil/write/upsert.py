"""Upsert: the table has one row for each key, that of the key's last record."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.declaration import Pipeline, Upsert
from frazil.declaration.envelopes import added_columns
from frazil.declaration.write_modes import deletes_all, marks_deletes, remembered_seconds
from frazil.decode import decoded_columns
from frazil.decode.decoded_columns import ROW
from frazil.decode.keys.row_key import RowKey
from frazil.decode.record_decoder import RecordDecoder, columns_of
from frazil.decode.spark_types import spark_type
from frazil.job.context import JobContext
from frazil.lake.prepared_plan import Observed, Run
from frazil.lake.stage import TableWriter
from frazil.schemas.metadata import DELETED_AT, OF_STATES, ORDER
from frazil.schemas.types import Field, Struct
from frazil.upsert.fold import Rules
from frazil.upsert.index_resolver import IndexResolver
from frazil.upsert.key_changes import UpsertBatch
from frazil.upsert.resolver_protocol import IS_DELETE, OMITTED, KeyPositionResolver
from frazil.upsert.scan_resolver import ScanResolver
from frazil.upsert.staged_changes import folded, stage_changes
from frazil.upsert.stale_keys import REJECTED_KEY, RejectedKeys, kept, keys_of
from frazil.write.keyed import KeyedMode
from frazil.write.mode import Batch, Report, RowLayout, StagedRows

_BEFORE = "before"
"""Name of the count of records before a truncate."""


class UpsertMode(KeyedMode):
    """See `WriteMode`. A batch is folded to one change for each key, and the old rows of these keys are deleted."""

    own, tables = OF_STATES, "upsert tables"

    def __init__(self, pipeline: Pipeline, write: Upsert) -> None:
        super().__init__(pipeline)
        self._write, self._is_soft = write, marks_deletes(write)
        self.resolver: KeyPositionResolver | None = None

    @property
    def deletes_all(self) -> bool:
        """See `WriteMode`."""
        return deletes_all(self._write)

    def begin(self, job: JobContext, report: Report) -> None:
        """Find keys by an index, as soon as it pays; a batch that depends on more of its rows than their place scans the table."""
        if not self._rules().need_rows:
            scan = ScanResolver(job.iceberg, self._pipeline.table.identifier)
            self.resolver = IndexResolver(scan, job, report)

    def columns(self, row: Struct) -> tuple[Field, ...]:
        """Return the order, and when a row was deleted."""
        return (*super().columns(row), *([DELETED_AT] if self._is_soft else []))

    def values(self, layout: RowLayout) -> list[Column]:
        """Return the columns of the key and the value, the order, and when the row was deleted.

        A record that deletes its row has the time of its change in the source, if that is known; else it gets its own when folded.
        """
        key, types = _key(layout), {field.name: field.type for field in layout.table.fields}
        found = columns_of(layout.columns, key.values())
        if key.order is not None:
            found.append(key.order.value(key.values()).cast(spark_type(types[ORDER])).alias(ORDER))
        if DELETED_AT.name in types:
            at = F.when(self.deletes(), F.col(ROW)[decoded_columns.CHANGED_AT]) if key.has_changes else F.lit(None)
            found.append(at.cast(spark_type(DELETED_AT.type)).alias(DELETED_AT.name))
        return found

    def unplaced(self, problem: Column, layout: RowLayout) -> Column:
        """Return the problem, without that of a delete which has no row."""
        return problem if self._is_soft else F.when(~self.deletes(), problem)

    def needs_rows(self, *, keys_move: bool, fills: bool) -> bool:
        """Return whether rows are ordered, kept as deleted, or filled."""
        return self._rules(keys_move=keys_move, fills=fills).need_rows

    def _rules(self, *, keys_move: bool = False, fills: bool = False) -> Rules:
        ordered = bool(self._write.order_columns)
        return Rules(
            ordered=ordered,
            soft=self._is_soft,
            moved=keys_move and not ordered,
            fills=fills,
            about=added_columns(self._pipeline.envelope),
            remember_us=remembered_seconds(self._write) * 1_000_000,
        )

    def planned(
        self, landed: DataFrame, layout: RowLayout, metadata: Sequence[Column], batch: Batch, observed: Observed
    ) -> DataFrame:
        """Fold the records to the last one of each key; see `folded`."""
        key = _key(layout)
        if batch.truncated_at is not None:
            is_after = F.col("offset") > batch.truncated_at
            landed = landed.observe(observed(_BEFORE), F.count_if(~is_after).alias("records")).where(is_after)
        marks = [self.deletes().alias(IS_DELETE)]
        if key.has_changes:
            marks.append(F.col(ROW)[decoded_columns.UNAVAILABLE].alias(OMITTED))
        changed = landed.select(*self.values(layout), *metadata, *marks)
        return folded(changed, key.names, self._facts(batch), observed)

    def _facts(self, batch: Batch) -> UpsertBatch:
        rules = self._rules(keys_move=batch.keys_move, fills=batch.fills)
        clears = batch.truncated_at is not None
        return UpsertBatch(at=batch.at.timestamp(), records=batch.records, rules=rules, clears=clears)

    def stage(self, writer: TableWriter, run: Run, layout: RowLayout, batch: Batch) -> StagedRows:
        """Write the rows of the folded records; see `stage_changes`."""
        facts = self._facts(batch)
        if facts.rules.need_rows:
            self.resolver = None  # an index is of no use any more
        staged = stage_changes(writer, run, _key(layout).names, facts, self.resolver)
        count = staged.records + (int(run.observed(_BEFORE)["records"] or 0) if facts.clears else 0)
        return StagedRows(
            files=staged.files,
            landed=count,
            terms=staged.terms(count),
            changes=staged.changes,
            unresolved=staged.unresolved,
            omits_values=bool(staged.omitted) and not batch.fills,
        )

    def of_rejected(self, decoder: RecordDecoder, key: RowKey | None) -> list[Column]:
        """Return the key that its row would have."""
        assert key is not None
        return [decoder.key_of_rejected(key).alias(REJECTED_KEY)]

    def kept(self, rejected: DataFrame) -> AbstractContextManager[DataFrame]:
        """Keep the records with their keys: these and the dead letters are of one reading of the topic."""
        return kept(rejected)

    def rejected_keys(self, kept: DataFrame, key: RowKey | None, after: int | None) -> RejectedKeys | None:
        """See `WriteMode`: keys whose newest record was rejected are counted as stale."""
        assert key is not None
        return keys_of(kept, key, after=after)


def _key(layout: RowLayout) -> RowKey:
    assert layout.key is not None
    return layout.key
