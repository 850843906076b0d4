"""Jobs that deployment has removed: their runs are found on every application, and end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.errors import EmrUnavailable, LockHeld, RolloutFailed
from frazil.rollout.desired import Desired, Mode, desired_document, desired_key
from frazil.rollout.readiness import Readiness
from frazil.rollout.removed_jobs import end_left_runs, left_runs, need_of, removed_jobs, stop_former
from frazil.rollout.run_proof import proof_prefix
from frazil.rollout.state import LEASE_SECONDS, Lease, stored_state
from tests.support.deployed_reconciler import Deployed, Driver, lands, lands_nothing
from tests.support.rollout_world import JOB, Calls, Killed, World, desired, replaced


@pytest.fixture
def world() -> World:
    """A group's job that followed its topics, on two applications, before its group was removed."""
    made = World()
    first = made.want(desired(mode=Mode.FOLLOW))
    made.settle()
    made.readiness[2] = Readiness.UNKNOWN
    made.want(replaced(first, application="app2"))
    made.settle()
    assert stored_state(made.store, JOB).applications == ("app1", "app2")
    made.store.put(f"{proof_prefix(JOB)}run.json", b"{}")
    made.store.put("reconcile/kept/x.json", b"{}")
    assert removed_jobs(made.store) == ()
    made.store.delete(desired_key(JOB))
    return made


def ends(world: World, calls: Calls | None = None, *, holder: str = "a", patience_seconds: float = 3600) -> bool:
    made = world.reconciler(calls)
    return end_left_runs(made, JOB, holder=holder, patience_seconds=patience_seconds, on_wait=lambda why: None)


def test_the_run_of_a_removed_job_is_found_and_ends(world: World) -> None:
    assert removed_jobs(world.store) == (JOB,)
    run = world.running()
    assert [each.id for each in left_runs(world.reconciler(), JOB)] == [run.id]
    assert ends(world)
    assert world.emr.active() == []
    assert run.state(world.time.now) == "CANCELLED"
    writes = world.store.writes
    assert not ends(world)
    assert world.store.writes == writes, "a job without runs is left as it is"


def test_a_run_that_does_not_end_is_an_error_and_a_reconciler_at_work_is_one_too(world: World) -> None:
    with pytest.raises(RolloutFailed, match="have to end"):
        ends(world, patience_seconds=0)
    assert stored_state(world.store, JOB).holder is None
    Lease(world.store, JOB, holder="function", clock=world.time.clock).take()
    with pytest.raises(LockHeld):
        ends(world)


def test_an_application_that_is_deleted_has_no_run(world: World) -> None:
    world.emr.closed.add("app1")
    assert ends(world)


def test_a_group_that_is_declared_again_continues(world: World) -> None:
    ends(world)
    world.readiness[3] = Readiness.COMMITTED
    again = world.want(replace(desired(3), application="app2"))
    assert world.run() == again
    assert removed_jobs(world.store) == ()


@pytest.mark.long
def test_a_command_that_dies_at_any_call_is_finished_by_the_next_one(world: World) -> None:
    for number in range(60):
        calls = Calls(dies_at=number)
        try:
            ends(world, calls)
        except Killed:
            world.time.sleep(LEASE_SECONDS + 1)
        ends(world, holder="b")
        assert world.emr.active() == [], number
        if not calls.is_dead:
            break
        again = world.want(desired(number + 10, mode=Mode.FOLLOW))
        world.settle()
        assert world.runs_of(again)
        world.store.delete(desired_key(JOB))
    assert number > 5


BUSY = {"orders": True, "users": True}
MODES = pytest.mark.parametrize("mode", list(Mode))


def stopped(world: World, calls: Calls | None = None, *, patience_seconds: float = 86_400) -> bool:
    made = world.reconciler(calls)
    return stop_former("app1", made, on_wait=lambda why: None, patience_seconds=patience_seconds)


def deployed(mode: Mode, second: Driver | None) -> tuple[Deployed, Desired, Desired]:
    """A job that ran on the first application for an hour, and whose deployment has just named the second one."""
    world = World()
    made = Deployed(world, {1: lands(BUSY), 2: second})
    first = world.want(desired(mode=mode))
    made.live(60)
    return made, first, world.want(replaced(first, application="app2"))


def applications(made: Deployed, generation: int) -> set[str]:
    tag = str(generation)
    return {run.request["applicationId"] for run in made.runs() if run.tags["frazil:generation"] == tag}


@MODES
def test_the_deployed_reconciler_moves_a_job(mode: Mode) -> None:
    made, _, second = deployed(
        mode, lands(BUSY)
    )  # the world refuses a start beside another run, on whichever application
    assert need_of(made.world.store, "app1") == f"job {JOB} has not proven a generation on another application"
    made.live(90)
    assert stored_state(made.world.store, JOB).proven == second
    assert (applications(made, 1), applications(made, 2)) == ({"app1"}, {"app2"})
    assert len(made.world.runs_of(second)) == (1 if mode is Mode.FOLLOW else 1 + 90 // 15)
    assert stopped(made.world)
    assert made.world.emr.states["app1"] == "STOPPED"
    made.live(60)
    assert made.world.emr.states["app1"] == "STOPPED", "nothing starts it again"
    assert made.errors == []


@MODES
@pytest.mark.parametrize("bad", ["crashes", pytest.param("lands nothing", marks=pytest.mark.long)])
def test_a_job_returns_to_the_former_application_if_the_new_one_does_not_work(mode: Mode, bad: str) -> None:
    made, first, second = deployed(mode, None if bad == "crashes" else lands_nothing(BUSY))
    made.live(180)
    state = stored_state(made.world.store, JOB)
    assert (state.proven, state.given_up) == (first, (second.digest,))
    assert made.runs()[-1].request["applicationId"] == "app1"
    with pytest.raises(RolloutFailed, match="has not proven a generation"):
        stopped(made.world)
    assert made.world.emr.states["app1"] == "STARTED"
    again = made.world.want(replaced(second))
    made.drivers[3] = lands(BUSY)
    made.live(120)
    assert stored_state(made.world.store, JOB).proven == again
    assert stopped(made.world)
    assert made.errors == []


@MODES
def test_a_job_returns_to_the_former_application_if_no_run_ever_starts_on_the_new_one(mode: Mode) -> None:
    made, first, second = deployed(mode, lands(BUSY))
    made.world.emr.full.add("app2")
    made.live(60 if mode is Mode.FOLLOW else 7 * 60)
    state = stored_state(made.world.store, JOB)
    assert (state.proven, state.given_up) == (first, (second.digest,))
    assert made.runs()[-1].request["applicationId"] == "app1"
    assert {run.state(made.world.time.now) for run in made.world.runs_of(second)} == {"CANCELLED"}


def test_one_group_that_has_not_moved_keeps_the_application() -> None:
    made, first, _ = deployed(Mode.FOLLOW, lands(BUSY))
    made.live(60)
    assert need_of(made.world.store, "app1") == ""
    other = replace(first, job="orders-eu")
    made.world.store.put(desired_key(other.job), desired_document(other))
    assert need_of(made.world.store, "app1") == "the runs of job orders-eu start on it"


def test_an_application_that_is_no_longer_declared_blocks_no_job() -> None:
    """It was deleted before the job had proven itself elsewhere, so the job still remembers it."""
    world = World()
    first = world.want(desired())
    world.settle()
    world.readiness[2] = Readiness.UNKNOWN
    world.want(replaced(first, application="app2"))
    world.settle()
    assert stored_state(world.store, JOB).applications == ("app1", "app2")
    world.emr.closed.add("app1")
    world.readiness[2] = Readiness.COMMITTED
    world.settle()
    assert stored_state(world.store, JOB).applications == ("app2",)
    world.emr.closed = {"app2"}
    with pytest.raises(EmrUnavailable, match="AccessDenied"):
        world.run()


def test_an_application_that_is_deleted_after_the_move_is_forgotten_once_and_is_no_drift() -> None:
    made, _, second = deployed(Mode.FOLLOW, lands(BUSY))
    made.live(60)
    assert stopped(made.world)
    assert stored_state(made.world.store, JOB).applications == ("app1", "app2")
    made.world.emr.closed.add("app1")
    assert made.world.reconciler().drift(JOB) == ()
    assert made.world.reconciler().watch(JOB, patience_seconds=0) == second
    made.live(5)
    assert stored_state(made.world.store, JOB).applications == ("app2",)
    writes = made.world.store.writes
    for _ in range(3):
        made.reconcile({})
    assert (made.world.store.writes, made.errors) == (writes, [])


def test_the_application_to_which_a_job_returned_is_never_taken_for_deleted() -> None:
    made, _, _ = deployed(Mode.FOLLOW, None)
    made.live(60)
    made.world.emr.closed.add("app1")
    with pytest.raises(EmrUnavailable, match="AccessDenied"):
        made.world.run()


# ── A reconciler that pauses before it starts a run, while another one moves the job ────────────
def paused(mode: Mode) -> tuple[Deployed, Calls, Desired]:
    """A job whose move to the second application happens while calls of a reconciler pause before the start of a run.

    Its clock and its lease go on. A run of the first generation has just died, so the reconciler starts the next one.
    """
    world, calls = World(), Calls()
    made = Deployed(world, {1: lands(BUSY), 2: lands(BUSY)})
    first = world.want(desired(mode=mode))
    made.live(62 if mode is Mode.DRAIN else 60)
    for run in world.emr.active():
        world.emr.kill(run.id)
    second = replaced(first, application="app2")

    def move() -> None:
        if calls.made[-1] == "start_job_run" and world.emr.started is not beside:
            world.want(second)
            made.live(90)
            assert stored_state(world.store, JOB).proven == second
            assert stopped(world), "no job needs the former application"
            world.emr.started = beside

    calls.at = dict.fromkeys(range(1000), move)
    return made, calls, second


def beside(request: dict[str, Any]) -> None:
    """Allow a start beside another run, which no lease can exclude: EMR Serverless knows no fencing token."""


def assert_only_the_second_runs(made: Deployed, second: Desired) -> None:
    (late,) = (run for run in made.world.emr.active() if run.tags["frazil:generation"] == "1")
    assert (late.request["applicationId"], made.world.emr.states["app1"]) == ("app1", "STARTED")
    made.live(60)
    assert late.state(made.world.time.now) == "CANCELLED"
    assert {run.tags["frazil:generation"] for run in made.world.emr.active()} <= {"2"}
    assert "CANCELLED" not in {run.state(made.world.time.now) for run in made.world.runs_of(second)}
    assert made.generations()[-1] == (2 if second.mode is Mode.DRAIN else 1)
    assert stopped(made.world)
    assert made.errors == []


@MODES
def test_a_pass_that_pauses_through_a_move_leaves_no_run_on_the_former_application(mode: Mode) -> None:
    made, calls, second = paused(mode)
    made.world.reconciler(calls).one_pass(JOB, holder="a", execution="late")
    assert_only_the_second_runs(made, second)


def test_a_reconciler_that_pauses_through_a_move_leaves_no_run_on_the_former_application() -> None:
    made, calls, second = paused(Mode.FOLLOW)
    with pytest.raises(LockHeld):
        made.world.run(calls, holder="a")
    assert_only_the_second_runs(made, second)


@pytest.mark.long
@pytest.mark.parametrize("dies_after", [False, True], ids=["before", "after"])
def test_a_move_that_dies_at_any_call_is_finished_by_the_next_attempt(dies_after: bool) -> None:
    for number in range(200):
        world = World()
        first = world.want(desired())
        world.settle()
        second = world.want(replaced(first, application="app2"))
        calls = Calls(dies_at=number, dies_after=dies_after)
        try:
            world.run(calls)
            stopped(world, calls)
        except Killed:
            world.time.sleep(LEASE_SECONDS + 1)
        assert world.run(holder="b") == second
        assert stopped(world), number
        assert [run.request["applicationId"] for run in world.runs_of(second)] == ["app2"], number
        assert len(world.runs_of(first)) == 1, number
        assert (world.emr.states["app1"], len(world.emr.active())) == ("STOPPED", 1), number
        if not calls.is_dead:
            break
    assert number > 20


@pytest.mark.long
@MODES
@pytest.mark.parametrize("dies_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("second", [lands(BUSY), None], ids=["good", "bad"])
def test_a_function_that_dies_during_a_move_leaves_what_the_next_passes_end(
    mode: Mode, dies_after: bool, second: Driver | None
) -> None:
    for number in range(24):
        made, first, wanted = deployed(mode, second)
        has_died = made.live_with_a_death(number, dies_after=dies_after)
        assert stored_state(made.world.store, JOB).proven == (wanted if second else first), number
        assert applications(made, 1) == {"app1"}, number
        assert applications(made, 2) <= {"app2"}, number
        assert made.runs()[-1].request["applicationId"] == ("app2" if second else "app1"), number
        if not has_died:
            break
