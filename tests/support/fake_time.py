"""Simulated time: a clock that tests advance, and a sleep that returns at once."""

from __future__ import annotations

import time
from collections.abc import Callable


class FakeTime:
    """`sleeps` are the requested pauses. Each call of `clock()` advances the time by `tick_seconds`."""

    def __init__(self, *, tick_seconds: float = 0.0) -> None:
        self.now = 1000.0
        self.tick_seconds = tick_seconds
        self.sleeps: list[float] = []

    def clock(self) -> float:
        self.now += self.tick_seconds
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def until(is_so: Callable[[], bool], *, seconds: float) -> None:
    """Poll a condition that another process makes true. Fail if it is not true in time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.2)
