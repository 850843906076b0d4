"""Rows and deletes as one change of an open transaction, with every validation that Iceberg has."""

from __future__ import annotations

from typing import Protocol

from frazil.lake.delete_files.staged_deletes import StagedDeletes
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount, StaleKeys
from frazil.lake.ledger.remembered_deletes import RememberedDeletes


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
