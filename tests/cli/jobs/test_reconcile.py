"""`frazil jobs reconcile` and `frazil release upload`: what they answer, and how they end."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from frazil.cli.jobs import reconcile
from frazil.cli.main import app
from frazil.rollout.desired import Mode, desired_document, desired_key
from frazil.rollout.readiness import Readiness
from frazil.rollout.run_proof import proof_prefix
from frazil.rollout.state import Lease, RolloutState, state_key
from tests.support.rollout_world import JOB, World, desired, replaced


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def answered(*arguments: str) -> tuple[int, Any]:
    result = ran(*arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def test_check_ends_with_4_on_drift_does_nothing_and_then_with_0(world: World, place: str) -> None:
    world.want(desired())
    code, told = answered("jobs", "reconcile", place, "--job", JOB, "--check")
    assert (code, told["drift"]) == (4, True)
    assert [step["step"] for step in told["steps"]] == ["start generation"]
    assert world.emr.active() == []
    assert ran("jobs", "reconcile", place, "--job", JOB).exit_code == 0
    assert answered("jobs", "reconcile", place, "--job", JOB, "--check") == (0, {"drift": False, "steps": []})


def test_the_run_of_a_removed_job_is_drift_and_ends(world: World, place: str) -> None:
    """The last pipeline of a group has moved: no function is left that would end the group's run."""
    world.want(desired(mode=Mode.FOLLOW))
    world.settle()
    world.store.put(f"{proof_prefix(JOB)}run.json", b"{}")
    other = desired(job="ingest")
    world.store.put(desired_key(other.job), desired_document(other))
    world.emr.started = lambda request: None
    assert ran("jobs", "reconcile", place, "--job", "ingest").exit_code == 0
    world.store.delete(desired_key(JOB))
    run = next(each for each in world.emr.active() if each.tags["frazil:job"] == JOB)
    code, told = answered("jobs", "reconcile", place, "--check")
    steps = {each["job"]: each["steps"] for each in told["jobs"]}
    assert (code, steps["ingest"]) == (4, [])
    assert steps[JOB] == [{"step": "cancel run", "run": run.id, "grace_seconds": 120, "why": "its job is removed"}]
    code, told = answered("jobs", "reconcile", place, "--watch")
    assert (code, f"its runs {run.id} have not ended" in told["error"]["message"]) == (1, True)
    assert f"frazil jobs reconcile dev --job {JOB}" in told["error"]["message"]
    ended = ran("jobs", "reconcile", place, "--job", JOB)
    assert (ended.exit_code, f"{JOB}: it is removed, and its runs have ended" in ended.stdout) == (0, True), (
        ended.output
    )
    assert {each.tags["frazil:job"] for each in world.emr.active()} == {"ingest"}
    assert answered("jobs", "reconcile", place, "--check") == (0, {"drift": False, "steps": []})


def test_watching_waits_for_the_deployed_reconciler_and_takes_no_step(world: World, place: str) -> None:
    first = world.want(desired())
    code, told = answered("jobs", "reconcile", place, "--job", JOB, "--watch", "--minutes", "10")
    assert (code, world.emr.active(), world.store.read(state_key(JOB))) == (1, [], None)
    assert "it took longer than 600 s" in told["error"]["message"]
    assert ran("jobs", "reconcile", place, "--job", JOB).exit_code == 0
    assert answered("jobs", "reconcile", place, "--job", JOB, "--watch")[1]["runs"] == 1
    world.want(replaced(first))
    waiting = world.time.sleep

    def deployed(seconds: float) -> None:
        """Let the deployed reconciler work, as it would at its next call."""
        waiting(seconds)
        world.reconciler().one_pass(JOB, holder="function")

    world.time.sleep = deployed  # type: ignore[method-assign]
    reconcile.time.sleep = deployed  # type: ignore[attr-defined]
    code, told = answered("jobs", "reconcile", place, "--job", JOB, "--watch")
    assert (code, told["wanted"], told["runs"]) == (0, 2, 2)
    world.readiness[3] = Readiness.NOTHING_YET
    world.want(replaced(first, calm_seconds=200))
    world.want(desired(3))
    code, told = answered("jobs", "reconcile", place, "--job", JOB, "--watch")
    assert (code, told["wanted"], told["runs"]) == (1, 3, 2)


def test_watching_ends_where_an_operator_must_decide(world: World, place: str) -> None:
    world.want(desired())
    world.store.put(state_key(JOB), RolloutState().with_given_up(desired()).document())
    ended = ran("jobs", "reconcile", place, "--job", JOB, "--watch")
    assert (ended.exit_code, "generation 1 was given up" in ended.stderr) == (1, True), ended.output
    assert ran("jobs", "reconcile", place, "--check", "--watch").exit_code == 2


def test_a_deleted_application_is_forgotten_and_told(world: World, place: str) -> None:
    first = world.want(desired())
    ran("jobs", "reconcile", place, "--job", JOB)
    world.want(replaced(first, application="app2"))
    ran("jobs", "reconcile", place, "--job", JOB)
    world.emr.closed.add("app1")
    assert answered("jobs", "reconcile", place, "--job", JOB, "--check") == (0, {"drift": False, "steps": []})
    ended = ran("jobs", "reconcile", place, "--job", JOB)
    assert (ended.exit_code, "forget application app1: it is no longer declared" in ended.stderr) == (0, True)
    assert answered("jobs", "reconcile", place, "--job", JOB)[1]["steps"] == []


def test_going_back_ends_with_1_and_says_so(world: World, place: str) -> None:
    first = world.want(desired())
    ran("jobs", "reconcile", place, "--job", JOB)
    world.readiness[2] = Readiness.NOTHING_YET
    world.want(replaced(first))
    result = ran("jobs", "reconcile", place, "--job", JOB)
    assert result.exit_code == 1
    assert "generation 1 runs; 2 was given up" in result.stdout


def test_a_halt_ends_with_1_and_names_the_job(world: World, place: str) -> None:
    world.readiness[1] = Readiness.NOTHING_YET
    world.want(desired())
    result = ran("jobs", "reconcile", place, "--job", JOB)
    assert result.exit_code == 1
    assert "job orders: generation 1 was given up" in result.stderr


def test_another_reconciler_at_work_ends_with_3(world: World, place: str) -> None:
    world.want(desired())
    Lease(world.store, JOB, holder="another", clock=world.time.clock).take()
    result = ran("jobs", "reconcile", place, "--job", JOB)
    assert result.exit_code == 3
    assert "another holds the lease" in result.stderr


def test_an_environment_without_an_artifact_bucket_is_refused(place: str) -> None:
    for command in (["jobs", "reconcile", place], ["release", "upload", place]):
        result = ran(*command)
        assert result.exit_code == 2
        assert "environment dev: it has no artifact_bucket" in result.stderr


def put(world: World, job: str, **given: Any) -> None:
    """Deploy another job."""
    wanted = desired(job=job, **given)
    world.store.put(desired_key(job), desired_document(wanted))


def test_without_a_job_all_deployed_ones_are_reconciled(world: World, place: str) -> None:
    world.want(desired())
    put(world, "ingest-payments", is_stopped=True)
    code, told = answered("jobs", "reconcile", place, "--check")
    assert (code, [(each["job"], each["drift"]) for each in told["jobs"]]) == (
        4,
        [("ingest-payments", False), (JOB, True)],
    )
    code, told = answered("jobs", "reconcile", place)
    assert (code, [(each["job"], each["runs"]) for each in told["jobs"]]) == (0, [("ingest-payments", None), (JOB, 1)])
    assert ran("jobs", "reconcile", place).stdout.splitlines() == [
        "ingest-payments: nothing runs, as is wanted",
        f"{JOB}: generation 1 runs",
    ]


def test_the_error_of_a_job_does_not_keep_the_others_from_running(world: World, place: str) -> None:
    world.want(desired())
    put(world, "ingest-payments", release=f"releases/1.0.0/{'0' * 64}/manifest.json")
    result = ran("jobs", "reconcile", place)
    assert result.exit_code == 2
    assert "the release does not exist" in result.output
    assert f"{JOB}: generation 1 runs" in result.stdout
    assert [run.tags["frazil:job"] for run in world.emr.active()] == [JOB]
