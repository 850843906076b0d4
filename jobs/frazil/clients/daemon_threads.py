"""Threads for questions that may hang: Python does not wait for them when it ends, and a hanging one is no new one each time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")


class DaemonThreads:
    """A few threads that take work in its order. One whose work hangs is missing until that ends."""

    def __init__(self, count: int, *, name: str) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        for number in range(count):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Have a thread do the work. A future that is cancelled before a thread has it costs nothing."""
        answer: Future[_T] = Future()
        self._queue.put((answer, work))
        return answer

    def _work(self) -> None:
        while True:
            answer, work = self._queue.get()
            if not answer.set_running_or_notify_cancel():
                continue
            _answer(answer, work)


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
