"""Threads that hang are replaced, more and more seldom, and not kept once they go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from frazil.clients.daemon_threads import HANGING_SECONDS, DaemonThreads


class Service:
    """A service that may hang, and threads that ask it, by a clock that the test sets."""

    def __init__(self) -> None:
        self.now, self.answering, self.pause = 1_000.0, threading.Event(), threading.Event()
        self.threads = DaemonThreads(2, name="asking", clock=lambda: self.now)

    def hang(self, count: int = 1) -> None:
        """Ask questions that get no answer, and wait until threads have them."""
        for _ in range(count):
            asked = threading.Event()

            def ask(asked: threading.Event = asked) -> None:
                asked.set()
                self.answering.wait(30)

            self.threads.submit(ask)
            assert asked.wait(10)

    def has(self, count: int) -> bool:
        """Return whether so many threads are there; one that has answered may be about to end, or to add another."""
        for _ in range(1_000):
            if len(self.threads._began) == count or self.pause.wait(0.01):
                break
        return len(self.threads._began) == count

    def is_answered(self) -> bool:
        answer = self.threads.submit(lambda: True)
        try:
            return answer.result(10 if len(self.threads._began) > 2 else 0.05)
        except TimeoutError:
            answer.cancel()
            return False


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.answering.set()


def test_work_behind_threads_that_hang_gets_a_new_one(service: Service) -> None:
    service.hang(2)
    assert not service.is_answered()
    service.now += HANGING_SECONDS
    assert service.is_answered()
    assert service.has(4)  # two hang, and the usual two are there again


def test_the_more_threads_hang_the_later_the_next_one_comes(service: Service) -> None:
    service.hang(2)
    for above in range(10):
        service.now += max(HANGING_SECONDS, above)
        service.hang()
    assert len(service.threads._began) == 12
    service.now += 9.9
    service.threads.submit(lambda: None).cancel()
    assert len(service.threads._began) == 12
    service.now += 0.1
    assert service.is_answered()


def test_threads_above_the_usual_number_end_with_their_work(service: Service) -> None:
    service.hang(2)
    service.now += HANGING_SECONDS
    assert service.is_answered()
    service.answering.set()
    assert service.has(2)
