"""The dead letters that a commit decided, and whether they are in their table yet."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from frazil.audit.files.file_scan import Columns, Source
from frazil.audit.files.window import Role
from frazil.audit.finding import Finding, Flaw
from frazil.declaration import Pipeline
from frazil.lake.commit.dead_letters.side_state import SideState, compare
from frazil.lake.ledger.entry import Entry
from frazil.lake.read.data_files import DataFile, missing, named_file
from frazil.lake.read.stored_tables import Lake, Snapshot, StoredTable
from frazil.schemas.dead_letter_outcomes import LANDED

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
    parts = (part for part in document["tables"] if part["table"] == side_table)
    return tuple(named_file(file) for part in parts for file in part["files"])


def decided_outcomes(table: StoredTable, location: str, side_table: str) -> frozenset[tuple[int, int]]:
    """Return the places of the dead letters that a decision counts as landed; none if the file that names them does not exist."""
    try:
        document = json.loads(table.read_text(location))
    except FileNotFoundError:
        return frozenset()
    parts = (part for part in document["tables"] if part["table"] == side_table)
    outcomes = (one for part in parts for one in part.get("outcomes") or () if one.get("outcome") in LANDED)
    ranges = ((int(p), first, after) for one in outcomes for p, found in one["at"].items() for first, after in found)
    return frozenset((p, offset) for p, first, after in ranges for offset in range(first, after))


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


LOOKS = 5  # how often an open decision is read again: a running driver finishes it within a second or so
BETWEEN_LOOKS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Tables:
    """A pipeline's tables, the dead letters' loaded after the one that decides; and a decision that is still open.

    `state` is what the dead-letter table is to the decisions. `ahead` is the dead letters' newest commit, if the table has
    not come as far, also when it is loaded once more.
    """

    table: StoredTable | None
    side: StoredTable | None = None
    commits: tuple[Snapshot, ...] = ()
    decision: Entry | None = None
    ahead: Snapshot | None = None
    state: SideState = SideState.FINISHED

    def are_current(self, lake: Lake) -> bool:
        """Return whether nothing has been committed to them since."""
        known = [table for table in (self.table, self.side) if table is not None]
        now = [lake.table(table.identifier) for table in known]
        return [table.version for table in known] == [table.version for table in now if table is not None]


def load_tables(pipeline: Pipeline, lake: Lake, wait: Callable[[float], None]) -> Tables:
    """Load both tables as they were at one moment; read an open decision again until a running driver has finished it.

    If the dead-letter table has commits that the first table lacks, an operator or a driver may have committed between the two
    loads, and both are loaded again. If a driver commits faster than that, its newest dead letters are omitted (`as_of`).
    """
    table = lake.table(pipeline.table.identifier)
    if table is None:
        return Tables(None)
    for _ in range(LOOKS):
        found = _with_dead_letters(table, pipeline, lake, wait)
        if not _is_overtaken(found, pipeline.name):
            return found
        now = lake.table(pipeline.table.identifier)
        if now is None or now.newest(pipeline.name) == table.newest(pipeline.name):
            break
        table = now
    if now is None:
        return replace(found, ahead=None, state=SideState.FINISHED)
    beyond = ahead(found.side, now.commits(pipeline.name), pipeline.name)
    return replace(found, ahead=beyond, state=state(now, found.side, pipeline.name)[0])


def _with_dead_letters(table: StoredTable, pipeline: Pipeline, lake: Lake, wait: Callable[[float], None]) -> Tables:
    """Load the dead-letter table, until no decision of the first table is open in it."""
    commits = table.commits(pipeline.name)
    for look in range(LOOKS):
        if look:
            wait(BETWEEN_LOOKS_SECONDS)
        side = lake.table(pipeline.table.dead_letters)
        found, newest = state(table, side, pipeline.name)
        if found is not SideState.OPEN:
            break
    decision = newest if found is SideState.OPEN else None
    return Tables(table, side, commits, decision, ahead(side, commits, pipeline.name), found)


def _is_overtaken(tables: Tables, pipeline: str) -> bool:
    """Return whether the dead-letter table has commits that the first table, as loaded, has not."""
    if tables.ahead is not None or tables.state is SideState.AHEAD:
        return True
    known = (t.newest(pipeline) for t in (tables.table, tables.side) if t is not None)
    return len({newest.entry.end.topic_id for newest in known if newest is not None and newest.entry.end}) > 1
