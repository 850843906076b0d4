"""What a history has recorded of its state, read from the table, and what its next commit says."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID, uuid5

from frazil.lake import ledger
from frazil.lake.commit.entries import entry
from frazil.lake.history.history_ledger import ACCOUNT, OF_SEQUENCE, OF_SNAPSHOT, HistoryAccount, Recorded
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.offsets import canonical

_NAMESPACE = UUID("0f6c1f0e-5a0b-4b33-9d7e-6f2f6f8a1c55")


def recorded(history: Java, pipeline: str) -> Recorded | None:
    """Return the newest commit of a loaded history; None if it has none."""
    newest = entry(history, pipeline)
    return Recorded.of(newest) if newest is not None else None


def kept_from(iceberg: Iceberg, state: Java, history: str, pipeline: str) -> int | None:
    """Return the sequence number from which on the state's snapshots must stay, as its history may not have their changes yet.

    None if there is no history of this very table: then none has to stay.
    """
    if not iceberg.exists(history):
        return None
    newest = recorded(iceberg.load(history), pipeline)
    return newest.sequence if newest is not None and newest.table_uuid == str(state.uuid()) else None


def summary(
    job_run: str,
    version: str,
    pipeline: str,
    of: Mapping[str, str],
    account: HistoryAccount,
    *,
    state: Java,
    snapshot: Java,
) -> dict[str, str]:
    """Return the summary of a commit that follows the state up to `snapshot`; `of` are the offsets of that one."""
    snapshot_id, sequence = int(snapshot.snapshotId()), int(snapshot.sequenceNumber())
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
