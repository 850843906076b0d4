"""`frazil init`: what it asks, what it refuses, and that other commands then need no option."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from frazil.cli import init
from frazil.cli.main import app
from frazil.errors import InvalidInput


def frazil(*arguments: str, **variables: str) -> Result:
    return CliRunner(env=variables).invoke(app, arguments)


def test_it_ends_with_the_next_commands(folder: Path) -> None:
    ended = frazil("init", "my shop", "--yes")
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.partition("Next:\n")[2].split("\n")[:3] == [
        "  cd 'my shop'",
        "  frazil local up",
        "  frazil local produce orders orders.jsonl",
    ]
    assert (folder / "my shop" / "frazil.toml").read_text().endswith('environment = "local"\n')
    again = frazil("init", "my shop", "--yes")
    assert again.exit_code == 2
    assert "my shop: frazil.toml, pipelines.py, tests/test_pipelines.py, " in again.stderr


def test_a_project_that_deploys_names_its_packages_and_the_steps_of_a_deployment(folder: Path) -> None:
    ended = frazil("init", "--kafka", "plain", "--aws", "--yes", "--json")
    assert ended.exit_code == 0, ended.output
    commands = json.loads(ended.stdout)["next"]
    assert commands[0] == "pip install 'frazil[infra]'"
    assert commands[-4:] == [
        "frazil deploy plan dev --offline",
        "frazil deploy bootstrap dev",
        "frazil deploy up dev --release none",
        "frazil deploy up dev",
    ]
    assert (folder / "infra_app.py").read_text().count("Deployment(name=") == 1


def test_a_script_has_its_answers_as_options(folder: Path) -> None:
    ended = frazil(
        "init", "--kafka", "plain", "--bootstrap", "k:1", "--env", "staging", "--registry", "http://r:1", "--json"
    )
    assert ended.exit_code == 0, ended.output
    assert "frazil.toml" in json.loads(ended.stdout)["files"]
    shown = (folder / "frazil.toml").read_text()
    assert '[environments.staging.kafka]\nbootstrap = "k:1"\n' in shown
    assert '[environments.staging.registry]\nurl = "http://r:1"\n' in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no Kafka is chosen. Give --kafka local|plain|confluent"),
        (["--yes", "--bootstrap", "k:1"], "--bootstrap: the local services have their own addresses"),
        (["--yes", "--env", "dev"], "--env: `frazil local up` writes the environment local"),
        (["--kafka", "plain", "--yes", "--bootstrap", "nowhere"], "environments.dev.kafka.bootstrap: "),
    ],
)
def test_wrong_answers_write_nothing(folder: Path, arguments: list[str], said: str) -> None:
    ended = frazil("init", *arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert [*folder.iterdir()] == []


def test_a_closed_stdin_is_no_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InvalidInput, match="no Kafka is chosen"):
        init.init()


def test_on_a_terminal_it_asks(folder: Path) -> None:
    master, terminal = os.openpty()
    try:
        os.write(master, b"kafka\nplain\nbroker:9092\n\ny\n")
        command = [sys.executable, "-m", "frazil.cli.main", "init"]
        ended = subprocess.run(command, stdin=terminal, capture_output=True, text=True, check=False, timeout=60)
    finally:
        os.close(master)
        os.close(terminal)
    assert ended.returncode == 0, ended.stderr
    assert "Write one of local, plain, confluent" in ended.stderr
    assert 'bootstrap = "broker:9092"' in (folder / "frazil.toml").read_text()
    assert "registry" not in (folder / "frazil.toml").read_text()
    assert (folder / "infra_app.py").is_file()


# ── What other commands take from the project file ──────────────────────────────────────────────
@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder below a project whose environment `dev` lacks an artifact bucket, which the error of a command names."""
    assert frazil("init", "--kafka", "plain", "--yes").exit_code == 0
    with (folder / "frazil.toml").open("a") as file:
        file.write('\n[environments.other]\nkafka.bootstrap = "k:1"\n')
        file.write('catalog = { type = "local", path = "/x/c.db", warehouse = "/x" }\n')
    monkeypatch.chdir(folder / "tests")
    return folder


@pytest.mark.usefixtures("project")
def test_the_order_is_option_then_variable_then_project_file() -> None:
    for arguments, variables, wanted in [
        ([], {}, "dev"),
        ([], {"FRAZIL_ENV": "other"}, "other"),
        (["other"], {}, "other"),
        (["--env", "other"], {"FRAZIL_ENV": "nowhere"}, "other"),
    ]:
        ended = frazil("jobs", "list", *arguments, **variables)
        assert (ended.exit_code, f"environment {wanted}: it has no artifact_bucket" in ended.stderr) == (2, True)
    assert "environment dev: it has no artifact_bucket" in frazil("jobs", "stop", "orders").stderr


def test_declarations_are_those_of_the_project_file(project: Path) -> None:
    assert "Name one of orders" in frazil("status", "nothing").stderr
    (project / "mine.py").write_text((project / "pipelines.py").read_text().replace("orders", "others"))
    mine = str(project / "mine.py")
    assert "Name one of others" in frazil("status", "nothing", FRAZIL_PIPELINES=mine).stderr
    assert "Name one of others" in frazil("status", "nothing", "--pipelines", mine).stderr


def test_without_a_name_declarations_are_the_usual_file_of_the_project(project: Path) -> None:
    (project / "stacks").mkdir()
    (project / "pipelines.py").rename(project / "stacks" / "pipelines.py")
    (project / "frazil.toml").write_text("")
    assert "Name one of orders" in frazil("status", "nothing").stderr
    assert frazil("check").exit_code == 0


@pytest.mark.usefixtures("project")
def test_no_project_folder_gets_a_second_state_folder() -> None:
    shown = json.loads(frazil("local", "status", "--json").stdout)
    assert shown["home"] == str(Path.cwd().parent / ".frazil")


def test_a_broken_project_file_stops_a_command_and_no_help(project: Path) -> None:
    (project / "frazil.toml").write_text("pipeline = 1\n")
    ended = frazil("status", "orders")
    assert (ended.exit_code, ended.stderr) == (
        2,
        "error: ../frazil.toml: pipeline: there is no such field. Did you mean pipelines?\n",
    )
    assert frazil("status", "--help").exit_code == 0
    assert frazil("local", "status").exit_code == 0


@pytest.mark.parametrize(("line", "word"), [("frazil status ", "orders"), ("frazil status x --env ", "dev")])
@pytest.mark.parametrize("content", ["", "nothing = 1\n"], ids=["valid", "invalid"])
def test_names_complete(project: Path, line: str, word: str, content: str) -> None:
    (project / "frazil.toml").write_text(content + (project / "frazil.toml").read_text())
    variables = {"_FRAZIL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ended = CliRunner(env=variables).invoke(app, [], prog_name="frazil")
    assert word in ended.stdout.split(), ended.output
