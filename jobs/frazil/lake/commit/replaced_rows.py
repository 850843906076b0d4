"""The search for the rows that a batch replaces: on the head of each try to commit it, and what its failures mean."""

from __future__ import annotations

from typing import Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException

from frazil.errors import CommitRefused
from frazil.errors.causes import Failure
from frazil.lake.commit.table_state import TableState
from frazil.lake.delete_files.staged_deletes import StagedDeletes
from frazil.lake.iceberg_java import failure_of, said, thrown
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount, StaleKeys
from frazil.lake.ledger.remembered_deletes import RememberedDeletes

REFUSALS = frozenset({"ValidationException", "IllegalArgumentException"})
"""Java's exceptions for a change that does not fit the table; also if another commit came after the search for rows."""
_OF_JOBS = frozenset({"SparkException", "SparkOutOfMemoryError", "OutOfMemoryError"})


class SearchFailed(Exception):
    """The Spark job that searches the rows failed on a head on which it had failed before.

    So no other commit was the reason. `error` is what Spark threw.
    """

    def __init__(self, error: Py4JJavaError | PySparkException) -> None:
        super().__init__(str(error))
        self.error = error


class ReplacedRows:
    """The rows that a batch replaces, for one call of `commit`; `changes` is None for a batch that only adds rows."""

    def __init__(self, changes: RowChanges | None, table: str) -> None:
        self._changes, self._table = changes, table
        self._refused: set[int | None] = set()  # heads on which Iceberg refused
        self._failed: set[int] = set()  # heads on which the job failed

    def on(self, table: Java, state: TableState) -> StagedDeletes | None:
        """Return the deletes on the head of `state`. Raises `SearchFailed`, and what `RowChanges.on` and `check` raise."""
        if self._changes is None or state.head is None:
            return None
        try:
            deletes = self._changes.on(table, state.head, state.last)
        except (Py4JJavaError, PySparkException) as error:
            if not _is_of_a_job(error):
                raise
            self._changes.forget()
            if state.head in self._failed:
                raise SearchFailed(error) from error
            self._failed.add(state.head)
            raise
        self._changes.check(deletes)
        return deletes

    def again(self, table: Java, state: TableState) -> StagedDeletes | None:
        """Return the deletes on the same head in new files, as the files of `on` are gone; raises what `on` raises."""
        if self._changes is not None:
            self._changes.forget()
        return self.on(table, state)

    def after(self, error: Py4JJavaError | PySparkException, state: TableState | None) -> str:
        """Have the rows searched again, as another commit may have come in between; return the failure in words.

        Outages and conflicts are retried. Raises `CommitRefused` for any other failure that comes twice on one head, and at once
        for a refusal of a commit without deletes, which no other commit causes.
        """
        failure, kind = said(error), failure_of(error)
        if kind.is_outage or kind is Failure.CONFLICT:
            return failure
        if isinstance(error, PySparkException) and _is_of_a_job(error):
            if self._changes is None:
                raise error  # a batch that only adds rows has no job here
            return failure
        head = state.head if state is not None else None
        is_refusal = isinstance(error, PySparkException) or thrown(error) in REFUSALS
        if head in self._refused or (self._changes is None and is_refusal):
            raise CommitRefused(
                f"the commit was refused: {failure}",
                where=f"table {self._table}",
                do="Nothing was added, and the same would be refused again. Correct what the cause names, then run again",
            ) from None
        self._refused.add(head)
        if self._changes is not None:
            self._changes.forget()
        return failure


def _is_of_a_job(error: Py4JJavaError | PySparkException) -> bool:
    """Return whether a Spark job failed, or was not planned; else Iceberg refused."""
    if isinstance(error, Py4JJavaError):
        return thrown(error) in _OF_JOBS
    return not isinstance(error, IllegalArgumentException)


class RowChanges(Protocol):
    """Rows that a commit takes away; `KeyChanges` finds them by key."""

    @property
    def remembered(self) -> RememberedDeletes | None:
        """The deleted keys that the table remembers after the commit; None if it leaves them as they were."""

    @property
    def stale(self) -> StaleKeys | None:
        """The keys whose newest record was rejected, after the commit; None if it leaves them as they were."""

    def on(self, table: Java, head: int, last: Entry | None, /) -> StagedDeletes:
        """Return the deletes, which fit this head only; `last` is the newest entry that it has."""

    def check(self, deletes: StagedDeletes, /) -> None:
        """Raise if the rows that they delete must not be replaced by this batch."""

    def account(self, before: KeyAccount, deletes: StagedDeletes, records: int, /) -> KeyAccount:
        """Return the account of the table's keys after the commit."""

    def forget(self) -> None:
        """Make them again at the next call."""


def row_delta(transaction: Java, deletes: StagedDeletes) -> Java:
    """Return a row delta with the deletes; the caller adds the rows and commits it.

    The validations alone are not enough: the caller compares the head with that of the deletes, and moves a tag in the same
    transaction, so that any commit in between is refused.
    """
    delta = transaction.newRowDelta()
    for file in deletes.added:
        delta.addDeletes(file)
    for file in deletes.removed:
        delta.removeDeletes(file)
    delta.validateFromSnapshot(
        deletes.snapshot_id
    )  # else version 3 looks at all of history, and refuses merged vectors
    delta.validateDataFilesExist(list(deletes.referenced))
    delta.validateDeletedFiles().validateNoConflictingDeleteFiles().validateNoConflictingDataFiles()
    return delta
