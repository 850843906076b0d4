"""Threads for questions that may hang: Python does not wait for them when it ends, and they are replaced more and more seldom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")


HANGING_SECONDS = 5.0
"""A thread whose work takes longer may hang: then new work does not wait for it."""


class DaemonThreads:
    """A few threads that take work in its order. If the work of all hangs, new work gets one thread more.

    With n threads above the usual number, the next one comes n seconds after the last: a catalog that never answers costs a few
    hundred threads in a night. After an outage each answer adds a thread, up to the usual number; one above it ends with its work.
    """

    def __init__(self, count: int, *, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._count, self._name, self._clock = count, name, clock
        self._lock = threading.Lock()
        self._began: dict[int, float | None] = {}
        """By the number of a thread: the time at which its work began; None if it has none."""
        self._made, self._last = 0, float("-inf")
        for _ in range(count):
            self._add()

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Have a thread do the work. A future that is cancelled before a thread has it costs nothing."""
        answer: Future[_T] = Future()
        with self._lock:
            now, more = self._clock(), len(self._began) - self._count
            if all(self._is_hanging(began, now) for began in self._began.values()) and now - self._last >= more:
                self._last = now
                self._add()
        self._queue.put((answer, work))
        return answer

    @staticmethod
    def _is_hanging(began: float | None, now: float) -> bool:
        return began is not None and now - began >= HANGING_SECONDS

    def _add(self) -> None:
        number, self._made = self._made, self._made + 1
        self._began[number] = None
        threading.Thread(target=self._work, args=(number,), name=f"{self._name}-{number}", daemon=True).start()

    def _work(self, number: int) -> None:
        while True:
            answer, work = self._queue.get()
            if not answer.set_running_or_notify_cancel():
                continue
            with self._lock:
                self._began[number] = self._clock()
            _answer(answer, work)
            with self._lock:
                if not self._goes_on(number):
                    return

    def _goes_on(self, number: int) -> bool:
        """Return whether a thread whose work has ended takes more, and add one in place of one that hangs."""
        self._began[number], now = None, self._clock()
        able = sum(not self._is_hanging(began, now) for began in self._began.values())
        if able > self._count:
            del self._began[number]
            return False
        if able < self._count:
            self._add()
        return True


def begun(work: Callable[[], _T], *, name: str) -> Future[_T]:
    """Do the work on a thread of its own, at once."""
    answer: Future[_T] = Future()
    threading.Thread(target=_answer, args=(answer, work), name=name, daemon=True).start()
    return answer


def _answer(answer: Future[Any], work: Callable[[], Any]) -> None:
    try:
        answer.set_result(work())
    except BaseException as error:  # noqa: BLE001 - who reads the answer gets it
        answer.set_exception(error)
