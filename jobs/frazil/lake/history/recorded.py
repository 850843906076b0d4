"""What a history has recorded of its state, read from the table, and what its next commit says."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID, uuid5

from frazil.lake import ledger
from frazil.lake.commit.entries import entry
from frazil.lake.history.history_ledger import ACCOUNT, OF_SEQUENCE, OF_SNAPSHOT, HistoryAccount, Recorded
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.lineage import ancestors
from frazil.lake.offsets import canonical

_NAMESPACE = UUID("0f6c1f0e-5a0b-4b33-9d7e-6f2f6f8a1c55")


def recorded(history: Java, pipeline: str) -> Recorded | None:
    """Return the newest commit of a loaded history; None if it has none."""
    newest = entry(history, pipeline)
    return Recorded.of(newest) if newest is not None else None


def kept_from(iceberg: Iceberg, state: Java, history: str, pipeline: str) -> int | None:
    """Return the sequence number from which on the state's snapshots must stay, as its history may not have their changes yet.

    None if there is no history of this very table: then none has to stay. After a rollback all have to: the history is set back to
    one that the state still has.
    """
    if not iceberg.exists(history):
        return None
    newest = recorded(iceberg.load(history), pipeline)
    if newest is None or newest.table_uuid != str(state.uuid()):
        return None
    head = state.currentSnapshot()
    behind = ancestors(state, int(head.snapshotId())) if head is not None else ()
    is_there = any(int(snapshot.snapshotId()) == newest.snapshot_id for snapshot in behind)
    return newest.sequence if is_there else 0


def summary(
    job_run: str,
    version: str,
    pipeline: str,
    of: Mapping[str, str],
    account: HistoryAccount,
    *,
    state: Java,
    at: tuple[int, int],
) -> dict[str, str]:
    """Return the summary of a commit that follows the state up to the snapshot `at`: its id and sequence number.

    `of` are the offsets of that snapshot.
    """
    snapshot_id, sequence = at
    return {
        **of,
        ledger.FORMAT: ledger.FORMAT_VERSION,
        ledger.PIPELINE: pipeline,
        ledger.COMMIT_ID: str(uuid5(_NAMESPACE, canonical([pipeline, str(state.uuid()), str(snapshot_id)]))),
        ledger.RUN: job_run,
        ledger.VERSION: version,
        ledger.TABLE: str(state.uuid()),
        OF_SNAPSHOT: str(snapshot_id),
        OF_SEQUENCE: str(sequence),
        ACCOUNT: str(account),
    }
