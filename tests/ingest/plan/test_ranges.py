"""Ranges with a stretch left out, which the driver reads, and halves of ranges."""

import pytest

from frazil.ingest.plan.ranges import OffsetRange, halves, without

ALL = [OffsetRange(0, 0, 10), OffsetRange(1, 5, 9)]


def test_nothing_is_left_out_where_no_place_is_given() -> None:
    assert without(ALL, []) == [ALL]


def test_a_stretch_in_the_middle_leaves_two_ranges() -> None:
    assert without(ALL, [(0, 3), (0, 6)]) == [[OffsetRange(0, 0, 3), ALL[1]], [OffsetRange(0, 7, 10)]]


def test_stretches_at_the_ends_leave_no_empty_range() -> None:
    assert without(ALL, [(0, 0), (1, 8)]) == [[OffsetRange(1, 5, 8)], [OffsetRange(0, 1, 10)]]


def test_a_stretch_over_all_leaves_nothing() -> None:
    assert without(ALL[:1], [(0, 0), (0, 9)]) == []


@pytest.mark.parametrize(
    "ranges", [[OffsetRange(0, 5, 7)], [OffsetRange(0, 5, 8)], [OffsetRange(p, 0, 1) for p in range(5)]]
)
def test_halves_are_all_of_it_and_neither_is_empty(ranges: list[OffsetRange]) -> None:
    first, second = halves(ranges)
    places = [(r.partition, offset) for r in (*first, *second) for offset in range(r.start, r.end)]
    assert places == [(r.partition, offset) for r in ranges for offset in range(r.start, r.end)]
    assert all(len(r) > 0 for r in (*first, *second))
    assert first
    assert second
