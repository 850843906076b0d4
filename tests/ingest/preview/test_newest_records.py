"""A preview reads the newest records of all partitions, or the first ones, whatever gaps the log has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from frazil.clients.kafka import Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline, Table, Topic
from frazil.errors import InvalidInput
from frazil.ingest.preview.newest_records import MOST_OFFSETS, chosen_records

PIPELINE = Pipeline(topic=Topic("t", value="text"), table=Table("s.t"))


class Log:
    """Partitions of records, each at an offset that is a multiple of its step."""

    def __init__(self, steps: Mapping[int, int], end: int = 1000, earliest: int = 0) -> None:
        self.spans = {p: Span(earliest, end) for p in steps}
        self._steps, self.looks = steps, list[int]()

    def stretches(
        self, topic: str, ends: Mapping[int, tuple[int, int]], isolation: Any, wanted: Callable[[Record], bool]
    ) -> list[Record]:
        self.looks.append(sum(end - start for start, end in ends.values()))
        places = [(p, o) for p, (start, end) in ends.items() for o in range(start, end) if o % self._steps[p] == 0]
        return [Record(p, o, None, b"", 1000 * o + p, 0, ()) for p, o in places]

    def chosen(self, count: int, *, from_start: bool = False) -> list[tuple[int, int]]:
        found = chosen_records(PIPELINE, self, self.spans, count=count, from_start=from_start)  # type: ignore[arg-type]
        return [(record.partition, record.offset) for record in found]


def test_the_newest_records_come_from_all_partitions_and_the_oldest_is_first() -> None:
    log = Log({0: 1, 1: 1})
    assert log.chosen(4) == [(0, 998), (1, 998), (0, 999), (1, 999)]
    assert log.chosen(3) == [(1, 998), (0, 999), (1, 999)]
    assert log.chosen(3, from_start=True) == [(0, 0), (1, 0), (0, 1)]


class LargeLog(Log):
    """A log of which so many offsets at a time are too many bytes."""

    most = 0

    def stretches(self, *arguments: Any) -> list[Record]:
        found = super().stretches(*arguments)
        if self.looks[-1] > self.most:
            raise MemoryError("more than 64 MB")
        return found


def test_large_records_are_refused_or_fewer_are_shown() -> None:
    log = LargeLog({0: 1})
    with pytest.raises(InvalidInput, match=r"topic t: more than 64 MB. Ask for fewer: --records"):
        log.chosen(5)
    log = LargeLog({0: 2})
    log.most = 5
    assert log.chosen(5) == [(0, 996), (0, 998)]


@pytest.mark.parametrize("from_start", [False, True])
def test_gaps_widen_the_window_until_there_are_enough(from_start: bool) -> None:
    log = Log({0: 100})
    assert len(log.chosen(5, from_start=from_start)) == 5
    assert log.looks == [5, 40, 320, 1000]


def test_a_log_with_few_records_is_read_once_in_full_and_an_empty_one_never() -> None:
    log = Log({0: 1}, end=3, earliest=1)
    assert log.chosen(20) == [(0, 1), (0, 2)]
    assert log.looks == [2]
    assert Log({0: 1}, end=0).chosen(20) == []


def test_many_partitions_are_read_within_bounds() -> None:
    log = Log(dict.fromkeys(range(5000), 10**9), end=10**6)
    assert log.chosen(1000) == []
    assert max(log.looks) <= MOST_OFFSETS
