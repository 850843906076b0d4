"""What the commits of an upsert table say of its keys: each edit of such an account is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import DataFile

from frazil.audit.accounts import commit_chain
from frazil.audit.finding import Finding, Flaw, Outcome
from frazil.lake.ledger.totals import Counts
from tests.audit.landed_state import LandedState

OTHER_KEYS = "it counts other keys than it wrote and deleted"
OTHER_ROWS = "it counts other rows than it took away"
NOT_CARRIED_ON = "it does not carry on the account of the keys before it"


def made(folder: Path) -> LandedState:
    """Return a table of 20 rows, and a batch that inserts 4, updates 6, deletes 3 and finds 2 absent."""
    state = LandedState(folder)
    state.change(range(20))
    state.change(range(14, 24), [0, 1, 2, 77, 78])
    return state


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> LandedState:
    """The table, which no test changes."""
    return made(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def state(tmp_path: Path) -> LandedState:
    """The table, which a test may change."""
    return made(tmp_path)


def chain(state: LandedState, **edit: str | None) -> list[Finding]:
    """Return what is wrong with the commits, with other entries in the summary of the newest one, or without."""
    table = state.lake.table("shop.orders")
    assert table is not None
    newest, *others = table.commits("orders")
    summary = {**newest.summary, **{f"frazil.{name}": value for name, value in edit.items()}}
    newest = replace(newest, summary={name: value for name, value in summary.items() if value is not None})
    return commit_chain.check(table, "orders", [newest, *others])


def test_the_account_that_a_batch_carries_on_is_right(shared: LandedState) -> None:
    keys = shared.keys
    assert (keys.inserted, keys.updated, keys.deleted, keys.absent, keys.rows, keys.records) == (4, 6, 3, 2, 21, 35)
    assert chain(shared) == []
    for deep in (False, True):
        assert shared.verify(deep=deep).outcome is Outcome.PROVEN


@pytest.mark.parametrize(
    ("edit", "what"),
    [
        ({"inserted": 5}, OTHER_KEYS),
        ({"updated": 5}, OTHER_KEYS),
        ({"deleted": 4}, OTHER_KEYS),
        ({"absent": 0}, OTHER_KEYS),
        ({"cleared": 19}, OTHER_ROWS),
        ({"cleared": 20}, OTHER_ROWS),  # all rows, and no record says that the source was truncated
        ({"rows": 22}, NOT_CARRIED_ON),
        ({"records": 36}, NOT_CARRIED_ON),
        ({"late": 1}, NOT_CARRIED_ON),
        ({"doubled": 1}, NOT_CARRIED_ON),
        ({"inserted": 5, "updated": 5}, NOT_CARRIED_ON),  # as many keys, and another number of rows
        ({"deleted": 4, "absent": 1}, NOT_CARRIED_ON),
    ],
    ids=str,
)
def test_an_edited_account_is_found(shared: LandedState, edit: dict[str, int], what: str) -> None:
    (found,) = chain(shared, keys=str(replace(shared.keys, **edit)))
    newest = shared.table.current_snapshot()
    assert newest is not None
    assert found == Finding(flaw=Flaw.MISCOUNTED, where=f"table shop.orders, snapshot {newest.snapshot_id}", what=what)


def test_a_commit_without_the_account_of_the_keys_is_found(shared: LandedState) -> None:
    assert [found.what for found in chain(shared, keys=None)] == ["it does not carry on the account of the keys"]


def test_verify_reports_an_edited_account(state: LandedState) -> None:
    state.edit(updated=5)
    found = state.verify()
    assert (found.outcome, [one.what for one in found.findings]) == (Outcome.NOT_PROVEN, [OTHER_KEYS])


def landed(state: LandedState, counts: Counts, files: Sequence[DataFile] = (), **account: Any) -> list[str]:
    """Land a batch of these counts and this account; what is wrong with it."""
    state.keys = replace(state.keys.unchanged, **account)
    state.commit({0: state.held[0] + counts.read}, counts, {}, files)
    return [found.what for found in chain(state)]


def test_a_truncate_takes_all_rows_away_that_there_were(state: LandedState) -> None:
    truncated = Counts(read=1, skipped={"truncated": 1}, skipped_at={0: 1})
    assert landed(state, truncated, rows=1, cleared=20) == [OTHER_ROWS]


def test_a_truncate_of_all_rows_is_right(state: LandedState) -> None:
    truncated = Counts(read=1, skipped={"truncated": 1}, skipped_at={0: 1})
    assert landed(state, truncated, rows=0, hash=0, cleared=21) == []


@pytest.mark.parametrize(("rows", "what"), [(18, []), (21, [NOT_CARRIED_ON])])
def test_rows_that_were_taken_away_beside_one_of_their_key_are_no_longer_counted(
    state: LandedState, rows: int, what: list[str]
) -> None:
    """The batch deletes a key that had three rows."""
    account = {"rows": rows, "deleted": 1, "doubled": 2, "records": state.keys.records + 1}
    assert landed(state, Counts(read=1, deletes=1), **account) == what


@pytest.mark.parametrize(("rows", "what"), [(21, []), (20, [NOT_CARRIED_ON])])
def test_a_row_that_is_marked_as_deleted_is_still_a_row(state: LandedState, rows: int, what: list[str]) -> None:
    marked = Counts(read=1, deletes=1, marked=1)
    account = {"rows": rows, "deleted": 1, "records": state.keys.records + 1}
    assert landed(state, marked, state.files([(0, 35)]), **account) == what


@pytest.mark.parametrize(("late", "what"), [(3, []), (0, [NOT_CARRIED_ON]), (4, [NOT_CARRIED_ON])])
def test_late_records_are_carried_on(state: LandedState, late: int, what: list[str]) -> None:
    assert landed(state, Counts(read=3, late=3), late=late, records=state.keys.records + 3) == what


@pytest.mark.parametrize(
    ("rows", "removed", "what"), [(19, 2, []), (19, 1, [NOT_CARRIED_ON]), (20, 2, [NOT_CARRIED_ON])]
)
def test_rows_that_an_operator_accepted_as_deleted_leave_the_account(
    state: LandedState, rows: int, removed: int, what: list[str]
) -> None:
    state.keys = replace(state.keys.unchanged, rows=rows, removed=removed)
    state.commit({}, Counts(), {}, accepted='{"event":"rows-deleted"}')
    assert [found.what for found in chain(state)] == what


def test_the_first_account_begins_with_no_row(tmp_path: Path) -> None:
    state = LandedState(tmp_path)
    state.change([1])
    assert chain(state) == []
    assert [found.what for found in chain(state, keys=str(replace(state.keys, rows=2)))] == [NOT_CARRIED_ON]


@pytest.mark.parametrize(("apart", "flaw"), [(1, Flaw.EXCESS), (-2, Flaw.MISSING)])
def test_records_that_the_account_has_and_the_offsets_do_not_are_found(
    state: LandedState, apart: int, flaw: Flaw
) -> None:
    """The commits before are expired, so that only the offsets contradict the account."""
    state.edit(records=state.keys.records + apart)
    state.expire(keep=1)
    assert chain(state) == []
    (found,) = state.verify().findings
    assert (found.flaw, found.count) == (flaw, abs(apart))
    assert found.what.startswith(f"its commits landed {35 + apart} records")
