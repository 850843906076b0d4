"""Compare the ledger of a table with that of its dead-letter table. Pure: entries in, a state out.

Decisions on dead letters are numbered: the table's newest entry has the number of its newest decision, the dead-letter
table's newest entry the number that it has finished and the table's uuid. A table begins with 0.
"""

from __future__ import annotations

from enum import StrEnum

from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry


class SideState(StrEnum):
    """The state of a dead-letter table as to the decisions of its table.

    `FINISHED`: it has them all. `OPEN`: the newest is not finished. `MISMATCH`: it is not the table that finished the
    decisions before: it was dropped, replaced or restored, or belongs to another table. `ROLLED_BACK`: its head was moved
    behind its last commit. `AHEAD`: it has finished decisions that the table does not have, so the table was restored.
    """

    FINISHED = "finished"
    OPEN = "open"
    MISMATCH = "mismatch"
    ROLLED_BACK = "rolled_back"
    AHEAD = "ahead"


def compare(table_uuid: str, last: Entry, newest: Entry | None, *, head_follows: bool) -> SideState:
    """Return the state of a dead-letter table.

    `last` is the table's newest entry and `newest` that of the dead-letter table; `head_follows` is False if the dead-letter
    table's head is behind its newest entry.
    """
    is_event = ledger.EVENTS in last.summary
    if newest is None:
        if last.side is not None and (last.number <= 1 or is_event):
            return SideState.OPEN  # the decision's file says for which table it is
        return SideState.MISMATCH if last.number else SideState.FINISHED
    if not belongs(table_uuid, newest):
        # The table's first decision, or an operator's, is what makes a dead-letter table its own.
        return SideState.OPEN if last.side is not None and (is_event or last.number == 1) else SideState.MISMATCH
    behind = last.number - newest.number
    if behind < 0:
        return SideState.AHEAD
    if last.side is not None and (behind == 1 or (is_event and behind)) and (head_follows or is_event):
        return SideState.OPEN
    if not head_follows:
        return SideState.ROLLED_BACK
    return SideState.MISMATCH if behind else SideState.FINISHED


def belongs(table_uuid: str, side: Entry) -> bool:
    """Return whether a dead-letter table's entry finishes a decision of this very table."""
    return side.summary.get(ledger.TABLE) == table_uuid
