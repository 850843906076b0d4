"""Wrong input and services that are away: each command ends with one line, what and where and what to do, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.declaration.documents.document import environment_document
from tests.support.documents import environment_in

GOOD = """
from frazil.declaration import Pipeline, Table, Topic

pipelines = [Pipeline(topic=Topic("orders", value="text"), table=Table("shop.orders"))]
"""
ON_A_PIPELINE: dict[str, list[str]] = {
    "run": ["run", "PIPELINE", "--once"],
    "status": ["status", "PIPELINE"],
    "verify": ["verify", "PIPELINE"],
    "accept": ["accept", "PIPELINE", "offsets-lost", "--reason", "ticket 4711"],
    "dead-letters list": ["dead-letters", "list", "PIPELINE"],
    "dead-letters show": ["dead-letters", "show", "PIPELINE", "0:1"],
}


def environment(folder: Path, **changed: Any) -> dict[str, Any]:
    return {**environment_document(environment_in(folder)), **changed}


@pytest.fixture
def project(folder: Path) -> Path:
    """A project of one pipeline and one environment, whose broker and catalog are not there."""
    (folder / "mine.py").write_text(GOOD)
    (folder / "mine.json").write_text(json.dumps(environment(folder)))
    return folder


def frazil(command: str, *more: str, pipeline: str = "orders", file: str = "mine.py", env: str = "mine.json") -> Result:
    words = [pipeline if word == "PIPELINE" else word for word in ON_A_PIPELINE[command]]
    return CliRunner().invoke(app, [*words, *more, "--pipelines", file, "--env", env])


def is_one_line(ended: Result, code: int) -> str:
    """The error's line; nothing else may have been said."""
    assert (ended.exit_code, ended.stdout) == (code, ""), ended.output
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


def broken(folder: Path) -> None:
    """Write files of which each has one mistake."""
    (folder / "identifier.py").write_text(GOOD.replace("shop.orders", "Shop Orders"))
    (folder / "syntax.py").write_text("pipelines = [")
    (folder / "port.json").write_text(json.dumps(environment(folder, kafka={"bootstrap": "no port"})))
    (folder / "none.json").write_text("{")


@pytest.mark.parametrize("command", ON_A_PIPELINE)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pipeline": "nobody"}, "the pipeline nobody does not exist. Name one of orders"),
        (
            {"env": "nowhere"},
            "environment nowhere: it does not exist. Write [environments.nowhere] into frazil.toml, or .frazil",
        ),
        ({"file": "other.py"}, "other.py: the file does not exist. Run in the project's folder"),
        ({"file": "identifier.py"}, "identifier.py:4: table.identifier"),
        ({"file": "syntax.py"}, "syntax.py:1: this is not Python"),
        ({"env": "port.json"}, "port.json: kafka.bootstrap"),
        ({"env": "none.json"}, "none.json"),
    ],
)
def test_every_command_on_a_pipeline_tells_what_is_wrong_and_where(
    project: Path, command: str, wrong: dict[str, str], said: str
) -> None:
    broken(project)
    assert said in is_one_line(frazil(command, **wrong), 2)


def test_options_that_exclude_each_other_are_refused(project: Path) -> None:
    assert "--once and --follow exclude each other" in is_one_line(frazil("run", "--follow"), 2)


@pytest.mark.parametrize(
    "place", ["0", "0:", ":1", "-1:0", "0:1:2", "a:1", "\u0663:1", "0:" + "9" * 5000, "9999999999:1", f"0:{2**63}"]
)
def test_what_is_no_place_of_a_record_is_told(project: Path, place: str) -> None:
    words = ["dead-letters", "show", "orders", "--pipelines", "mine.py", "--env", "mine.json", "--", place]
    assert "is no place of a record. Write PARTITION:OFFSET" in is_one_line(CliRunner().invoke(app, words), 2)


@pytest.mark.parametrize(
    "time", ["", "yesterday", "2026-13-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9" * 5000]
)
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_what_is_no_time_is_told(project: Path, option: str, time: str) -> None:
    assert f"{option}: {time!r} is not a time" in is_one_line(frazil("dead-letters list", option, time), 2)


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("run", "--every", "inf"),
        ("run", "--every", "nan"),
        ("dead-letters list", "--partition", "9" * 30),
        ("dead-letters list", "--partition", "-1"),
    ],
)
def test_a_number_beyond_the_bounds_of_its_option_is_told(project: Path, command: str, option: str, value: str) -> None:
    ended = frazil(command, option, value)
    assert (ended.exit_code, f"Invalid value for '{option}'" in ended.stderr) == (2, True)


@pytest.mark.parametrize("command", ["status", "verify", "dead-letters list", "dead-letters show"])
def test_a_catalog_that_is_no_catalog_is_unavailable(project: Path, command: str) -> None:
    (project / "catalog.db").write_bytes(b"this is no database, only some text that fills a page" * 100)
    line = is_one_line(frazil(command), 3)
    assert "Check the catalog's and the object store's settings" in line


def test_a_stopped_local_broker_costs_status_the_lag_only_and_is_found_at_once(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frazil.clients.kafka.Kafka.offsets", lambda *_: pytest.fail("the client would retry"))
    ended = frazil("status", "--json")
    assert ended.exit_code == 0, ended.stderr
    (status,) = json.loads(ended.stdout)["pipelines"]
    assert (status["lag"], status["why"]) == (None, "The local broker 127.0.0.1:9 does not run")
    assert "orders: The local broker 127.0.0.1:9 does not run\n" in frazil("status").stdout


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "127.0.0.1:9 did not answer within 10 s"),
        (
            {
                "kafka": {
                    "bootstrap": "127.0.0.1:9",
                    "security": "SASL_SSL",
                    "mechanism": "PLAIN",
                    "username": {"env": "NO_SUCH_USER"},
                    "password": {"env": "NO_SUCH_PASSWORD"},
                }
            },
            "secret env NO_SUCH_USER",
        ),
    ],
    ids=["broker", "secret"],
)
def test_run_tells_what_is_away_and_no_client_of_kafka_chatters(
    project: Path, changed: dict[str, Any], said: str
) -> None:
    (project / "mine.json").write_text(json.dumps(environment(project, **changed)))
    command = [str(Path(sys.executable).parent / "frazil"), "run", "orders", "--once", "--master", "local[1]"]
    ended = subprocess.run(
        [*command, "--pipelines", "mine.py", "--env", "mine.json"],
        env={name: value for name, value in os.environ.items() if not name.startswith("NO_SUCH")},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ended.returncode == 3, ended.stderr
    lines = ended.stderr.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1
    assert said in errors[0]
    for line in lines:
        assert line in errors or json.loads(line)["event"]  # nothing but the error and the log's own lines
