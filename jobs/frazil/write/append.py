"""Append: each record is one more row, and the table only grows."""

from __future__ import annotations

from contextlib import nullcontext

from pyspark.sql import Column, DataFrame

from frazil.decode.keys.row_key import RowKey
from frazil.decode.record_decoder import RecordDecoder, columns_of
from frazil.errors import IncompatibleSchema
from frazil.job.context import JobContext
from frazil.lake.stage import TableWriter
from frazil.schemas.types import Field, Struct
from frazil.write.mode import Batch, Report, RowLayout, StagedRows


class AppendMode:
    """See `WriteMode`. No row depends on another, so this mode has no columns, keys or deletes."""

    own: tuple[str, ...] = ()
    deletes_all = False

    def begin(self, job: JobContext, report: Report) -> None:
        """Do nothing: batches share nothing."""

    def columns(self, row: Struct) -> tuple[Field, ...]:
        """Return no column."""
        return ()

    def check_columns(self, row: Struct) -> None:
        """Accept each name."""

    def unfit(self, row: Struct) -> IncompatibleSchema | None:
        """Accept each version."""
        return None

    def values(self, layout: RowLayout) -> list[Column]:
        """Return the columns of the value."""
        return columns_of(layout.columns)

    def unplaced(self, problem: Column, layout: RowLayout) -> Column:
        """Return the problem: each record that lands is a row."""
        return problem

    def needs_rows(self, *, keys_move: bool, fills: bool) -> bool:
        """Return False."""
        return False

    def stage(self, writer: TableWriter, landed: DataFrame, layout: RowLayout, batch: Batch) -> StagedRows:
        """Write each record as a row."""
        return stage_each(writer, landed, self.values(layout), batch)

    def kept(self, rejected: DataFrame, decoder: RecordDecoder, key: RowKey | None) -> nullcontext[DataFrame]:
        """Return the records: they are read once."""
        return nullcontext(rejected)

    def rejected_keys(self, kept: DataFrame, key: RowKey | None, behind: int | None) -> None:
        """Return None: no later record depends on a rejected one."""


def stage_each(writer: TableWriter, landed: DataFrame, values: list[Column], batch: Batch) -> StagedRows:
    """Write each record that landed as a row of these values."""
    files = writer.stage(landed.select(*values, *batch.metadata), batch.at.timestamp())
    return StagedRows(files=files, landed=files.rows, terms={"written": files.rows})
