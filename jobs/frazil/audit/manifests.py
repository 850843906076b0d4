"""Check that every snapshot that a table keeps can be read, as far as its manifests go."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.audit.finding import SHOWN, Finding, Flaw
from frazil.lake import ledger
from frazil.lake.read.data_files import each, manifests, missing
from frazil.lake.read.stored_tables import Snapshot, StoredTable


def lost_manifests(table: StoredTable) -> list[Finding]:
    """Return the manifest lists and manifests of any snapshot that do not exist; data files of older snapshots are not checked."""
    snapshots = list(table.snapshots.values())
    listed = list(each(lambda snapshot: manifests(table, snapshot), snapshots))
    lost = [snapshot.manifest_list for snapshot, found in zip(snapshots, listed, strict=True) if found is None]
    lost += missing(table, [manifest.manifest_path for found in listed for manifest in found or ()])
    if not lost:
        return []
    what = f"{len(lost)} manifests do not exist, and with them what they list: {', '.join(lost[:SHOWN])}"
    return [Finding(flaw=Flaw.MANIFEST_LOST, where=f"table {table.identifier}", what=what, count=len(lost))]


def notes(table: StoredTable, pipeline: str, commits: Sequence[Snapshot]) -> list[str]:
    """Return what a reader of the proof should know: operator decisions, and snapshots by which others changed rows."""
    found = []
    for commit in commits:
        accepted = commit.summary.get(ledger.EVENTS)
        if accepted is not None:
            found.append(
                f"snapshot {commit.id}, {commit.committed_at:%Y-%m-%d %H:%M} UTC: an operator accepted {accepted}"
            )
    for snapshot in table.ancestors(table.head):
        if snapshot.operation in ("append", "delete", "overwrite") and ledger.FORMAT not in snapshot.summary:
            added, gone = (int(snapshot.summary.get(f"{kind}-records", 0)) for kind in ("added", "deleted"))
            found.append(
                f"snapshot {snapshot.id}, {snapshot.committed_at:%Y-%m-%d %H:%M} UTC, is not Frazil's: "
                f"{snapshot.operation}, {added} rows added, {gone} deleted"
            )
    found += _abandoned(table, pipeline)
    if commits and commits[0].belongs_to(pipeline):
        oldest = commits[-1]
        found.append(
            f"table {table.identifier} keeps {len(commits)} commits, since {oldest.committed_at:%Y-%m-%d %H:%M} UTC"
        )
    return found


def _abandoned(table: StoredTable, pipeline: str) -> list[str]:
    """Return a note if commits of the pipeline are on a branch of history that the table left."""
    ancestors = list(table.ancestors(table.head))
    if not ancestors:
        return []
    known, since = {snapshot.id for snapshot in ancestors}, ancestors[-1].sequence_number
    left = [
        snapshot
        for snapshot in table.snapshots.values()
        if snapshot.belongs_to(pipeline) and snapshot.id not in known and snapshot.sequence_number > since
    ]
    if not left:
        return []
    first = left[0]
    return [
        f"table {table.identifier} was rolled back: {len(left)} commits, from snapshot {first.id} of "
        f"{first.committed_at:%Y-%m-%d %H:%M} UTC on, are no longer in its history"
    ]
