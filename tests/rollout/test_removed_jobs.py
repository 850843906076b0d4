"""Jobs that deployment has removed: their runs are found on every application, and end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.clients.emr import Emr
from frazil.errors import LockHeld, RolloutFailed
from frazil.rollout.desired import Mode, desired_key
from frazil.rollout.readiness import Readiness
from frazil.rollout.removed_jobs import RemovedJobs, removed_jobs
from frazil.rollout.run_proof import proof_prefix
from frazil.rollout.state import LEASE_SECONDS, Lease, stored_state
from tests.support.rollout_world import JOB, Calls, Killed, Through, World, desired, replaced


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


def at_work(world: World, calls: Calls | None = None) -> RemovedJobs:
    counted = calls or Calls()
    return RemovedJobs(
        store=Through(world.store, counted),
        emr=Emr(Through(world.emr, counted), clock=world.time.clock),
        clock=world.time.clock,
        wait=world.time.sleep,
        on_wait=lambda why: None,
        look_seconds=60,
    )


def test_the_run_of_a_removed_job_is_found_and_ends(world: World) -> None:
    assert removed_jobs(world.store) == (JOB,)
    removed, run = at_work(world), world.running()
    assert [each.id for each in removed.left(JOB)] == [run.id]
    assert removed.end(JOB, holder="a", patience_seconds=3600)
    assert world.emr.active() == []
    assert run.state(world.time.now) == "CANCELLED"
    writes = world.store.writes
    assert not removed.end(JOB, holder="a", patience_seconds=3600)
    assert world.store.writes == writes, "a job without runs is left as it is"


def test_a_run_that_does_not_end_is_an_error_and_a_reconciler_at_work_is_one_too(world: World) -> None:
    with pytest.raises(RolloutFailed, match="have to end"):
        at_work(world).end(JOB, holder="a", patience_seconds=0)
    assert stored_state(world.store, JOB).holder is None
    Lease(world.store, JOB, holder="function", clock=world.time.clock).take()
    with pytest.raises(LockHeld):
        at_work(world).end(JOB, holder="a", patience_seconds=3600)


def test_an_application_that_is_deleted_has_no_run(world: World) -> None:
    world.emr.closed.add("app1")
    assert at_work(world).end(JOB, holder="a", patience_seconds=3600)


def test_a_group_that_is_declared_again_continues(world: World) -> None:
    at_work(world).end(JOB, holder="a", patience_seconds=3600)
    world.readiness[3] = Readiness.COMMITTED
    again = world.want(replace(desired(3), application="app2"))
    assert world.run() == again
    assert removed_jobs(world.store) == ()


@pytest.mark.long
def test_a_command_that_dies_at_any_call_is_finished_by_the_next_one(world: World) -> None:
    for number in range(60):
        calls = Calls(dies_at=number)
        try:
            at_work(world, calls).end(JOB, holder="a", patience_seconds=3600)
        except Killed:
            world.time.sleep(LEASE_SECONDS + 1)
        at_work(world).end(JOB, holder="b", patience_seconds=3600)
        assert world.emr.active() == [], number
        if not calls.is_dead:
            break
        again = world.want(desired(number + 10, mode=Mode.FOLLOW))
        world.settle()
        assert world.runs_of(again)
        world.store.delete(desired_key(JOB))
    assert number > 5
