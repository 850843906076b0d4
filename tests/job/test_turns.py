"""The turns of pipelines: as many at once as may be, the stalest first, and none without end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from frazil.job import turns
from frazil.job.turns import Turns


def test_the_stalest_comes_first_and_no_more_than_may_be_are_in_their_turn() -> None:
    shared, order, together = Turns(1), list[float](), list[int]()

    def take(fresh_until: float) -> None:
        with shared.turn(fresh_until):
            order.append(fresh_until)
            together.append(shared._taken)

    with ThreadPoolExecutor(4) as threads:
        with shared.turn(0.0):
            runs = []
            for number, fresh_until in enumerate((30.0, 10.0, 20.0)):
                runs.append(threads.submit(take, fresh_until))
                waiting_of(shared, number + 1)
        for run in runs:
            run.result(20)
    assert order == [10.0, 20.0, 30.0]
    assert set(together) == {1}


def waiting_of(shared: Turns, many: int) -> None:
    """Return when so many wait."""
    while True:
        with shared._changed:
            if len(shared._waiting) == many:
                return


def test_a_turn_that_ended_early_ends_once() -> None:
    shared = Turns(1)
    with shared.turn(0.0) as end:
        end()
        with shared.turn(1.0):
            assert shared._taken == 1
        end()
    assert shared._taken == 0


def test_a_turn_ends_with_an_error() -> None:
    shared = Turns(1)
    with pytest.raises(RuntimeError), shared.turn(0.0):
        raise RuntimeError
    assert shared._taken == 0


def test_one_that_hangs_holds_up_no_other_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "WAIT_SECONDS", 0.01)
    shared = Turns(1)
    with shared.turn(0.0), shared.turn(1.0):
        assert shared._taken == 2
    assert shared._taken == 0
