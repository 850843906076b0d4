"""`frazil deploy move-application`: the runs are on the new application, the former one is stopped, and no attempt has to be the last."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.readiness import Readiness
from frazil.rollout.state import stored_state
from frazil.rollout.stopped_pipelines import change_stop
from tests.cli.deploy.test_up import Shop, shop  # noqa: F401 # a fixture
from tests.support.deploying_project import describe
from tests.support.rollout_world import JOB, desired, replaced

OLD, NEW = "frazil-dev-emr-spark-8-1-0-arm64", "frazil-dev-emr-spark-8-1-0-arm64-b"


@pytest.fixture(params=[Mode.FOLLOW, pytest.param(Mode.DRAIN, marks=pytest.mark.long)])
def moving(shop: Shop, request: pytest.FixtureRequest) -> Shop:  # noqa: F811
    """A job that ran on the first application; its declaration now names another one."""
    return declared(shop, request.param)


def declared(at: Shop, mode: Mode) -> Shop:
    describe(at.folder, application=NEW, former_applications=[OLD])
    first = at.world.want(desired(mode=mode))
    at.world.settle()
    at.world.want(replaced(first, application="app2"))
    return at


def move(at: Shop, *options: str) -> Result:
    return at.deploy("--yes", *options, command="move-application")


def second(at: Shop) -> Desired:
    proven = stored_state(at.world.store, JOB).proven
    assert proven is not None
    assert proven.application == "app2"
    return proven


def test_the_runs_are_moved_and_the_former_application_is_stopped(moving: Shop) -> None:
    ended = move(moving)
    assert ended.exit_code == 0, ended.output
    lines = ended.stdout.splitlines()
    assert lines[0] == f"move: from {OLD} to {NEW}"
    assert lines[-1] == (
        f"move: done: all jobs run on {NEW}; {OLD} (app1) is stopped, without runs. "
        'Remove it from emr.former, then run: frazil deploy up dev --accept-danger "it is stopped"'
    )
    assert moving.world.emr.states == {"app1": "STOPPED", "app2": "STARTED"}
    assert len(moving.world.runs_of(second(moving))) == 1
    assert moving.stacks() == ["foundation", "confluent", "ingestion"]
    again = move(moving)
    assert (again.exit_code, again.stdout.splitlines()[-1]) == (0, lines[-1])
    assert len(moving.world.runs_of(second(moving))) == 1
    del moving.world.emr.applications["app1"]
    gone = move(moving)
    assert (gone.exit_code, f"{OLD} (app1) does not exist" in gone.stdout) == (0, True), gone.output


@pytest.mark.long
def test_an_application_with_runs_is_not_stopped(moving: Shop) -> None:
    world = moving.world
    world.emr.started = lambda request: None
    by_hand = {"applicationId": "app1", "executionRoleArn": "arn:aws:iam::1:role/x", "mode": "STREAMING"}
    run = world.emr.start_job_run(clientToken="x", name="frazil-maintain", tags={}, **by_hand)["jobRunId"]
    ended = move(moving, "--minutes", "30")
    assert ended.exit_code == 1
    assert f"runs {run} have not ended" in ended.output
    assert world.emr.states["app1"] == "STARTED"
    world.emr.kill(run)
    assert move(moving).exit_code == 0
    assert world.emr.states["app1"] == "STOPPED"


@pytest.mark.long
def test_after_a_rollback_the_former_application_goes_on(moving: Shop) -> None:
    moving.world.readiness[2] = Readiness.NOTHING_YET
    ended = move(moving)
    assert ended.exit_code == 1
    assert ended.stdout.splitlines()[-1] == (
        f"move: not finished: a job still runs on {OLD}. Fix the cause, then repeat the command"
    )
    assert moving.world.emr.states["app1"] == "STARTED"


@pytest.mark.long
def test_an_application_to_which_a_job_may_return_is_not_stopped(shop: Shop) -> None:  # noqa: F811
    moving = declared(shop, Mode.FOLLOW)
    moving.world.readiness[2] = Readiness.UNKNOWN
    ended = move(moving, "--minutes", "45")
    assert (ended.exit_code, f"job {JOB}: it took longer" in ended.output) == (1, True), ended.output
    assert moving.world.emr.states["app1"] == "STARTED"
    moving.world.readiness[2] = Readiness.COMMITTED
    assert move(moving).exit_code == 0
    assert moving.world.emr.states["app1"] == "STOPPED"


@pytest.mark.long
def test_the_application_of_a_stopped_job_stays(shop: Shop) -> None:  # noqa: F811
    moving = declared(shop, Mode.FOLLOW)
    for name in ("orders", "users"):
        change_stop(moving.world.store, desired(), name, is_stopped=True)
    assert move(moving).exit_code == 1
    for name in ("orders", "users"):
        change_stop(moving.world.store, desired(), name, is_stopped=False)
    assert move(moving).exit_code == 0


@pytest.mark.parametrize(
    "stack", [*(pytest.param(name, marks=pytest.mark.long) for name in ("foundation", "confluent")), "ingestion"]
)
def test_an_attempt_that_failed_in_a_stack_is_finished_by_the_next_one(shop: Shop, stack: str) -> None:  # noqa: F811
    moving = declared(shop, Mode.FOLLOW)
    moving.fail(stack)
    assert move(moving).exit_code == 6
    assert moving.world.emr.states == {"app1": "STARTED"}
    assert move(moving).exit_code == 0
    assert moving.world.emr.states["app1"] == "STOPPED"


def test_a_move_is_declared_before_it_is_made(shop: Shop) -> None:  # noqa: F811
    describe(shop.folder, application=OLD, former_applications=[])
    ended = CliRunner().invoke(app, ["deploy", "move-application", "dev", "--release", str(shop.manifest)])
    assert (ended.exit_code, shop.stacks()) == (2, [])
    assert "no former application is declared" in ended.output
