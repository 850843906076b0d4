"""The decision, case by case, without a service: what is wanted, stored and running -> what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.clients.emr import Run, RunState
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.job_run_request import TAG_DESIRED, TAG_JOB
from frazil.rollout.readiness import Readiness
from frazil.rollout.state import RolloutState
from frazil.rollout.steps import (
    Cancel,
    GiveUp,
    Halt,
    Leave,
    Prove,
    Start,
    Step,
    Wait,
    judged,
    next_steps,
    token,
)
from tests.support.rollout_world import desired

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
OLD, NEW = desired(1), desired(2)
PROVEN = RolloutState(proven=OLD)
ACTIVE = [state for state in RunState if not state.is_terminal]


def run(
    of: Desired, state: RunState = RunState.RUNNING, *, minutes: float = 1, id: str = "r1", ended: float = 0
) -> Run:
    """A run that was made so many minutes ago, and changed its state `ended` minutes ago."""
    return Run(
        id=id,
        application="app1",
        name="frazil-orders-1",
        state=state,
        details="",
        created_at=NOW - timedelta(minutes=minutes),
        updated_at=NOW - timedelta(minutes=ended),
        tags={TAG_JOB: "orders", TAG_DESIRED: of.digest},
    )


def decided(
    wanted: Desired, state: RolloutState, runs: Sequence[Run], readiness: Readiness = Readiness.NOTHING_YET
) -> list[type[Step]]:
    return [type(step) for step in next_steps(wanted, state, runs, readiness, NOW)]


@pytest.mark.parametrize("state", ACTIVE)
def test_a_run_of_another_generation_ends_first(state: RunState) -> None:
    expected: list[type[Step]] = [Wait] if state is RunState.CANCELLING else [Cancel]
    assert decided(NEW, PROVEN, [run(OLD, state)]) == expected


@pytest.mark.parametrize("state", ACTIVE)
def test_an_unproven_run_is_waited_for(state: RunState) -> None:
    assert decided(NEW, PROVEN, [run(NEW, state)]) == [Wait]


@pytest.mark.parametrize("state", [state for state in RunState if state.is_terminal])
def test_after_the_old_runs_have_ended_the_new_one_is_started(state: RunState) -> None:
    assert decided(NEW, PROVEN, [run(OLD, state)]) == [Start]


def test_a_run_that_is_being_cancelled_is_no_run_to_keep() -> None:
    """Someone cancelled it in the console: it is let end, then started anew."""
    assert decided(OLD, PROVEN, [run(OLD, RunState.CANCELLING)]) == [Wait]
    assert decided(OLD, PROVEN, [run(OLD, RunState.CANCELLED)]) == [Start]


def test_several_wrong_runs_are_cancelled_in_one_round() -> None:
    runs = [run(OLD, id="r1"), run(desired(7), id="r2"), run(NEW, id="r3")]
    steps = next_steps(NEW, PROVEN, runs, Readiness.NOTHING_YET, NOW)
    assert [step.run.id for step in steps if isinstance(step, Cancel)] == ["r1", "r2"]


@pytest.mark.parametrize(
    ("readiness", "state", "minutes", "step"),
    [
        (Readiness.COMMITTED, RunState.PENDING, 1, Wait),  # a run before this one has committed, and died
        (Readiness.COMMITTED, RunState.RUNNING, 1, Prove),
        (Readiness.CAUGHT_UP, RunState.RUNNING, 4.9, Wait),
        (Readiness.CAUGHT_UP, RunState.RUNNING, 5, Prove),
        (Readiness.CAUGHT_UP, RunState.PENDING, 20, Wait),  # what does not run reads nothing
        (Readiness.CAUGHT_UP, RunState.PENDING, 30, GiveUp),
        (Readiness.NOTHING_YET, RunState.RUNNING, 29.9, Wait),
        (Readiness.NOTHING_YET, RunState.RUNNING, 30, GiveUp),
        (Readiness.NOTHING_YET, RunState.QUEUED, 30, GiveUp),
        (
            Readiness.COMMITTED,
            RunState.PENDING,
            60,
            Wait,
        ),  # what has committed is no bad release, and only waits for room
        (Readiness.UNKNOWN, RunState.RUNNING, 5, Wait),
        (Readiness.UNKNOWN, RunState.RUNNING, 30, Leave),  # a quiet topic, and no way to ask Kafka
        (Readiness.UNKNOWN, RunState.RUNNING, 100_000, Leave),
        (Readiness.UNKNOWN, RunState.QUEUED, 30, GiveUp),  # it cannot even start
        (Readiness.PARTLY, RunState.RUNNING, 29.9, Wait),
        (Readiness.PARTLY, RunState.RUNNING, 30, Prove),
        (Readiness.PARTLY, RunState.PENDING, 60, Wait),
    ],
)
def test_when_a_run_has_proven_itself(readiness: Readiness, state: RunState, minutes: float, step: type[Step]) -> None:
    assert decided(NEW, PROVEN, [run(NEW, state, minutes=minutes)], readiness) == [step]


def test_a_drain_that_waits_for_room_is_not_given_up_before_six_hours() -> None:
    drain = desired(2, mode=Mode.DRAIN)
    for readiness in (Readiness.NOTHING_YET, Readiness.UNKNOWN):
        assert decided(drain, PROVEN, [run(drain, RunState.QUEUED, minutes=31)], readiness) == [Wait]
        assert decided(drain, PROVEN, [run(drain, RunState.QUEUED, minutes=359)], readiness) == [Wait]
        assert decided(drain, PROVEN, [run(drain, RunState.QUEUED, minutes=360)], readiness) == [GiveUp]


@pytest.mark.parametrize("mode", Mode)
def test_the_time_of_proof_begins_with_the_run(mode: Mode) -> None:
    wanted = desired(2, mode=mode)
    late = replace(run(wanted, minutes=100), started_at=NOW - timedelta(minutes=29))
    assert decided(wanted, PROVEN, [late]) == [Wait]
    later = replace(late, started_at=NOW - timedelta(minutes=30))
    assert decided(wanted, PROVEN, [later]) == [GiveUp]


def test_a_running_drain_proves_nothing_and_one_commit_nothing_about_its_other_pipelines() -> None:
    drain = desired(2, mode=Mode.DRAIN)
    assert decided(drain, PROVEN, [run(drain, minutes=20)], Readiness.CAUGHT_UP) == [Wait]
    assert decided(drain, PROVEN, [run(drain, RunState.FAILED)], Readiness.CAUGHT_UP) == [Start]
    failed = [run(drain, RunState.FAILED, id=f"r{n}", minutes=9 - n) for n in range(3)]
    assert decided(drain, PROVEN, [run(drain)], Readiness.COMMITTED) == [Wait]
    assert decided(drain, PROVEN, [*failed[:1], run(drain)], Readiness.COMMITTED) == [Wait]
    assert decided(drain, PROVEN, failed, Readiness.COMMITTED) == [GiveUp]


@pytest.mark.parametrize("readiness", [Readiness.UNKNOWN, Readiness.CAUGHT_UP, Readiness.COMMITTED])
def test_a_drain_that_ended_well_is_proof_unless_records_are_known_to_be_left(readiness: Readiness) -> None:
    drain = desired(2, mode=Mode.DRAIN)
    assert decided(drain, PROVEN, [run(drain, RunState.SUCCESS)], readiness) == [Prove]
    assert decided(drain, PROVEN, [run(drain, RunState.SUCCESS)], Readiness.NOTHING_YET) == [Start]


@pytest.mark.parametrize(("readiness", "step"), [(Readiness.UNKNOWN, Start), (Readiness.NOTHING_YET, GiveUp)])
def test_runs_that_lasted_for_days_are_no_failed_tries_unless_they_left_records(
    readiness: Readiness, step: type[Step]
) -> None:
    ended = [run(NEW, RunState.FAILED, id=f"r{n}", minutes=9000 - n, ended=n) for n in range(3)]
    assert decided(NEW, PROVEN, ended, readiness) == [step]


def test_a_stop_is_no_part_of_what_was_proven_or_given_up() -> None:
    stopped = replace(NEW, stopped=("users",))
    assert decided(stopped, RolloutState(proven=NEW), [run(stopped, minutes=31)]) == []
    assert decided(NEW, RolloutState(proven=stopped), [run(NEW, minutes=31)]) == []
    for given_up in (NEW, stopped):
        state = PROVEN.with_given_up(given_up)
        assert [decided(one, state, [run(one)]) for one in (NEW, stopped)] == [[Cancel], [Cancel]]
        assert len(state.with_given_up(NEW).with_given_up(stopped).given_up) == 1


def test_a_generation_to_go_back_to_that_is_stopped_runs_nothing() -> None:
    state = RolloutState(proven=replace(OLD, is_stopped=True)).with_given_up(NEW)
    assert decided(NEW, state, []) == []
    assert decided(NEW, state, [run(NEW)]) == [Cancel]


def test_a_proven_run_needs_no_proof() -> None:
    assert judged(OLD, PROVEN, [run(OLD)]) is None
    assert decided(OLD, PROVEN, [run(OLD, minutes=10_000)]) == []


def test_the_proof_is_asked_of_the_newest_run() -> None:
    runs = [run(NEW, RunState.FAILED, id="r1", minutes=9), run(NEW, id="r2", minutes=1), run(OLD, id="r0")]
    found = judged(NEW, PROVEN, runs)
    assert found is not None
    assert found.id == "r2"


def test_a_proven_generation_that_is_given_up_is_not_run_again() -> None:
    assert decided(OLD, PROVEN.with_given_up(OLD), []) == [Halt]


@pytest.mark.parametrize(("count", "step"), [(0, Start), (2, Start), (3, GiveUp)])
def test_an_unproven_generation_has_three_runs(count: int, step: type[Step]) -> None:
    failed = [run(NEW, RunState.FAILED, id=f"r{n}", minutes=n) for n in range(count)]
    assert decided(NEW, PROVEN, failed) == [step]


@pytest.mark.parametrize(("ended", "step"), [(59, Halt), (61, Start)])
def test_a_proven_generation_has_three_runs_an_hour(ended: float, step: type[Step]) -> None:
    failed = [run(OLD, RunState.FAILED, id=f"r{n}", minutes=200, ended=ended) for n in range(3)]
    assert decided(OLD, PROVEN, failed) == [step]


def test_a_cancelled_run_is_no_failure() -> None:
    cancelled = [run(NEW, RunState.CANCELLED, id=f"r{n}") for n in range(9)]
    assert decided(NEW, PROVEN, cancelled) == [Start]


# ── Which requests of runs are one request ──────────────────────────────────────────────────────
def test_whoever_decides_the_same_asks_for_the_same_run_and_the_next_one_is_another() -> None:
    first, again = token(NEW, None, NOW), token(NEW, None, NOW)
    after, later = (token(NEW, run(NEW, RunState.FAILED, id=f"r{n}"), NOW) for n in (1, 2))
    assert first == again
    assert len({first, after, later, token(OLD, None, NOW)}) == 4
    assert after == token(NEW, run(NEW, RunState.FAILED), NOW + timedelta(days=1))


def test_a_generation_whose_runs_are_too_old_to_be_listed_gets_a_new_run() -> None:
    assert token(NEW, None, NOW) != token(NEW, None, NOW + timedelta(days=400))


# ── Whatever there is ───────────────────────────────────────────────────────────────────────────
GENERATIONS = [desired(n, **more) for n in (1, 2, 3) for more in ({}, {"mode": Mode.DRAIN}, {"is_stopped": True})]
some_runs = st.lists(
    st.builds(
        run,
        st.sampled_from(GENERATIONS),
        st.sampled_from(list(RunState)),
        minutes=st.integers(0, 200),
        ended=st.integers(0, 200),
    ),
    max_size=6,
).map(lambda runs: [replace(one, id=f"r{n}") for n, one in enumerate(runs)])
some_memory = st.builds(
    lambda proven, given_up: RolloutState(proven=proven, given_up=tuple({one.digest: None for one in given_up})),
    st.none() | st.sampled_from(GENERATIONS),
    st.lists(st.sampled_from(GENERATIONS), max_size=3),
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.sampled_from(GENERATIONS), some_memory, some_runs, st.sampled_from(list(Readiness)))
def test_the_three_rules_hold_whatever_there_is(
    wanted: Desired, state: RolloutState, runs: list[Run], readiness: Readiness
) -> None:
    steps = next_steps(wanted, state, runs, readiness, NOW)
    active = {one.id for one in runs if not one.state.is_terminal}
    cancelled = [step.run.id for step in steps if isinstance(step, Cancel)]
    started = [step for step in steps if isinstance(step, Start)]
    assert not (started and active), "no run is started while another has not ended"
    assert len(started) <= 1
    assert all(step.desired.digest not in state.given_up for step in started), "what has failed is not tried again"
    assert not (started and wanted.is_stopped)
    assert len(active) - len(cancelled) - sum(one.state is RunState.CANCELLING for one in runs) <= 1
    for step in steps:
        if isinstance(step, Prove):
            assert step.desired == wanted, "only what is wanted can prove itself anew"
            assert readiness is not Readiness.NOTHING_YET
        if isinstance(step, GiveUp):
            assert state.proven != step.desired, "what has proven itself is not given up"
            mine = [one for one in runs if one.tags[TAG_DESIRED] == step.desired.digest and not one.state.is_terminal]
            assert readiness is Readiness.NOTHING_YET or not any(one.state is RunState.RUNNING for one in mine)
    if not steps:
        assert len(active) <= 1
