"""The parts of the client that no behaviour of a registry shows; the rest is in `test_client.py`."""

from __future__ import annotations

import threading

import pytest

from frazil.clients.registry.client import schema_of
from frazil.clients.registry.http import Answer, several
from frazil.errors import RegistryUnavailable


def test_several_answers_come_in_the_order_of_the_questions() -> None:
    both = threading.Barrier(2, timeout=10)

    def slow_first(number: int) -> int:
        if number < 2:
            both.wait()  # neither goes on before the other has begun: they are asked at the same time
        return number * 10

    assert several(slow_first, [0, 1, 2, 3, 4, 5]) == [0, 10, 20, 30, 40, 50]


def test_one_question_starts_no_thread() -> None:
    asked_by: list[str] = []
    several(lambda number: asked_by.append(threading.current_thread().name), [1])
    assert asked_by == [threading.current_thread().name]
    assert several(lambda number: number, []) == []


def test_a_version_without_a_schema_is_an_outage() -> None:
    with pytest.raises(RegistryUnavailable, match="there is no schema in it"):
        schema_of(Answer("http://registry", 200, {"id": 1}), 1)


def test_the_first_failure_ends_the_asking_of_several() -> None:
    asked: list[int] = []

    def ask(number: int) -> int:
        asked.append(number)
        raise RegistryUnavailable(f"number {number} is down")

    with pytest.raises(RegistryUnavailable, match="number 0 is down"):
        several(ask, range(1000))
    assert len(asked) <= 8  # those that were asked when the first failed
