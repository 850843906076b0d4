"""Facts that are read in the background, so that a person who looks waits at most two seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

EVERY_SECONDS = 15.0
"""Time between the beginnings of two readings."""
OLDEST_SECONDS = 30.0
"""A person who looks waits a little for newer facts than these."""
PATIENCE_SECONDS = 1.5
"""The longest time that a person waits."""
IDLE_SECONDS = 600.0
"""After this time without a look, nothing is read until the next one."""


class Known(NamedTuple, Generic[T]):
    """Facts, and how many seconds ago their reading began."""

    facts: T
    age: float


class Refreshing(Generic[T]):
    """Facts of one kind, with one reading at a time. Safe to share between threads.

    The first look begins a reading. With `later`, the next one follows every 15 seconds, as long as a person looks now and then;
    without it, a look begins it.
    """

    def __init__(
        self,
        read: Callable[[], T],
        begin: Callable[[Callable[[], None]], Future[Any]],
        *,
        later: Callable[[float, Callable[[], None]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._begin, self._later, self._clock = read, begin, later, clock
        self._lock = threading.Lock()
        self._known: tuple[T, float] | None = None
        self._running: Future[Any] | None = None
        self._began, self._looked = float("-inf"), float("-inf")

    def look(self, patience: float = PATIENCE_SECONDS) -> Known[T] | None:
        """Return the newest facts; None if the first reading takes longer than `patience`. Raises what a reading raises."""
        self._looked = now = self._clock()
        running, known = self._started(), self._known
        if running is not None and (known is None or now - known[1] > OLDEST_SECONDS):
            wait([running], timeout=patience)
            if running.done():
                running.result()
        return None if self._known is None else Known(self._known[0], self._clock() - self._known[1])

    def _started(self) -> Future[Any] | None:
        """Begin a reading if none runs and the last one is long ago; return the newest one."""
        with self._lock:
            is_running = self._running is not None and not self._running.done()
            if not is_running and self._clock() - self._began >= EVERY_SECONDS:
                self._began = self._clock()
                self._running = self._begin(self._work)
            return self._running

    def _work(self) -> None:
        began = self._began
        try:
            self._known = self._read(), began
        finally:
            if self._later is not None and self._clock() - self._looked < IDLE_SECONDS:
                self._later(max(EVERY_SECONDS - (self._clock() - began), 0.0), self._again)

    def _again(self) -> None:
        self._started()


def begun_later(seconds: float, work: Callable[[], None]) -> None:
    """Do the work in some seconds, on a thread that does not keep the process."""
    timer = threading.Timer(seconds, work)
    timer.daemon = True
    timer.start()
