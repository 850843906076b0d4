"""`frazil jobs list`, `logs`, `stop` and `start`: what they answer, and how they end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from tests.support.rollout_world import JOB, World, desired, replaced


def ran(*arguments: str) -> Result:
    job = [] if arguments[1] in {"stop", "start"} else ["--job", JOB]  # these find the job of their pipelines
    return CliRunner().invoke(app, [*arguments, *job])


def answered(*arguments: str) -> Any:
    result = ran(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_runs_are_listed_the_newest_first(world: World, place: str) -> None:
    first = world.want(desired())
    world.settle()
    world.want(replaced(first))
    world.settle()
    told = answered("jobs", "list", place)["runs"]
    assert [(run["generation"], run["state"], run["release"]) for run in told] == [
        (2, "RUNNING", "1.0.0"),
        (1, "CANCELLED", "1.0.0"),
    ]
    assert len(answered("jobs", "list", place, "--last", "1")["runs"]) == 1
    shown = [line.split()[1:3] for line in ran("jobs", "list", place).stdout.splitlines()[1:]]
    assert shown == [[JOB, "RUNNING"], [JOB, "CANCELLED"]]


def test_runs_of_an_application_that_the_job_has_left_are_listed(world: World, place: str) -> None:
    first = world.want(desired())
    world.settle()
    old = world.running().id
    world.store.put(f"jobs/applications/app1/jobs/{old}/SPARK_DRIVER/stdout.gz", gzip.compress(b"of the old run\n"))
    world.want(replaced(first, application="app2"))
    world.settle()
    file = Path(place)
    file.write_text(file.read_text().replace('"app1"', '"app2"'))  # as the deployment of the move writes it
    told = answered("jobs", "list", place)["runs"]
    assert [(run["application"], run["generation"]) for run in told] == [("app2", 2), ("app1", 1)]
    assert answered("jobs", "logs", place, old)["parts"][0]["lines"] == ["of the old run"]

    world.emr.closed.add("app1")
    ended = ran("jobs", "list", place, "--json")
    assert [run["application"] for run in json.loads(ended.stdout)["runs"]] == ["app2"]
    assert "runs of the former application app1 are omitted" in ended.stderr


def test_where_nothing_has_run_nothing_is_listed(world: World, place: str) -> None:
    assert answered("jobs", "list", place)["runs"] == []


@pytest.fixture
def logged(world: World) -> str:
    """A run that was tried again, with the logs of both attempts."""
    world.want(desired())
    world.settle()
    run = world.running().id
    folder = f"jobs/applications/app1/jobs/{run}"
    for key, text in (
        (f"{folder}/attempts/2/SPARK_DRIVER/stdout.gz", "second\n"),
        (f"{folder}/SPARK_DRIVER/stdout.gz", 'first \x1b[31m\n{"event": "landed"}\n'),
        (f"{folder}/SPARK_DRIVER/stderr.gz", "of Spark\n"),
        (f"{folder}/SPARK_EXECUTOR/1/stdout.gz", "executor\n"),
    ):
        world.store.put(key, gzip.compress(text.encode()))
    return run


def test_a_log_is_told_attempt_by_attempt_and_inert(logged: str, place: str) -> None:
    told = answered("jobs", "logs", place, logged)
    assert [part["lines"] for part in told["parts"]] == [["first \x1b[31m", '{"event": "landed"}'], ["second"]]
    shown = ran("jobs", "logs", place, logged).stdout
    assert shown.splitlines() == [r"first \x1b[31m", '{"event": "landed"}', "second"]


def test_without_a_run_the_newest_ones_log_is_told_and_sparks_own_on_demand(logged: str, place: str) -> None:
    assert answered("jobs", "logs", place)["run"] == logged
    assert [part["lines"] for part in answered("jobs", "logs", place, "--spark")["parts"]] == [["of Spark"]]


def test_a_run_that_has_no_log_yet_is_no_error(world: World, place: str) -> None:
    world.want(desired())
    world.settle()
    assert answered("jobs", "logs", place)["parts"] == []
    assert "has no log yet" in ran("jobs", "logs", place).stderr


def test_a_run_that_is_not_there_is_told(world: World, place: str) -> None:
    world.want(desired())
    world.settle()
    result = ran("jobs", "logs", place, "00fnothere")
    assert result.exit_code == 2
    assert "there is no run 00fnothere" in result.stderr


def test_a_pipeline_is_stopped_and_started_by_reconciling(world: World, place: str) -> None:
    world.want(desired())
    world.settle()
    told = answered("jobs", "stop", "users", "--environment", place)
    assert (told["runs"], told["stopped"]) == (1, ["users"])
    assert [step["step"] for step in told["steps"] if step["step"] != "wait"] == ["cancel run", "start generation"]
    assert "--without" in world.running().request["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    assert "without users" in ran("jobs", "reconcile", place).stdout
    assert answered("jobs", "start", "users", "--env", place)["stopped"] == []
    assert "--without" not in world.running().request["jobDriver"]["sparkSubmit"]["entryPointArguments"]


def test_all_pipelines_are_stopped_at_once_and_nothing_runs(world: World, place: str) -> None:
    world.want(desired())
    world.settle()
    before = dict(world.store.objects)
    assert ran("jobs", "stop", "users", "nobody", "--environment", place).exit_code == 2
    assert world.store.objects == before
    told = answered("jobs", "stop", "users", "orders", "--environment", place)
    assert (told["runs"], sorted(told["stopped"])) == (None, ["orders", "users"])
    assert [step["step"] for step in told["steps"] if step["step"] != "wait"] == ["cancel run"]
