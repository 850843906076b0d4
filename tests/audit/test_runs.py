from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from frazil.audit.runs import NONE, Range, Runs, holes, of_ranges, of_rows, union, within

places = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=40)
ranges = st.lists(
    st.builds(lambda start, size: Range(start, start + size), st.integers(0, 40), st.integers(0, 15)), max_size=3
)


def runs_of(rows: Iterable[tuple[int, int]]) -> dict[int, Runs]:
    rows = list(rows)
    return of_rows(pa.array([p for p, _ in rows], pa.int32()), pa.array([o for _, o in rows], pa.int64()))


def offsets(runs: Runs) -> list[int]:
    return [offset for r in runs.ranges() for offset in range(r.start, r.end)]


def covered(ranges: Iterable[Range]) -> set[int]:
    return {offset for r in ranges for offset in range(r.start, r.end)}


@given(places)
def test_runs_are_the_rows_in_any_order(rows: list[tuple[int, int]]) -> None:
    found = runs_of(rows)
    assert {p: sorted(offsets(runs)) for p, runs in found.items()} == {
        p: sorted(o for q, o in rows if q == p) for p in {p for p, _ in rows}
    }


@given(places)
def test_a_union_is_the_set_and_the_excess_is_the_rest(rows: list[tuple[int, int]]) -> None:
    given_offsets = Counter(o for _, o in rows)
    together, excess = union(list(runs_of(rows).values()))
    assert offsets(together) == sorted(given_offsets)
    assert Counter(offsets(excess)) == given_offsets - Counter(set(given_offsets))
    assert (together.offsets, excess.offsets) == (len(given_offsets), len(rows) - len(given_offsets))


@given(places)
def test_a_set_has_no_ranges_that_touch(rows: list[tuple[int, int]]) -> None:
    found = union(list(runs_of(rows).values()))[0].ranges()
    assert all(before.end < after.start for before, after in pairwise(found))


@given(places, ranges)
def test_a_set_is_what_is_within_ranges_and_what_is_outside(rows: list[tuple[int, int]], bounds: list[Range]) -> None:
    together, _ = union(list(runs_of(rows).values()))
    inside, outside = within(together, bounds)
    assert offsets(inside) == sorted({o for _, o in rows} & covered(bounds))
    assert offsets(outside) == sorted({o for _, o in rows} - covered(bounds))


@given(places, ranges)
def test_holes_are_what_a_set_lacks(rows: list[tuple[int, int]], bounds: list[Range]) -> None:
    together, _ = union(list(runs_of(rows).values()))
    assert offsets(holes(together, bounds)) == sorted(covered(bounds) - {o for _, o in rows})


def test_a_million_offsets_without_their_poison_are_a_few_ranges() -> None:
    kept = [o for o in range(1_000_000) if o % 100_000 != 7]
    together, _ = union([runs_of((0, o) for o in kept)[0]])
    assert (len(together), together.offsets) == (11, 999_990)


def test_nothing_has_no_ranges() -> None:
    assert (len(NONE), NONE.offsets, NONE.ranges(), union([])) == (0, 0, (), (NONE, NONE))


def test_offsets_reach_as_far_as_kafka_counts() -> None:
    last = 2**63 - 2
    assert of_ranges([Range(last, last + 1)]).ranges() == (Range(last, last + 1),)


def test_a_range_is_told_by_its_first_and_last_offset() -> None:
    assert (str(Range(5, 6)), str(Range(5, 8))) == ("5", "5 to 7")
