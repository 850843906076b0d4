"""Look at a table and its dead-letter table together: what the newest decision is, and whether it is finished."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from frazil.errors import DeadLetterTableMismatch, DecisionRequired, RolledBack
from frazil.lake.commit.dead_letters.side_state import SideState, belongs, compare
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entries import entries_of, entry
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import head_follows

LOOKS = 5  # a table may get a commit between the two loads; then both are loaded again


@dataclass(frozen=True, slots=True)
class Look:
    """A table and its dead-letter table as loaded, the newest ledger entry of each, and what one is to the other.

    `side` is None if there is no dead-letter table. `state` is `FINISHED` for a table without a ledger: it decided nothing.
    """

    main: Java
    last: Entry | None
    side: Java | None
    newest: Entry | None
    state: SideState

    @property
    def finished(self) -> int:
        """The number of the newest decision that the dead-letter table has finished; 0 if it has none of this table's."""
        if self.newest is None or not belongs(str(self.main.uuid()), self.newest):
            return 0
        return self.newest.number


def look(iceberg: Iceberg, table: str, side_table: str, pipeline: str) -> Look:
    """Load both tables and compare them. A state that needs an operator is what both tables were in at one moment."""
    for _ in range(LOOKS):
        main = iceberg.load(table)
        last = entry(main, pipeline)
        side = iceberg.load(side_table) if iceberg.exists(side_table) else None
        found = _compared(iceberg, main, last, side, pipeline)
        if last is None or found.state in (SideState.FINISHED, SideState.OPEN):
            break
        again = entry(iceberg.load(table), pipeline)
        if again is not None and again.snapshot_id == last.snapshot_id:
            break
    return found


def side_lineage(side: Java | None, newest: Entry | None, pipeline: str) -> Iterator[Entry]:
    """Return the dead-letter table's entries, newest first."""
    return iter(()) if side is None or newest is None else entries_of(side, pipeline, newest.snapshot_id)


def refusal(found: Look, table: str, side_table: str, pipeline: str) -> DecisionRequired:
    """Return the error for a state that an operator must decide."""
    match found.state:
        case SideState.ROLLED_BACK:
            return RolledBack.of_dead_letters(pipeline, side_table)
        case SideState.AHEAD:
            return RolledBack.behind_dead_letters(pipeline, table, side_table)
        case _:
            return DeadLetterTableMismatch.of(
                pipeline,
                side_table,
                "the dead-letter table is not the one that got the earlier dead letters: it was dropped, replaced or restored",
            )


def _compared(iceberg: Iceberg, main: Java, last: Entry | None, side: Java | None, pipeline: str) -> Look:
    newest = entry(side, pipeline) if side is not None else None
    if last is None:
        return Look(main, None, side, newest, SideState.FINISHED)
    follows = side is None or head_follows(iceberg, side, newest)
    state = compare(str(main.uuid()), last, newest, head_follows=follows)
    return Look(main, last, side, newest, state)
