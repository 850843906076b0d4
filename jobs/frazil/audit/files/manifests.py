"""Check that every snapshot that a table keeps can be read, as far as its manifests go; and which of them are of other engines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from frazil.audit.finding import SHOWN, Finding, Flaw
from frazil.lake.ledger import entry as ledger
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
    what = (
        f"{len(lost)} manifests do not exist or cannot be read, and with them what they list: {', '.join(lost[:SHOWN])}"
    )
    return [Finding(flaw=Flaw.MANIFEST_LOST, where=f"table {table.identifier}", what=what, count=len(lost))]


def foreign_commits(table: StoredTable, since: int | None = None) -> list[Snapshot]:
    """Return the snapshots by which other engines changed rows, newest first, as far as the table keeps them.

    `since` is a snapshot that ends the search, if it is in the history. A rebuilt ledger begins with the rows as they
    are. What removes dead letters for an operator's decision is directly before that, without a mark of Frazil.
    """
    found, decides = list[Snapshot](), False
    history = list(table.ancestors(table.head))
    is_known = any(snapshot.id == since for snapshot in history)
    for snapshot in history:
        if (is_known and snapshot.id == since) or _event(snapshot) == "ledger-lost":
            break
        is_foreign = not any(key.startswith("frazil.") for key in snapshot.summary)
        if is_foreign and snapshot.operation in ("append", "delete", "overwrite"):
            is_removal = decides and snapshot.operation != "append" and not _number(snapshot, "added-records")
            found += [] if is_removal else [snapshot]
        decides = _event(snapshot) is not None and ledger.TABLE in snapshot.summary
    return found


def undecided_commits(table: StoredTable) -> list[Snapshot]:
    """Return the snapshots by which other engines changed rows since an operator last accepted deleted rows, newest first."""
    history = table.ancestors(table.head)
    return foreign_commits(table, next((s.id for s in history if _event(s) == ledger.ROWS_DELETED), None))


def of_others(table: StoredTable) -> list[str]:
    """Return what other engines changed, a sentence for each snapshot."""
    return [
        f"{table.identifier}, snapshot {snapshot.id}, {_moment(snapshot)}, is not Frazil's: {snapshot.operation} by "
        f"{snapshot.summary.get('engine-name') or 'an unknown engine'}, {_number(snapshot, 'added-records')} rows added, "
        f"{_number(snapshot, 'deleted-records')} deleted"
        for snapshot in foreign_commits(table)
    ]


def _event(snapshot: Snapshot) -> Any:
    """Return what an operator decided about; the rest of the ledger's entry is not read."""
    return json.loads(snapshot.summary.get(ledger.EVENTS, "{}")).get("event")


def _number(snapshot: Snapshot, name: str) -> int:
    """Return how many rows a snapshot changed; delete files and vectors name rows that they delete."""
    names = [name] if name == "added-records" else [name, "added-position-deletes", "added-equality-deletes"]
    return sum(int(snapshot.summary.get(one, 0)) for one in names)


def notes(table: StoredTable, pipeline: str, commits: Sequence[Snapshot]) -> list[str]:
    """Return what a reader of the proof should know: operator decisions, commits that were left, and how many are kept."""
    found = [
        f"snapshot {commit.id}, {_moment(commit)}: an operator accepted {commit.summary[ledger.EVENTS]}"
        for commit in commits
        if ledger.EVENTS in commit.summary
    ]
    found += _abandoned(table, pipeline)
    if commits and commits[0].belongs_to(pipeline):
        found.append(f"table {table.identifier} keeps {len(commits)} commits, since {_moment(commits[-1])}")
    return found


def _moment(snapshot: Snapshot) -> str:
    return f"{snapshot.committed_at:%Y-%m-%d %H:%M} UTC"


def _abandoned(table: StoredTable, pipeline: str) -> list[str]:
    """Return a note if commits of the pipeline are on a branch of history that the table left."""
    ancestors = list(table.ancestors(table.head))
    if not ancestors:
        return []
    known, oldest = {snapshot.id for snapshot in ancestors}, ancestors[-1].sequence_number
    left = [
        snapshot
        for snapshot in table.snapshots.values()
        if snapshot.belongs_to(pipeline) and snapshot.id not in known and snapshot.sequence_number > oldest
    ]
    if not left:
        return []
    since = f"from snapshot {left[0].id} of {_moment(left[0])} on"
    return [f"table {table.identifier} was rolled back: {len(left)} commits, {since}, are no longer in its history"]
