"""Load the tables of a pipeline in the order that a running driver cannot disturb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from frazil.audit.accounts.pending_dead_letters import ahead, state
from frazil.declaration import Pipeline
from frazil.lake.commit.dead_letters.side_state import SideState
from frazil.lake.ledger.entry import Entry
from frazil.lake.read.stored_tables import Lake, Snapshot, StoredTable

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
        if now is None or _newest_id(now, pipeline.name) == _newest_id(table, pipeline.name):
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


def _newest_id(table: StoredTable, pipeline: str) -> int | None:
    newest = table.newest(pipeline)
    return newest.id if newest is not None else None
