"""Drains that their timeout ends: what they show about their generation, and what the deployed reconciler then does.

A deployment sets the timeout to `ingest_minutes`, 15 by default, which is less than `proof_seconds`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from frazil.clients.emr import Run, RunState
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.readiness import Readiness
from frazil.rollout.run_proof import Reached
from frazil.rollout.state import RolloutState, stored_state
from frazil.rollout.steps import GiveUp, Leave, Prove, Start, Step, next_steps
from tests.rollout import test_steps
from tests.rollout.test_steps import NOW
from tests.support.deployed_reconciler import Deployed, Driver, lands, lands_nothing, without_services
from tests.support.rollout_world import JOB, World, desired, release, replaced

BUSY, HALF = {"orders": True, "users": True}, {"orders": True, "users": False}
OLD, NEW = (desired(n, mode=Mode.DRAIN, timeout_minutes=15) for n in (1, 2))


# ── Minute by minute ────────────────────────────────────────────────────────────────────────────
def deployed(second: Driver, *, hangs: bool = True) -> tuple[Deployed, Desired, Desired]:
    """A job with a proven generation, whose second one has just been deployed and does not end its drains."""
    made = Deployed(World(), {1: lands(BUSY), 2: second}, hangs={2} if hangs else set())
    first = made.world.want(OLD)
    made.live(25)
    assert stored_state(made.world.store, JOB).proven == first
    return made, first, made.world.want(replaced(first, release=release("2.0.0").key))


@pytest.mark.parametrize(
    "second",
    [
        lands_nothing(BUSY),
        pytest.param(lands_nothing(HALF), marks=pytest.mark.long),
        pytest.param(lambda name: None, marks=pytest.mark.long),
        lambda name: Reached.COMMITTED if name == "orders" else Reached.NOTHING,
    ],
    ids=["all", "one, and one is quiet", "before the first", "one, and one commits"],
)
def test_a_generation_that_hangs_is_rolled_back(second: Driver) -> None:
    made, first, wanted = deployed(second)
    made.live(60)
    assert stored_state(made.world.store, JOB).given_up == (wanted.digest,)
    made.live(120)
    state = stored_state(made.world.store, JOB)
    assert (state.proven, state.given_up) == (first, (wanted.digest,))
    tried = made.world.runs_of(wanted)
    assert [run.state(made.world.time.now) for run in tried] == ["CANCELLED"] * 3
    assert made.generations()[-1] == 1
    assert made.runs()[-1].born > tried[-1].born
    before = len(made.runs())
    made.live(60)
    assert len(made.runs()) - before == 4, "the schedule lands the topics again"
    assert set(made.generations()[before:]) == {1}
    assert made.errors == []


def test_a_first_generation_that_hangs_halts_and_is_an_error() -> None:
    made = Deployed(World(), {1: lands_nothing(BUSY)}, hangs={1})
    made.world.want(OLD)
    made.live(180)
    assert made.generations() == [1, 1, 1]
    assert "RolloutFailed" in made.errors, "an alarm counts it"


def test_a_backlog_that_needs_many_runs_rolls_nothing_back() -> None:
    made, _, wanted = deployed(lands(BUSY))
    made.live(4 * 60)
    state = stored_state(made.world.store, JOB)
    assert (state.proven, state.given_up) == (wanted, ())
    assert made.generations()[-1] == 2
    assert made.errors == []


@pytest.mark.parametrize("runs", [1, 2, 9])
def test_a_pipeline_that_waits_for_its_turn_rolls_nothing_back(runs: int) -> None:
    """More pipelines than a drain lands at once, and those before it have a backlog."""
    made, first, wanted = deployed(lands(BUSY))

    def driver(name: str) -> Reached | None:
        has_turn = name == "orders" or made.generations().count(2) > runs
        return Reached.COMMITTED if has_turn else None

    made.drivers[2] = driver
    made.live(18 * runs)
    assert (stored_state(made.world.store, JOB).proven, made.generations()[-1]) == (first, 2)
    made.live(60)
    state = stored_state(made.world.store, JOB)
    assert (state.proven, state.given_up) == (wanted, ())
    assert made.errors == []


@pytest.mark.long
def test_turns_that_were_too_short_roll_nothing_back_until_there_were_three() -> None:
    for short in (2, 3):
        made, first, wanted = deployed(lands(BUSY))

        def driver(name: str, made: Deployed = made, short: int = short) -> Reached:
            has_landed = name == "orders" or made.generations().count(2) > short
            return Reached.COMMITTED if has_landed else Reached.NOTHING

        made.drivers[2] = driver
        made.live(120)
        state = stored_state(made.world.store, JOB)
        expected = (wanted, ()) if short == 2 else (first, (wanted.digest,))
        assert (state.proven, state.given_up) == expected


def test_drains_that_hang_because_of_an_outage_roll_nothing_back() -> None:
    made, _, wanted = deployed(without_services)
    made.live(3 * 60)
    assert stored_state(made.world.store, JOB).given_up == ()
    assert made.generations().count(2) < 3 * 60 // 15, "the schedule starts them, not each pass"
    made.drivers[2], made.hangs = lands(BUSY), set()
    made.live(60)
    assert stored_state(made.world.store, JOB).proven == wanted
    assert made.errors == []


@pytest.mark.long
def test_drains_that_fail_while_a_service_of_one_pipeline_does_not_answer_roll_nothing_back() -> None:
    made, _, wanted = deployed(lambda name: Reached.COMMITTED if name == "orders" else Reached.UNAVAILABLE, hangs=False)
    made.fails = {2}
    made.live(3 * 60)
    assert stored_state(made.world.store, JOB).given_up == ()
    made.drivers[2], made.fails = lands(BUSY), set()
    made.live(60)
    assert stored_state(made.world.store, JOB).proven == wanted


@pytest.mark.long
def test_an_operator_who_cancels_drains_rolls_nothing_back() -> None:
    made, _, wanted = deployed(lands_nothing(BUSY))
    for _ in range(12):
        made.live(10)
        for run in made.world.emr.active():
            made.world.emr.cancel_job_run(applicationId="app1", jobRunId=run.id)
    assert len(made.world.runs_of(wanted)) > 6
    assert stored_state(made.world.store, JOB).given_up == ()


# ── Decision by decision ────────────────────────────────────────────────────────────────────────
def run(*, state: RunState = RunState.CANCELLED, queued: float = 0, **more: Any) -> Run:
    """A run that ended just now, and was queued for so many minutes."""
    return replace(test_steps.run(NEW, state, **more), queued_for=timedelta(minutes=queued))


def decided(*runs: Run, readiness: Readiness, execution: str | None = None) -> type[Step]:
    (step,) = next_steps(NEW, RolloutState(proven=OLD), runs, readiness, NOW, execution=execution)
    return type(step)


FAILS = {Readiness.NOTHING_YET, Readiness.STUCK}
PROVES = {Readiness.COMMITTED, Readiness.CAUGHT_UP}
WAITS = {Readiness.UNKNOWN, Readiness.PARTLY}


@pytest.mark.parametrize(("readiness", "count"), product(Readiness, (1, 2, 3, 20)))
def test_what_drains_that_timed_out_show(readiness: Readiness, count: int) -> None:
    runs = [run(minutes=17, id=f"r{n}") for n in range(count)]
    step = decided(*runs, readiness=readiness)
    if readiness in PROVES:
        assert step is Prove
    elif readiness in WAITS:
        assert step is Leave
        assert decided(*runs, readiness=readiness, execution="e1") is Start
    else:
        assert step is (GiveUp if readiness in FAILS and count >= 3 else Start)


@pytest.mark.parametrize("readiness", Readiness)
@pytest.mark.parametrize(("minutes", "queued"), [(1, 0), (14.9, 0), (60, 50), (400, 390)])
def test_a_drain_that_was_cancelled_before_its_timeout_shows_nothing(
    readiness: Readiness, minutes: float, queued: float
) -> None:
    runs = [run(minutes=minutes, queued=queued, id=f"r{n}") for n in range(9)]
    assert decided(*runs, readiness=readiness) is Start


def test_failed_drains_and_those_that_timed_out_count_together() -> None:
    ended = [run(minutes=3, id=f"r{n}", state=RunState.FAILED) for n in range(2)]
    assert decided(*ended, run(minutes=17, id="r9"), readiness=Readiness.NOTHING_YET) is GiveUp
    assert decided(*ended, run(minutes=17, id="r9"), readiness=Readiness.BEHIND) is Start


@pytest.mark.parametrize("readiness", [Readiness.BEHIND, Readiness.STUCK])
def test_a_drain_that_succeeds_has_landed_all_its_pipelines(readiness: Readiness) -> None:
    assert decided(run(minutes=9, state=RunState.SUCCESS), readiness=readiness) is Prove
    failed = [run(minutes=9, id=f"r{n}", state=RunState.FAILED) for n in range(3)]
    assert decided(*failed, readiness=readiness) is GiveUp
