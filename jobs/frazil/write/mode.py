"""The seam of write modes: what each of them makes of decoded records. `mode_of` chooses the one of a pipeline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.decode.keys.row_key import RowKey
from frazil.decode.record_decoder import RecordDecoder
from frazil.errors import IncompatibleSchema
from frazil.job.context import JobContext
from frazil.lake.prepared_plan import Observed, Run
from frazil.lake.stage import Staged, TableWriter
from frazil.schemas.evolution.schema_changes import Change, changes
from frazil.schemas.types import Field, Struct
from frazil.upsert.key_changes import KeyChanges
from frazil.upsert.stale_keys import RejectedKeys


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The columns of a table's rows, the same for all batches until the topic's schemas change.

    `columns` are those of the values, `table` are all columns of the table; `key` is that of the rows, None in an append table.
    """

    columns: tuple[str, ...]
    table: Struct
    key: RowKey | None = None

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns of the key, in the order of their ids; none in an append table."""
        return self.key.names if self.key is not None else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The facts of one batch that its rows depend on.

    Staging began `at` this time; the batch has about so many `records`. An operator decided that
    records of a key may be in several partitions (`keys_move`); changes of the batch omit values that it `fills`. Records up to
    the offset `truncated_at` have no effect: the source's table was truncated there, and all rows of before go.
    """

    at: datetime
    records: int
    keys_move: bool = False
    fills: bool = False
    truncated_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """The rows of a batch in files that no snapshot names, and how the records that `landed` took effect.

    `terms` are the terms of `Counts` for that. In an upsert table, `changes` are the keys of the batch, and the `unresolved`
    changes, by partition and offset, omit values that are nowhere. If it `omits_values`, changes omit values for which the batch
    was not staged.
    """

    files: Staged
    landed: int
    terms: Mapping[str, Any]
    changes: KeyChanges | None = None
    unresolved: frozenset[tuple[int, int]] = frozenset()
    omits_values: bool = False

    @property
    def clears(self) -> bool:
        """Return whether all rows of the table go."""
        return self.changes is not None and self.changes.clears


Report = Callable[[str, Mapping[str, Any]], None]
"""Gets `built` or `dropped` of an index of keys, and facts."""


class WriteMode(ABC):
    """A pipeline's write mode, made once a run. Without another answer it is that of a table in which no row depends on another."""

    own: ClassVar[tuple[str, ...]] = ()
    """The names of the columns that a table of this mode may have next to those of its rows."""

    @property
    def deletes_all(self) -> bool:
        """Return whether a truncate of the source's table deletes all rows."""
        return False

    def begin(self, job: JobContext, report: Report) -> None:  # noqa: B027 # most share nothing
        """Make what the batches of one run share."""

    def columns(self, row: Struct) -> tuple[Field, ...]:
        """Return the mode's own columns of a table with such rows. Raises as `check_columns` does."""
        return ()

    def check_columns(self, row: Struct) -> None:  # noqa: B027 # most have no columns
        """Raise `InvalidInput` if the row has a column of one of the names in `own`."""

    def unfit(self, row: Struct, key: Collection[str] = (), order: Collection[str] = ()) -> IncompatibleSchema | None:
        """Return why rows of this version, whose names are the source's, are of no such table; None if they are.

        `key` names the columns of the key, or the fields of the record's key, and `order` those of the order.

        A later version must not end the pipeline: its records are dead letters.
        """
        return None

    @abstractmethod
    def values(self, layout: RowLayout) -> list[Column]:
        """Return the columns that a decoded record has in the table, without those of its place in Kafka."""

    def unplaced(self, problem: Column, layout: RowLayout) -> Column:
        """Return why a record has no place in the table's partitions, by the `problem` that a row with its values has."""
        return problem

    def dropped(self) -> Column:
        """Return whether a record that does not match the declared condition has no effect; asked of such records only."""
        return F.lit(True)

    def needs_rows(self, *, keys_move: bool, fills: bool) -> bool:
        """Return whether what a batch writes depends on the rows in the table, so that those before it must be committed."""
        return False

    def planned(
        self, landed: DataFrame, layout: RowLayout, metadata: Sequence[Column], batch: Batch, observed: Observed
    ) -> DataFrame:
        """Return what `stage` writes of the decoded records that landed; their rows get this `metadata`.

        The plan is run again for other batches that differ in nothing but `at` and their `records`.
        """
        return landed.select(*self.values(layout), *metadata)

    def stage(self, writer: TableWriter, run: Run, layout: RowLayout, batch: Batch) -> StagedRows:
        """Write what is `planned`: here one row for each record. Raises what `stage_changes` raises."""
        files = writer.stage(run.rows, batch.at.timestamp())
        return StagedRows(files=files, landed=files.rows, terms={"written": files.rows})

    def of_rejected(self, decoder: RecordDecoder, key: RowKey | None) -> list[Column]:
        """Return what `rejected_keys` needs of a rejected record, next to its place and reason."""
        return []

    def kept(self, rejected: DataFrame) -> AbstractContextManager[DataFrame]:
        """Keep rejected records as long as both dead letters and `rejected_keys` are made of them."""
        return nullcontext(rejected)

    def rejected_keys(self, kept: DataFrame, key: RowKey | None, after: int | None) -> RejectedKeys | None:
        """Return the keys of the records that `kept` yields, or of those after the offset `after` of the only partition."""
        return None


def without_own(mode: WriteMode, table: Struct) -> Struct:
    """Return a table as far as its rows decide on it."""
    return replace(table, fields=tuple(field for field in table.fields if field.name not in mode.own))


def own_changes(mode: WriteMode, table: Struct, row: Struct) -> tuple[Change, ...]:
    """Return how the mode's columns of an existing table follow: soft deletes may be declared later, and the order may widen."""
    wanted = Struct(mode.columns(row))
    there = Struct(tuple(field for field in table.fields if field.name in mode.own))
    return tuple(change for change in changes(there, wanted) if wanted.fields)
