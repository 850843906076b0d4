from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frazil.audit.files.bitmap import Bitmap, count, joined, missing, ranges
from frazil.audit.finding import Range

SIZE = 300
batches = st.lists(st.lists(st.integers(0, SIZE - 1), max_size=60), max_size=4)
spans = st.builds(lambda start, size: Range(start, min(start + size, SIZE)), st.integers(0, SIZE), st.integers(0, 200))


def offsets(found: tuple[Range, ...]) -> list[int]:
    return [offset for one in found for offset in range(one.start, one.end)]


@given(batches)
def test_a_bitmap_is_a_set_and_returns_what_it_had(rows: list[list[int]]) -> None:
    bitmap, met = Bitmap(SIZE), Counter[int]()
    for batch in rows:
        met.update(bitmap.mark(np.array(batch, np.int64)).tolist())
    every = Counter(offset for batch in rows for offset in batch)
    assert met == every - Counter(set(every))
    assert offsets(ranges(bitmap.words, 0, SIZE)) == sorted(every)
    assert count(bitmap.words) == len(every)


@given(batches, st.lists(spans, max_size=3))
def test_a_filled_range_is_its_addresses(rows: list[list[int]], filled: list[Range]) -> None:
    one, other = Bitmap(SIZE), Bitmap(SIZE)
    for batch in rows:
        assert one.mark(np.array(batch, np.int64)).tolist() == other.mark(np.array(batch, np.int64)).tolist()
    for span in filled:
        met = [offset for piece in one.fill(span.start, span.end) for offset in piece.tolist()]
        assert met == sorted(other.mark(np.arange(span.start, max(span.end, span.start))).tolist())
    assert one.words.tolist() == other.words.tolist()


@given(st.lists(st.integers(0, SIZE - 1), max_size=60), st.integers(1, SIZE))
def test_what_is_missing_is_the_rest(rows: list[int], size: int) -> None:
    bitmap = Bitmap(size)
    bitmap.mark(np.array([row for row in rows if row < size], np.int64))
    assert offsets(ranges(missing(bitmap.words, size), 0, SIZE)) == sorted(set(range(size)) - set(rows))


@given(st.lists(st.integers(0, SIZE - 1), max_size=60), st.integers(1, 5))
def test_the_first_ranges_are_those_of_all(rows: list[int], at_most: int) -> None:
    bitmap = Bitmap(SIZE)
    bitmap.mark(np.array(rows, np.int64))
    every = ranges(bitmap.words, 7, SIZE)
    assert ranges(bitmap.words, 7, at_most) == every[:at_most]
    assert all(before.end < after.start for before, after in pairwise(every))


def test_ranges_go_on_over_the_edges_of_words_and_blocks() -> None:
    bitmap = Bitmap(3 << 20)
    assert [list(piece) for piece in bitmap.fill(63, (1 << 21) + 5)] == []
    assert ranges(bitmap.words, 100, 5) == (Range(163, 100 + (1 << 21) + 5),)


def test_ranges_that_touch_are_joined() -> None:
    assert joined([Range(5, 7), Range(0, 3), Range(3, 5), Range(9, 10)]) == [Range(0, 7), Range(9, 10)]
