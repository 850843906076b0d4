"""`frazil deploy smoke`: a line for each probe, the exit code of the worst failure, and rounds until all is shown.

`tests/smoke` has the probes; here, a list takes their place.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frazil.cli.deploy import smoke
from frazil.cli.main import app
from frazil.declaration import canonical, environment_document
from frazil.errors import AccountUnavailable
from frazil.smoke import probes
from frazil.smoke.probe import Answer, Probe
from stacks.spec.deployments import DEPLOYMENTS
from stacks.workflow.describe import described
from tests.support.deploying_project import describe, make_project
from tests.support.rollout_world import DEV

SHOWN = Answer.shown("run 1 is RUNNING")
NOT_YET = Answer.not_yet("no run yet", "Its schedule starts it")


def unavailable() -> Answer:
    raise AccountUnavailable("AWS refused GetFunction: AccessDenied", where="lambda", do="Use the deployer's role")


@pytest.fixture
def asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The answers by name, each a list of rounds; and what the probes were given."""
    (folder / ".frazil" / "environments").mkdir(parents=True)
    (folder / ".frazil" / "environments" / "dev.json").write_bytes(canonical(environment_document(DEV)))
    make_project(folder)
    describe(folder, **described(DEPLOYMENTS["dev"], "none"))
    found: dict[str, Any] = {"answers": {}, "publish": [], "slept": 0.0, "names": []}

    def listed(services: Any, *, is_published: bool) -> list[Probe]:
        found["publish"].append(is_published)
        found["names"].append(services.names)
        return [
            Probe(name, lambda rounds=rounds: rounds.pop(0)() if len(rounds) > 1 else rounds[0]())
            for name, rounds in found["answers"].items()
        ]

    def sleep(seconds: float) -> None:
        found["slept"] += seconds

    monkeypatch.setattr(probes, "probes", listed)
    monkeypatch.setattr(smoke, "time", SimpleNamespace(monotonic=lambda: found["slept"], sleep=sleep))
    return found


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["deploy", "smoke", "dev", *arguments])


def constantly(answer: Answer) -> list[Callable[[], Answer]]:
    return [lambda: answer]


def test_each_probe_is_one_line_with_its_remedy(asked: dict[str, Any]) -> None:
    asked["answers"] = {
        "run": constantly(SHOWN),
        "metrics": constantly(Answer.not_here("nothing makes metrics")),
        "alarms": constantly(Answer.failed("no alarm exists", "Deploy again")),
    }
    ended = ran()
    assert ended.exit_code == 1, ended.output
    lines = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert lines == [
        "✓ run run 1 is RUNNING",
        "– metrics not shown here: nothing makes metrics",
        "✗ alarms no alarm exists. Deploy again",
        "1 shown, 1 not shown here, 1 failed",
    ]
    assert asked["names"][0].alarm_topic == "arn:aws:sns:eu-central-1:111111111111:frazil-dev"


def test_json_says_what_each_probe_shows(asked: dict[str, Any]) -> None:
    asked["answers"] = {"run": constantly(SHOWN), "secret": constantly(NOT_YET)}
    ended = ran("--json")
    told = json.loads(ended.stdout)
    assert (ended.exit_code, told["counts"]["not yet"], told["exit_code"]) == (0, 1, 0)
    assert [each["name"] for each in told["probes"]] == ["run", "secret"]


def test_a_service_that_refuses_is_3(asked: dict[str, Any]) -> None:
    asked["answers"] = {"reconciler": [unavailable], "run": constantly(SHOWN)}
    ended = ran()
    assert (ended.exit_code, "lambda: AWS refused GetFunction" in ended.stdout) == (3, True), ended.output


def test_probes_are_repeated_until_all_is_shown_and_publish_once(asked: dict[str, Any]) -> None:
    asked["answers"] = {"run": [lambda: NOT_YET, lambda: NOT_YET, lambda: SHOWN]}
    ended = ran("--minutes", "10", "--publish")
    assert (ended.exit_code, asked["publish"], asked["slept"]) == (0, [True, False, False], 40.0), ended.output
    asked["answers"] = {"run": constantly(NOT_YET)}
    ended = ran("--minutes", "1")
    assert (ended.exit_code, asked["slept"]) == (0, 100.0), "what is not shown fails nothing"
    asked["answers"] = {"run": constantly(Answer.not_yet("no run yet", is_awaited=False))}
    ended = ran("--minutes", "1")
    assert (ended.exit_code, asked["slept"]) == (0, 100.0), "minutes change nothing"


def test_an_environment_that_nothing_declares_is_2(asked: dict[str, Any]) -> None:
    (Path(".frazil") / "environments" / "prod.json").write_bytes(
        canonical(environment_document(DEV)).replace(b'"name":"dev"', b'"name":"prod"')
    )
    ended = CliRunner().invoke(app, ["deploy", "smoke", "prod"])
    assert (ended.exit_code, "environment prod: it is not declared" in ended.stderr) == (2, True), ended.output
