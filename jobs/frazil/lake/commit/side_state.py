"""Compare the ledger of a table with that of its dead-letter table. Pure: entries in, a state out.

Decisions on dead letters are numbered: the table's newest entry has the number of its newest decision, the dead-letter
table's newest entry the number that it has finished and the table's uuid. A table begins with 0. Version 0.1.0 wrote no numbers;
its commits are compared by commit id, which is made of the table's uuid.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain

from frazil.lake import ledger
from frazil.lake.ledger import Entry
from frazil.lake.offsets import Offsets


class SideState(StrEnum):
    """What a dead-letter table is to the decisions of its table.

    `FINISHED`: it has them all. `OPEN`: the newest is not finished. `MISMATCH`: it is not the table that finished the
    decisions before: it was dropped, replaced or restored, or belongs to another table. `ROLLED_BACK`: its head was moved
    behind its last commit. `AHEAD`: it has finished decisions that the table does not have, so the table was restored.
    """

    FINISHED = "finished"
    OPEN = "open"
    MISMATCH = "mismatch"
    ROLLED_BACK = "rolled_back"
    AHEAD = "ahead"


def compare(
    pipeline: str,
    table_uuid: str,
    last: Entry,
    main: Iterable[Entry],
    side: Iterable[Entry],
    *,
    head_follows: bool,
) -> SideState:
    """Return the state of a dead-letter table.

    `last` is the table's newest entry, `main` are its entries and `side` those of the dead-letter table, newest first, each
    as far as they are kept; `head_follows` is False if the dead-letter table's head is behind its newest entry.
    """
    entries = iter(side)
    newest = next(entries, None)
    if newest is None:
        return _without_entries(last, main)
    older = list[Entry]()
    is_event = ledger.EVENTS in last.summary
    if not belongs(pipeline, table_uuid, _kept(chain([newest], entries), older)):
        # The table's first decision, or an operator's, is what makes a dead-letter table its own.
        if last.side is not None and (is_event or last.number == 1):
            return SideState.OPEN
        if last.number is not None or ledger.TABLE in newest.summary or not any(map(_starts_over, main)):
            return SideState.MISMATCH
    lineage = chain(older, entries)
    if last.number is not None and newest.number is not None:
        behind = last.number - newest.number
        if behind < 0:
            return SideState.AHEAD
        if last.side is not None and (behind == 1 or (is_event and behind)) and (head_follows or is_event):
            return SideState.OPEN
        if not head_follows:
            return SideState.ROLLED_BACK
        return SideState.MISMATCH if behind else SideState.FINISHED
    if not head_follows and not (is_event and last.side is not None):
        return SideState.ROLLED_BACK
    if not last.number and is_ahead(newest.end, last.end):
        return SideState.AHEAD
    if last.side is None:
        return SideState.FINISHED
    if last.number is not None:  # version 0.1.0 wrote the newest entry: before this decision, or to finish it
        is_same = ledger.EVENTS not in newest.summary and newest.commit_id == last.commit_id
    else:
        is_same = _has_finished(last, main, lineage)
    return SideState.FINISHED if is_same else SideState.OPEN


def belongs(pipeline: str, table_uuid: str, side: Iterable[Entry]) -> bool:
    """Return whether a dead-letter table's entries, newest first, finish decisions of this very table. True if nothing says so."""
    for entry in side:
        if ledger.TABLE in entry.summary:
            return entry.summary[ledger.TABLE] == table_uuid
        if ledger.EVENTS in entry.summary or ledger.UPKEEP in entry.summary or entry.start is None or entry.end is None:
            continue  # version 0.1.0 gave these a commit id of another table, or one that was carried on
        return entry.commit_id == ledger.commit_id(pipeline, table_uuid, entry.start, entry.end)
    return True


def is_ahead(side: Offsets | None, main: Offsets | None) -> bool:
    """Return whether a dead-letter table's offsets are past those of the table, in any partition of the same topic."""
    if side is None or main is None or side.topic_id != main.topic_id:
        return False
    return any(offset > main.at.get(p, offset) for p, offset in side.at.items())


def _starts_over(entry: Entry) -> bool:
    """Return whether an operator rebuilt the ledger from the rows; version 0.1.0 left the dead-letter table's unchanged."""
    return entry.event == "ledger-lost"


def _without_entries(last: Entry, main: Iterable[Entry]) -> SideState:
    if last.side is not None and (last.number is None or last.number <= 1 or ledger.EVENTS in last.summary):
        return SideState.OPEN  # the decision's file says for which table it is
    delivered = last.number > 0 if last.number is not None else any(entry.side is not None for entry in main)
    return SideState.MISMATCH if delivered else SideState.FINISHED


def _has_finished(last: Entry, main: Iterable[Entry], side: Iterable[Entry]) -> bool:
    """Return whether a decision, or the dead-letter table's answer to it, is of version 0.1.0 and finished."""
    event: Entry | None = None
    for entry in side:
        if event is None and entry.end is not None and last.end is not None and entry.end.reaches(last.end):
            return True
        if event is None and ledger.EVENTS in entry.summary:
            event = entry
        if last.commit_id is not None and entry.commit_id == last.commit_id:
            # Behind an operator's decision the same id may be that of a delivery before it. Version 0.1.0 wrote the event to
            # this table first: if the table does not have it and is older, its own commit never came, and this is the one.
            return event is None or (last.at_ms < event.at_ms and not _has_event(main, event))
    return False


def _has_event(main: Iterable[Entry], event: Entry) -> bool:
    def facts(entry: Entry) -> tuple[str, str] | None:
        if ledger.EVENTS not in entry.summary:
            return None
        document = json.loads(entry.summary[ledger.EVENTS])
        return document.get("event"), document.get("reason")

    return any(facts(entry) == facts(event) and entry.at_ms >= event.at_ms for entry in main)


def _kept(entries: Iterator[Entry], seen: list[Entry]) -> Iterator[Entry]:
    for entry in entries:
        seen.append(entry)
        yield entry
