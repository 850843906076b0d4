"""What a dead-letter table is to the decisions of its table, on values."""

from __future__ import annotations

import json

import pytest

from frazil.lake.commit.dead_letters.side_state import SideState, compare
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry, commit_id
from frazil.lake.ledger.next_offsets import Offsets

TABLE = "uuid-of-the-table"


def offsets(at: int, topic_id: str = "T1") -> Offsets:
    return Offsets("orders", topic_id, {0: at})


def commit(start: int, end: int, *, number: int = 0, side: bool = False, event: str = "", table: str = TABLE) -> Entry:
    """An entry of the table."""
    summary = {ledger.DECISION: str(number)}
    if event:
        summary[ledger.EVENTS] = json.dumps({"event": event, "reason": "r"})
    begin, to = offsets(start), offsets(end)
    return Entry(end, commit_id("p", table, begin, to), begin, to, None, "file" if side else None, "run", summary)


def letters(start: int, end: int, number: int, *, table: str = TABLE) -> Entry:
    """An entry of the dead-letter table."""
    made = commit(start, end, number=number, table=table)
    made.summary[ledger.TABLE] = table  # type: ignore[index]
    return made


def state(last: Entry, newest: Entry | None = None, *, follows: bool = True) -> SideState:
    return compare(TABLE, last, newest, head_follows=follows)


@pytest.mark.parametrize(
    ("last", "side", "expected"),
    [
        (commit(0, 10), None, SideState.FINISHED),
        (commit(0, 10, number=1, side=True), None, SideState.OPEN),
        (commit(10, 20, number=1), None, SideState.MISMATCH),
        (commit(10, 20, number=2, side=True), None, SideState.MISMATCH),
        (commit(10, 20, number=2, side=True), 2, SideState.FINISHED),
        (commit(10, 20, number=2, side=True), 1, SideState.OPEN),
        (commit(20, 30, number=2), 1, SideState.MISMATCH),
        (commit(20, 30, number=3, side=True), 1, SideState.MISMATCH),
        (commit(20, 30, number=3, side=True, event="rolled-back-replay"), 1, SideState.OPEN),
        (commit(10, 20, number=2), 3, SideState.AHEAD),
    ],
)
def test_numbers_say_what_is_finished(last: Entry, side: int | None, expected: SideState) -> None:
    assert state(last, None if side is None else letters(0, 10, side)) is expected


def test_a_batch_that_is_replayed_with_the_same_commit_id_is_another_decision() -> None:
    again = commit(0, 10, number=3, side=True)
    assert state(again, letters(10, 10, 2)) is SideState.OPEN


def test_a_dead_letter_table_of_another_table_is_a_mismatch_until_the_first_decision_takes_it_over() -> None:
    other = letters(0, 30, 9, table="another")
    assert state(commit(0, 10, number=2), other) is SideState.MISMATCH
    assert state(commit(0, 0, number=1, side=True), other) is SideState.OPEN


def test_a_head_behind_the_dead_letters_last_commit_is_a_rollback_unless_a_decision_about_it_is_open() -> None:
    assert state(commit(10, 20, number=2), letters(10, 20, 2), follows=False) is SideState.ROLLED_BACK
    assert state(commit(20, 30, number=3, side=True), letters(10, 20, 2), follows=False) is SideState.ROLLED_BACK
    decided = commit(20, 20, number=3, side=True, event="rolled-back-hold")
    assert state(decided, letters(10, 20, 2), follows=False) is SideState.OPEN


def test_a_table_of_before_its_first_decision_was_restored_if_its_dead_letter_table_has_decisions() -> None:
    """A table begins with number 0."""
    assert state(commit(0, 10), letters(10, 20, 1)) is SideState.AHEAD
    assert state(commit(0, 10), letters(0, 10, 1, table="another")) is SideState.MISMATCH
    assert state(commit(0, 10)) is SideState.FINISHED
