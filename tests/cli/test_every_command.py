"""The help of each command keeps its lines. Commands about an environment take it as argument or option."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from frazil.declaration.documents.document import environment_document
from tests.support.documents import environment_in
from tests.support.guides import application

BEGINNINGS = ("For example: ", "Exit codes:")


def walk(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Each command, groups included, with its name."""
    yield " ".join(path), command
    for name, member in getattr(command, "commands", {}).items():
        yield from walk(member, *path, name)


LEAVES = {name: command for name, command in walk(application()) if not hasattr(command, "commands")}


@pytest.mark.parametrize("name", LEAVES)
def test_the_lines_of_help_are_not_joined(name: str) -> None:
    shown = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"}).invoke(app, [*name.split(), "--help"]).stdout
    wanted = [line.strip() for line in (LEAVES[name].help or "").replace("\b", "").splitlines() if line.strip()]
    lines = [line.strip() for line in shown.splitlines()]
    assert [line for line in wanted if line not in lines and not line.startswith(BEGINNINGS)] == []


# ── ENV and --env ───────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def project(folder: Path) -> Path:
    """A folder whose environments `dev` and `prod` have no artifact bucket, which the error of a command names."""
    environments = folder / ".frazil" / "environments"
    environments.mkdir(parents=True)
    for name in ("dev", "prod"):
        (environments / f"{name}.json").write_text(json.dumps(environment_document(environment_in(folder, name))))
    return folder


def frazil(*arguments: str, **variables: str) -> Result:
    return CliRunner(env=variables).invoke(app, arguments)


def asked(ended: Result) -> str:
    """The environment that a command used, by its error."""
    assert ended.exit_code == 2, ended.output
    assert "it has no artifact_bucket" in ended.stderr, ended.stderr
    return ended.stderr.removeprefix("error: environment ").split(":")[0]


ASKING = [["jobs", "list"], ["jobs", "logs"], ["jobs", "reconcile"], ["release", "upload"]]


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", ASKING, ids=" ".join)
def test_a_command_about_an_environment_takes_it_as_argument_or_option_before_that_of_the_shell(
    command: list[str],
) -> None:
    for arguments in (["dev"], ["--env", "dev"], ["dev", "--env", "dev"]):
        assert asked(frazil(*command, *arguments)) == "dev"
        assert asked(frazil(*command, *arguments, FRAZIL_ENV="prod")) == "dev"
    assert asked(frazil(*command, FRAZIL_ENV="prod")) == "prod"
    two = frazil(*command, "dev", "--env", "prod")
    assert two.exit_code == 2
    assert "the argument names dev, the option names prod. Name one environment" in two.stderr
    none = frazil(*command)
    assert none.exit_code == 2
    assert f"no environment is named. Name it: `frazil {' '.join(command)} ENV`, or set FRAZIL_ENV" in none.stderr


@pytest.mark.usefixtures("project")
def test_with_the_variable_the_argument_of_logs_is_a_run_unless_it_is_an_environment() -> None:
    assert asked(frazil("jobs", "logs", "00f1abc", FRAZIL_ENV="prod")) == "prod"
    assert asked(frazil("jobs", "logs", "dev", FRAZIL_ENV="prod")) == "dev"
    assert asked(frazil("jobs", "logs", "dev", "00f1abc", FRAZIL_ENV="prod")) == "dev"
    assert asked(frazil("jobs", "logs", ".frazil/environments/dev.json", FRAZIL_ENV="prod")) == "dev"
    assert "environment 00f1abc: it does not exist" in frazil("jobs", "logs", "00f1abc").stderr


@pytest.mark.usefixtures("project")
def test_with_the_option_the_argument_of_logs_is_a_run() -> None:
    assert asked(frazil("jobs", "logs", "--env", "dev", "00f1abc")) == "dev"
    assert asked(frazil("jobs", "logs", "dev", "00f1abc", "--env", "dev")) == "dev"
