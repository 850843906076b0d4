"""What upkeep chooses, on values."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest

from frazil.lake.rewrite import Group
from frazil.lake.snapshot_retention import History, Past
from frazil.maintain.choose_upkeep import (
    DAY_MS,
    HOUR_MS,
    MARKS,
    Mark,
    Why,
    added_by,
    namer,
    remembered,
    to_carry,
    why,
)

GROUP = Group("day=1", files=4, rows=40, bytes=400, newest=5)
of_table = partial(why, since_ms=1000, target_bytes=1000, many_files=10)


def test_files_are_as_old_as_the_first_mark_that_has_seen_them() -> None:
    marks = [Mark(3, 300), Mark(5, 500), Mark(9, 900)]
    assert [added_by(n, marks) for n in (1, 4, 5, 9, 10)] == [300, 500, 500, 900, None]


@pytest.mark.parametrize(
    ("group", "marks", "expected"),
    [
        (GROUP, [Mark(5, 999)], Why.CLOSED),
        (GROUP, [Mark(5, 1000)], Why.OPEN),
        (GROUP, [Mark(4, 1)], Why.OPEN),
        (replace(GROUP, bytes=1000), [], Why.FULL),
        (replace(GROUP, files=10), [], Why.MANY),
        (replace(GROUP, deletes=1, deleted=1), [Mark(5, 1)], Why.DELETES),
    ],
)
def test_a_group_is_compacted_for_a_reason(group: Group, marks: list[Mark], expected: Why) -> None:
    assert of_table(group, marks, is_state=False) is expected
    assert expected.is_compacted is (expected in (Why.CLOSED, Why.FULL, Why.MANY))


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (replace(GROUP, deletes=1, deleted=3), Why.OPEN),
        (replace(GROUP, deletes=1, deleted=4), Why.DELETED),
        (replace(GROUP, deletes=1, maybe_deleted=4), Why.DELETED),
        (replace(GROUP, deletes=10, deleted=1), Why.DELETED),
    ],
)
def test_a_state_is_compacted_if_many_of_its_rows_are_deleted(group: Group, expected: Why) -> None:
    assert of_table(group, [], is_state=True) is expected


def test_marks_are_remembered_an_hour_apart_and_not_for_ever() -> None:
    marks: tuple[Mark, ...] = ()
    for minute in range(0, 100 * 60, 10):
        marks = remembered(marks, Mark(minute, minute * 60_000))
    assert len(marks) == MARKS
    assert marks[-1] == Mark(5990, 5990 * 60_000)
    apart = [later.at_ms - earlier.at_ms for earlier, later in pairwise(marks[:-1])]
    assert min(apart) >= HOUR_MS


def test_frequent_runs_still_remember_the_last_hours() -> None:
    marks: tuple[Mark, ...] = ()
    for minute in range(0, 180, 10):
        marks = remembered(marks, Mark(minute, minute * 60_000))
    found = added_by(30, marks)
    assert found is not None
    assert found <= 170 * 60_000 - HOUR_MS


def idle(tagged: int, count: int = 6) -> History:
    snapshots = tuple(Past(id=n, parent_id=n - 1 or None, sequence=n, at_ms=n) for n in range(1, count + 1))
    return History(snapshots, {"main": count, "frazil_p": tagged}, count)


@pytest.mark.parametrize(("tagged", "is_carried"), [(1, True), (3, True), (4, False), (6, False)])
def test_a_tag_is_carried_when_it_keeps_what_retention_would_let_go(tagged: int, is_carried: bool) -> None:
    found = to_carry(idle(tagged), "frazil_p", keep=3, since_ms=DAY_MS)
    assert (found is not None) is is_carried


def test_no_tag_is_carried_within_the_grace() -> None:
    assert to_carry(idle(1), "frazil_p", keep=3, since_ms=10 - 1000) is None
    assert to_carry(idle(1), "frazil_other", keep=3, since_ms=DAY_MS) is None


@pytest.mark.parametrize("found", ["file:/a/b.parquet", "file:///a/b.parquet", "/a/b.parquet"])
def test_one_file_is_one_file_however_its_location_is_written(found: str) -> None:
    is_named = namer(["file:///a/b.parquet", "s3://lake/x"])
    assert is_named(found)
    assert is_named("s3a://lake/x")
    assert not is_named("file:/a/c.parquet")
