"""Which requests of runs are one request."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from frazil.clients.emr import Run, RunState
from frazil.rollout.steps import token
from tests.support.rollout_world import desired

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
OLD, NEW = desired(1), desired(2)
LAST = Run(
    id="r1",
    application="app1",
    name="frazil-orders-2",
    state=RunState.FAILED,
    details="",
    created_at=NOW,
    updated_at=NOW,
)


def test_whoever_decides_the_same_asks_for_the_same_run_and_the_next_one_is_another() -> None:
    first, again = token(NEW, None, NOW), token(NEW, None, NOW)
    after, later = (token(NEW, replace(LAST, id=f"r{n}"), NOW) for n in (1, 2))
    assert first == again
    assert len({first, after, later, token(OLD, None, NOW)}) == 4
    assert after == token(NEW, LAST, NOW + timedelta(days=1))


def test_a_generation_whose_runs_are_too_old_to_be_listed_gets_a_new_run() -> None:
    assert token(NEW, None, NOW) != token(NEW, None, NOW + timedelta(days=400))
