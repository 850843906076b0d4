"""How far a batch reads each partition, so that it has what is before a time and nothing behind it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from frazil.ingest.plan.planner import slice_ends

DAY = 86_400_000


class Log:
    """Partitions with the timestamps of their records, in milliseconds."""

    def __init__(self, *partitions: Sequence[int]) -> None:
        self.partitions, self.asked = partitions, 0

    def at(self, ms: int) -> dict[int, int]:
        self.asked += 1
        highest = [[max(times[: n + 1]) for n in range(len(times))] for times in self.partitions]
        return {p: bisect_left(times, ms) for p, times in enumerate(highest)}

    def batches(self, most: int) -> list[dict[int, int]]:
        """Read all in slices; return where each ended."""
        start, stable = (
            dict.fromkeys(range(len(self.partitions)), 0),
            {p: len(t) for p, t in enumerate(self.partitions)},
        )
        found, ms = [start], 0
        while start != stable:
            start, ms = slice_ends(start, stable, most, self.at, after_ms=ms)
            found.append(start)
            assert len(found) < 200
        return found


def test_no_record_comes_in_an_earlier_slice_than_one_before_it() -> None:
    dice = Random(1)
    times = [sorted(dice.randrange(30 * DAY) + 1_700_000_000_000 for _ in range(n)) for n in (1, 40, 700, 0, 259)]
    log = Log(*times)
    ends = log.batches(100)
    for before, after in pairwise(ends):
        size = sum(after[p] - before[p] for p in after)
        assert size <= 100
        assert size >= 50 or after == ends[-1]
        newest = max((times[p][end - 1] for p, end in after.items() if end), default=0)
        assert all(times[p][end] > newest for p, end in after.items() if end < len(times[p]))
    assert log.asked / (len(ends) - 1) < 20


def test_all_is_read_at_once_if_it_is_little_enough() -> None:
    log = Log([1, 2], [5])
    assert log.batches(3)[1:] == [{0: 2, 1: 1}]
    assert log.asked == 0


@pytest.mark.parametrize("times", [[7] * 20, [0] * 20])
def test_records_of_one_time_are_one_slice(times: list[int]) -> None:
    assert Log([1, *times], times).batches(4)[-1] == {0: 21, 1: 20}


def test_a_record_far_ahead_holds_back_its_partition_and_wedges_nothing() -> None:
    ends = Log([1, 2, 3_000_000_000_000, 3, 4, 5], [*range(1, 30)]).batches(5)
    assert ends[-1] == {0: 6, 1: 29}
    assert [end for end in ends if end[1] < 29][-1][0] == 2
