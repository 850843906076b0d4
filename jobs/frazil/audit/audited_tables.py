"""Load the tables of a pipeline in the order that a running driver cannot disturb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frazil.audit.pending_dead_letters import ahead, state
from frazil.declaration import Pipeline
from frazil.lake.commit.side_state import SideState
from frazil.lake.ledger import Entry
from frazil.lake.read.stored_tables import Lake, Snapshot, StoredTable

LOOKS = 5  # how often an open decision is read again: a running driver finishes it within a second or so
BETWEEN_LOOKS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Tables:
    """A pipeline's tables, the dead letters' loaded after the one that decides; and a decision that is still open.

    `state` is what the dead-letter table is to the decisions. `ahead` is the dead letters' newest commit, if the table has
    not come as far when it is loaded once more.
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
    """Load both tables; read an open decision again until a running driver has finished it."""
    table = lake.table(pipeline.table.identifier)
    if table is None:
        return Tables(None)
    commits = table.commits(pipeline.name)
    for look in range(LOOKS):
        if look:
            wait(BETWEEN_LOOKS_SECONDS)
        side = lake.table(pipeline.table.dead_letters)
        found, newest = state(table, side, pipeline.name)
        if found is not SideState.OPEN:
            break
    decision = newest if found is SideState.OPEN else None
    beyond = ahead(side, commits, pipeline.name)
    if beyond is not None or found is SideState.AHEAD:  # a driver may have committed meanwhile, to the table first
        now = lake.table(pipeline.table.identifier)
        beyond = ahead(side, now.commits(pipeline.name), pipeline.name) if now is not None else None
        if found is SideState.AHEAD:
            found = state(now, side, pipeline.name)[0] if now is not None else SideState.FINISHED
    return Tables(table, side, commits, decision, beyond, found)
