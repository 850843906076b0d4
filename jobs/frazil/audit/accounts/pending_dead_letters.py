"""The dead letters that a commit decided, and whether they are in their table yet."""

from __future__ import annotations

import json
from collections.abc import Sequence

from frazil.audit.files.file_scan import Source
from frazil.audit.files.gapless_files import Columns
from frazil.audit.files.window import Role
from frazil.audit.finding import Finding, Flaw
from frazil.declaration import Pipeline
from frazil.lake.commit.dead_letters.side_state import SideState, compare
from frazil.lake.ledger.entry import Entry
from frazil.lake.read.data_files import DataFile, missing, named_file
from frazil.lake.read.stored_tables import Snapshot, StoredTable

_WRONG = {
    SideState.ROLLED_BACK: (
        Flaw.ROLLED_BACK,
        "the head is behind the pipeline's last commit: it was rolled back by hand",
    ),
    SideState.MISMATCH: (
        Flaw.MISMATCH,
        "it is not the table that got the earlier dead letters: it was dropped, replaced or restored",
    ),
    SideState.AHEAD: (
        Flaw.SIDE_AHEAD,
        "it has finished decisions that the table does not have: the table was set back to an earlier state",
    ),
}


def state(table: StoredTable, side: StoredTable | None, pipeline: str) -> tuple[SideState, Entry | None]:
    """Return what the dead-letter table is to the table's decisions, and the table's newest entry.

    One decision at most can be open, the newest: a driver finishes what it finds open before it goes on.
    """
    newest = table.newest(pipeline)
    if newest is None:
        return SideState.FINISHED, None
    last = side.newest(pipeline) if side is not None else None
    follows = side is None or side.follows_tag(pipeline)
    found = compare(table.uuid, newest.entry, None if last is None else last.entry, head_follows=follows)
    return found, newest.entry


def decided_files(table: StoredTable, location: str, side_table: str) -> tuple[DataFile, ...] | None:
    """Return the data files that a decision names for a side table; None if the file that names them does not exist."""
    try:
        document = json.loads(table.read_text(location))
    except FileNotFoundError:
        return None
    return tuple(
        named_file(
            file["file-path"],
            file["file-format"],
            rows=file["record-count"],
            size=file["file-size-in-bytes"],
            spec_id=file["spec-id"],
        )
        for side in document["tables"]
        if side["table"] == side_table
        for file in side["files"]
    )


def ahead(side: StoredTable | None, decisions: Sequence[Snapshot], pipeline: str) -> Snapshot | None:
    """Return the side table's newest commit if the first table, with these commits, has not come as far."""
    newest = next(iter(side.commits(pipeline)), None) if side is not None else None
    end = decisions[0].entry.end if decisions else None
    there = newest.entry.end if newest is not None else None
    if end is None or there is None or there.topic_id != end.topic_id or end.reaches(there):
        return None
    return newest


def as_of(side: StoredTable, decisions: Sequence[Snapshot], pipeline: str) -> Snapshot | None:
    """Return the newest snapshot of a side table that finishes nothing beyond `decisions`, the commits of the first table.

    The side table is loaded after the first, so a running driver may have added to it meanwhile.
    """
    end = decisions[0].entry.end if decisions else None
    chosen = side.head
    for snapshot in side.ancestors(side.head):
        if not snapshot.belongs_to(pipeline):
            continue
        there = snapshot.entry.end
        if end is None or there is None or there.topic_id != end.topic_id or end.reaches(there):
            break
        chosen = side.snapshots.get(snapshot.parent_id) if snapshot.parent_id is not None else None
    return chosen


def pending_files(
    table: StoredTable, side: StoredTable | None, decision: Entry | None, pipeline: Pipeline, columns: Columns
) -> tuple[list[Source], list[Finding]]:
    """Return the files of dead letters that are decided and not appended yet, as the decision names them."""
    name = pipeline.table.dead_letters
    if decision is None or decision.side is None:
        return [], []
    where = f"table {name}"
    files = decided_files(table, decision.side, name)
    if files is None or side is None:
        lost = f"its file {decision.side}" if files is None else "the table"
        what = f"commit {decision.commit_id} decided dead letters that were never appended, and {lost} is gone"
        return [], [Finding(flaw=Flaw.DECISION_LOST, where=where, what=what)]
    gone = set(missing(side, [file.path for file in files]))
    kept = tuple(file for file in files if file.path not in gone)
    findings = []
    if gone:
        what = f"{len(gone)} files that the decision names do not exist: {', '.join(sorted(gone))}"
        findings.append(Finding(flaw=Flaw.FILE_LOST, where=where, what=what, count=len(gone)))
    return [Source(Role.PENDING, side, columns, kept)], findings


def wrong_state(found: SideState, side_table: str) -> list[Finding]:
    """Return what is wrong with a dead-letter table that an operator must decide about."""
    if found not in _WRONG:
        return []
    flaw, what = _WRONG[found]
    return [Finding(flaw=flaw, where=f"table {side_table}", what=what)]
