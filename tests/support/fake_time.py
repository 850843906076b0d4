"""Time that passes when it is told to: a clock and a sleep that waits for nothing."""

from __future__ import annotations

import time
from collections.abc import Callable


class FakeTime:
    """`sleeps` are the pauses that were asked for; each `clock()` takes `tick_seconds` by itself."""

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
    """Ask again and again what another process is about to make true; fail when it has not by then."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.2)
