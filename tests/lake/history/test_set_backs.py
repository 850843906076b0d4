"""Offsets that went back, and which commits are later than others since then."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidInput
from frazil.lake.history.history_ledger import HistoryAccount
from frazil.lake.history.set_backs import SetBack, present_from, set_backs_after
from frazil.lake.offsets import Offsets

HELD = {0: 900, 1: 700}


def offsets(topic_id: str = "T1", **at: int) -> Offsets:
    return Offsets("orders", topic_id, {int(name.removeprefix("p")): offset for name, offset in at.items()})


def test_offsets_that_stay_or_go_on_are_set_back_nowhere() -> None:
    known = (SetBack(3, {0: 5}),)
    assert set_backs_after(known, offsets(p0=7), offsets(p0=7), 9) == known
    assert set_backs_after(known, offsets(p0=7), offsets(p0=8, p1=2), 9) == known


def test_a_truncated_log_is_set_back_to_where_it_goes_on() -> None:
    assert set_backs_after((), offsets(p0=7, p1=4), offsets(p0=5, p1=4), 9) == (SetBack(9, {0: 5, 1: 4}),)
    assert set_backs_after((), offsets(p0=7, p1=4), offsets(p0=7), 9) == (SetBack(9, {0: 7}),)


def test_another_topic_shares_no_offset_with_the_one_before_wherever_it_begins() -> None:
    known = (SetBack(3, {0: 5}),)
    assert set_backs_after(known, offsets(p0=7), offsets("T2", p0=100), 9) == (SetBack(9, {}),)


def test_set_backs_to_offsets_behind_a_later_one_do_not_matter() -> None:
    known = (SetBack(3, {0: 2}), SetBack(5, {0: 8}))
    assert set_backs_after(known, offsets(p0=9), offsets(p0=6), 9) == (SetBack(3, {0: 2}), SetBack(9, {0: 6}))


def test_without_a_set_back_all_commits_count_and_any_offsets_may_be_named() -> None:
    assert present_from((), {0: 10**9}, HELD) == 0


def test_offsets_are_behind_the_newest_set_back_that_they_are_not_before() -> None:
    known = (SetBack(3, {0: 200, 1: 100}), SetBack(9, {0: 500, 1: 600}))
    assert present_from(known, {0: 500, 1: 600}, HELD) == 9
    assert present_from(known, {0: 500, 1: 100}, HELD) == 3
    assert present_from(known, {0: 199, 1: 100}, HELD) == 0
    assert present_from(known, {0: 100}, HELD) == 0
    assert present_from((SetBack(4, {}),), {}, HELD) == 4


def test_offsets_that_may_be_those_of_before_are_refused() -> None:
    known = (SetBack(9, {0: 500, 1: 600}),)
    with pytest.raises(InvalidInput, match="ends before these offsets in partition 1"):
        present_from(known, {0: 500, 1: 701}, HELD)
    with pytest.raises(InvalidInput, match='went back to {"0":500,"1":600}'):
        present_from(known, {0: 501, 1: 599}, HELD)


def test_an_account_carries_its_set_backs_on() -> None:
    begin = HistoryAccount(rows=0, hash=0, since=1, began=0)
    account = begin.moved(offsets(p0=7, p1=3), offsets(p0=5, p1=3), 9)
    later = account.after(inserted=1, updated=0, deleted=0, hash_difference=3).moved(offsets(p0=5), offsets(p0=6), 10)
    assert later.set_backs == (SetBack(9, {0: 5, 1: 3}),)
    assert HistoryAccount.parse(str(later)) == later
    assert "set_backs" not in str(begin)
