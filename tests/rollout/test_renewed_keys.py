"""Whether runs have taken new keys: followers are replaced, drains awaited, and nothing is believed without a proof."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from frazil.errors import RolloutFailed
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.readiness import Readiness
from frazil.rollout.renewed_keys import wait_for_keys
from frazil.rollout.run_proof import Reached, RunProof, proof_prefix
from frazil.rollout.stopped_pipelines import change_stop
from tests.support.fake_emr import FakeRun
from tests.support.rollout_world import JOB, PIPELINES, World, desired, replaced

NAMES = ("orders", "users")


def settled(mode: Mode, **changed: Any) -> tuple[World, Desired]:
    """A world with runs of the first generation, which was proven."""
    world = World()
    wanted = world.want(desired(mode=mode, **changed))
    world.settle()
    return world, wanted


def prove(world: World, wanted: Desired, run: str, **reached: Reached) -> None:
    """Write what the driver of a run writes."""
    at_ms = int(world.time.now * 1000)
    proof = RunProof(run=run, generation=1, digest=wanted.digest[:8], at_ms=at_ms, pipelines=reached)
    world.store.put(f"{proof_prefix(JOB)}{run}.json", proof.document())


def wait(world: World, since: float, *, minutes: int = 120) -> list[str]:
    """Wait as the command does. Return the reasons that it gave."""
    said: list[str] = []
    at = datetime.fromtimestamp(since, UTC)
    wait_for_keys(world.reconciler(), JOB, at, holder="a", patience_seconds=minutes * 60, on_wait=said.append)
    return said


def proving(world: World, wanted: Desired, **reached: Reached) -> None:
    """Have each run write a proof as soon as time passes."""
    sleep = world.time.sleep

    def slept(seconds: float) -> None:
        sleep(seconds)
        for run in world.emr.active():
            if run.state(world.time.now) == "RUNNING":
                prove(world, wanted, f"of-{run.id}", **reached)

    world.time.sleep = slept  # type: ignore[method-assign]


def states(world: World) -> list[str]:
    every = sorted((run for runs in world.emr.applications.values() for run in runs), key=lambda run: run.born)
    return [run.state(world.time.now) for run in every]


def test_a_follower_is_replaced_and_proves_the_new_keys() -> None:
    world, wanted = settled(Mode.FOLLOW)
    prove(world, wanted, "of-the-old-run", **dict.fromkeys(NAMES, Reached.COMMITTED))
    proving(world, wanted, orders=Reached.COMMITTED, users=Reached.CAUGHT_UP)
    old = world.running()
    said = wait(world, world.time.now)
    assert states(world) == ["CANCELLED", "RUNNING"]
    assert said[0] == f"{JOB}: run {old.id} has the former keys"
    assert said[1] == f"{JOB}: no run has started with the new keys"
    assert "orders, users has neither committed nor caught up" in said[2], "the proof of the old run does not count"


def test_a_second_wait_starts_nothing() -> None:
    world, wanted = settled(Mode.FOLLOW)
    proving(world, wanted, **dict.fromkeys(NAMES, Reached.CAUGHT_UP))
    since = world.time.now
    wait(world, since)
    before = states(world)
    assert wait(world, since) == []
    assert states(world) == before


def test_a_drain_is_awaited_and_the_next_one_shows_the_keys_by_its_success() -> None:
    world, _ = settled(Mode.DRAIN)
    world.reconciler().one_pass(JOB, holder="b", execution="scheduled")
    since = world.time.now
    said = wait(world, since)
    assert states(world) == ["SUCCESS"] * 3, "no drain was cancelled"
    assert said[0].endswith("has the former keys")
    last: FakeRun = max((run for runs in world.emr.applications.values() for run in runs), key=lambda run: run.born)
    assert last.born > since


@pytest.mark.parametrize("users", [Reached.CAUGHT_UP, Reached.UNAVAILABLE])
def test_a_drain_that_its_timeout_ends_shows_the_keys_by_its_proof(users: Reached) -> None:
    world, wanted = settled(Mode.DRAIN, timeout_minutes=15)
    since, sleep = world.time.now, world.time.sleep
    sleep(60)

    def slept(seconds: float) -> None:
        sleep(seconds)
        for run in (run for run in world.emr.active() if run.born > since):
            run.hangs = True
            prove(world, wanted, f"of-{run.id}", orders=Reached.COMMITTED, users=users)

    world.time.sleep = slept  # type: ignore[method-assign]
    if users is Reached.CAUGHT_UP:
        assert wait(world, since)[-1].endswith("is RUNNING")
    else:
        with pytest.raises(RolloutFailed, match="users has neither committed nor caught up"):
            wait(world, since)
    assert states(world)[-2:] == ["SUCCESS", "CANCELLED"]


def test_one_pipeline_without_a_proof_keeps_the_former_keys() -> None:
    world, wanted = settled(Mode.FOLLOW)
    proving(world, wanted, orders=Reached.COMMITTED, users=Reached.UNAVAILABLE)
    with pytest.raises(
        RolloutFailed, match=r"users has neither committed nor caught up.*Until it ends, the former keys"
    ):
        wait(world, world.time.now, minutes=30)


def test_a_stopped_pipeline_needs_no_proof_and_a_stopped_job_no_run() -> None:
    world, wanted = settled(Mode.FOLLOW)
    change_stop(world.store, world.reconciler().desired(JOB), "users", is_stopped=True)
    world.settle()
    proving(world, wanted, orders=Reached.COMMITTED)
    wait(world, world.time.now)
    change_stop(world.store, world.reconciler().desired(JOB), "orders", is_stopped=True)
    world.settle()
    assert wait(world, world.time.now) == []
    assert world.emr.active() == []


@pytest.mark.parametrize("mode", list(Mode))
def test_after_a_rollback_the_runs_of_the_proven_generation_show_the_keys(mode: Mode) -> None:
    """The rejected generation has other pipelines and another mode, and no run of it will ever show anything."""
    world, first = settled(mode)
    world.readiness[2] = Readiness.NOTHING_YET
    other = Mode.DRAIN if mode is Mode.FOLLOW else Mode.FOLLOW
    world.want(replaced(first, mode=other, document=world.documented(PIPELINES[0])))
    world.settle()
    world.reconciler().one_pass(JOB, holder="b", execution="scheduled")
    proving(world, first, orders=Reached.COMMITTED)
    if mode is Mode.FOLLOW:
        with pytest.raises(RolloutFailed, match="users has neither committed nor caught up"):
            wait(world, world.time.now, minutes=30)
        proving(world, first, orders=Reached.COMMITTED, users=Reached.COMMITTED)
    old = {run.id for run in world.emr.active()}
    wait(world, world.time.now)
    ended = {run.id: run.state(world.time.now) for run in world.runs_of(first)}
    assert {ended[each] for each in old} == {"CANCELLED" if mode is Mode.FOLLOW else "SUCCESS"}
    assert len(world.emr.active()) <= 1
