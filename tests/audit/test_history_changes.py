"""What the rows of a history must be, from what its commits say."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from frazil.audit.history_changes import Changes, Wanted, differences, of_soft_deletes, wanted
from frazil.lake.history.history_ledger import HistoryAccount, Recorded
from frazil.lake.ledger import Entry


def commit(sequence: int, inserted: int, updated: int = 0, deleted: int = 0) -> Recorded:
    account = HistoryAccount(rows=0, hash=0, since=1, began=0, inserted=inserted, updated=updated, deleted=deleted)
    return Recorded(Entry.of(sequence, {}), "uuid", sequence, sequence, account)


COMMITS = [commit(1, 0), commit(2, 3), commit(4, 4, 2), commit(7, 4, 2, 1)]
ROWS = {2: Changes(c=3), 4: Changes(c=1, u=2), 7: Changes(d=1)}


def test_each_commit_has_the_changes_that_it_counts() -> None:
    assert wanted(COMMITS) == Wanted(1, Changes(c=0, u=0, d=0), ROWS)
    assert differences(ROWS, wanted(COMMITS), is_shortened=False) == []


def test_a_change_too_many_or_too_few_is_found() -> None:
    for sequence, changes in ((4, Changes(c=1, u=1)), (4, Changes(c=2, u=2)), (5, Changes(c=1)), (2, Changes())):
        (found,) = differences({**ROWS, sequence: changes}, wanted(COMMITS), is_shortened=False)
        assert f"of the state's commit {sequence}, " in found


def test_what_maintenance_deleted_is_not_missing_and_what_is_behind_it_is() -> None:
    assert differences({7: Changes(d=1)}, wanted(COMMITS), is_shortened=True) == []
    assert differences({}, wanted(COMMITS), is_shortened=True) == []
    assert len(differences({2: Changes(c=3), 7: Changes(d=1)}, wanted(COMMITS), is_shortened=True)) == 1
    assert len(differences({4: Changes(c=1)}, wanted(COMMITS), is_shortened=True)) == 2
    assert len(differences({7: Changes(d=1)}, wanted(COMMITS), is_shortened=False)) == 2


def test_of_commits_that_expired_there_are_no_more_changes_than_were_counted() -> None:
    said = wanted(COMMITS[2:])
    assert differences(ROWS, said, is_shortened=False) == []
    assert differences({7: Changes(d=1)}, said, is_shortened=False) == []
    assert len(differences({**ROWS, 1: Changes(c=2)}, said, is_shortened=False)) == 1


def test_undone_commits_have_no_changes_any_more() -> None:
    said = wanted([*COMMITS, commit(2, 3), commit(9, 3, 1)])
    assert said.later == {2: Changes(c=3), 9: Changes(u=1)}
    assert wanted([COMMITS[2], commit(2, 3)]) == Wanted(2, Changes(c=3, u=0, d=0), {})
    assert wanted([]) == Wanted()


def test_a_soft_delete_changes_its_row_and_may_make_it() -> None:
    at = datetime(2026, 1, 1)
    rows = [
        *[("c", None, None, "c"), ("c", None, "k", "u"), ("u", None, "k", "u")],  # new, back, changed
        *[("d", at, "k", "u"), ("d", at, None, "c"), ("d", None, "k", "d")],  # softly, from the beginning, hard
    ]
    operation, deleted_at, before, on_rows = map(pa.array, zip(*rows, strict=True))
    assert of_soft_deletes(operation, deleted_at, before).equals(on_rows)
