"""Facts are read one at a time, at most every 15 seconds, and old ones are served meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from frazil.page.refreshing import EVERY_SECONDS, IDLE_SECONDS, Refreshing


class Readings:
    """Readings that end when the test says so, by a clock that the test sets."""

    def __init__(self) -> None:
        self.now, self.read, self.error = 1000.0, 0, False
        self.waiting: list[tuple[Future[None], Callable[[], None]]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.kept = Refreshing(self._read, self._begin, later=self._later, clock=lambda: self.now)

    def _read(self) -> int:
        self.read += 1
        if self.error:
            raise ValueError("no answer")
        return self.read

    def _begin(self, work: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        self.waiting.append((future, work))
        return future

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        self.later.append((seconds, work))

    def end(self) -> None:
        future, work = self.waiting.pop()
        try:
            work()
            future.set_result(None)
        except ValueError as error:
            future.set_exception(error)

    def look(self) -> int | None:
        known = self.kept.look(patience=0)
        return None if known is None else known.facts


def test_old_facts_are_served_while_newer_ones_are_read() -> None:
    readings = Readings()
    assert readings.look() is None
    readings.end()
    assert readings.look() == 1
    readings.now += EVERY_SECONDS + 1
    assert [readings.look() for _ in range(100)] == [1] * 100
    known = readings.kept.look(patience=0)
    assert known is not None
    assert known.age == EVERY_SECONDS + 1
    assert len(readings.waiting) == 1  # however many look
    readings.end()
    assert (readings.look(), readings.read) == (2, 2)


def test_readings_follow_each_other_until_nobody_looks() -> None:
    readings = Readings()
    readings.look()
    readings.now += 4
    readings.end()
    ((seconds, again),) = readings.later
    assert seconds == EVERY_SECONDS - 4
    readings.now += seconds
    again()
    readings.now += IDLE_SECONDS
    readings.end()
    assert (readings.read, len(readings.later)) == (2, 1)


def test_an_error_of_a_reading_is_raised_and_the_next_one_may_succeed() -> None:
    readings = Readings()
    readings.error = True
    readings.look()
    readings.end()
    with pytest.raises(ValueError, match="no answer"):
        readings.look()
    readings.error, readings.now = False, readings.now + EVERY_SECONDS
    readings.look()
    readings.end()
    assert readings.look() == 2
