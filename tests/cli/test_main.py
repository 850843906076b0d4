"""The command line in this process: errors as lines, secrets masked, help at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from frazil.cli.main import GROUPS, app, main
from frazil.clients.secrets import Secrets
from frazil.declaration.secret import Secret
from frazil.errors import CatalogUnavailable, CommitRefused, InvalidInput, JvmEnded, TopicRecreated


@pytest.fixture
def cli(folder: Path) -> CliRunner:
    return CliRunner()


def raising(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def declared(file: Path) -> Any:
        raise error

    monkeypatch.setattr("frazil.project.declaration_file.found", declared)


@pytest.mark.usefixtures("cli")
def test_a_fault_of_our_own_has_no_traceback_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, RuntimeError("out\nof luck"))
    monkeypatch.setattr(sys, "argv", ["frazil", "check"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 70
    told = capsys.readouterr().err
    assert told.startswith("error: RuntimeError: out of luck.")
    assert told.count("\n") == 1
    monkeypatch.setenv("FRAZIL_DEBUG", "1")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 70
    assert "Traceback (most recent call last)" in (shown := capsys.readouterr().err)
    assert shown.endswith(told)


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("wrong"), 2),
        (TopicRecreated("it has another id", pipeline="p", place="topic a"), 1),
        (CatalogUnavailable("it said hunter2hunter2"), 3),
        (CommitRefused("the cause"), 6),
        (JvmEnded.of(), 6),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_no_option_changes_an_exit_code(
    cli: CliRunner, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, more: list[str]
) -> None:
    secrets = Secrets({})
    secrets.redactor.add("hunter2hunter2")
    raising(monkeypatch, error)
    plain = cli.invoke(app, ["check", *more], obj=secrets)
    monkeypatch.setenv("FRAZIL_DEBUG", "1")
    ended = cli.invoke(app, ["check", *more], obj=secrets)
    assert plain.exit_code == ended.exit_code == code
    assert "Traceback (most recent call last)" in ended.stderr
    assert "hunter2" not in plain.output + ended.output


@pytest.mark.usefixtures("cli")
def test_a_fault_of_our_own_never_shows_a_secret_that_was_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(self: Secrets, secret: Secret) -> str:
        self.redactor.add("hunter2hunter2")
        raise RuntimeError("x" * 7_980 + " the client said hunter2hunter2")

    (tmp_path / "mine.py").write_text(
        "from frazil.declaration import *\na = Pipeline(topic=Topic('a', value='text'), table=Table('shop.a'))\n"
    )
    (tmp_path / "mine.json").write_text(
        '{"version": 1, "name": "mine", "kafka": {"bootstrap": "kafka.example:9", "security": "SASL_SSL", "mechanism": '
        '"PLAIN", "username": {"env": "U"}, "password": {"env": "P"}}, '
        '"catalog": {"type": "local", "path": "/lake/catalog.db", "warehouse": "/lake"}}'
    )
    monkeypatch.setenv("U", "me")
    monkeypatch.setattr(Secrets, "read", broken)
    monkeypatch.setattr(sys, "argv", ["frazil", "status", "a", "--pipelines", "mine.py", "--env", "mine.json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 70
    told = capsys.readouterr().err
    assert "RuntimeError" in told
    assert "hunter2" not in told


def test_help_is_quick_because_heavy_parts_are_imported_late() -> None:
    heavy = "pyspark pyiceberg pyarrow confluent_kafka boto3 duckdb fastavro"
    code = (
        f"import sys\nfrom frazil.cli import main\nprint([name for name in {heavy!r}.split() if name in sys.modules])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


@pytest.mark.parametrize("width", [60, 100])
def test_each_command_is_under_a_heading_with_its_whole_summary(width: int) -> None:
    told = CliRunner(env={"COLUMNS": str(width), "TERMINAL_WIDTH": str(width)}).invoke(app, ["--help"]).stdout
    listed = [name for names in GROUPS.values() for name in names]
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    assert sorted(listed) == sorted(name for name, command in commands.items() if not command.hidden)
    assert [line.strip(":") for line in told.splitlines() if line.strip(":") in GROUPS] == list(GROUPS)
    for name in listed:
        assert len(str(commands[name].short_help).split()) <= 10
        assert f"{name} " in told
    assert "..." not in told.split("Options:")[1]


def test_an_error_is_json_too_where_json_is_asked_for(cli: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, TopicRecreated("it has another id", pipeline="p", place="topic a", do="Decide"))
    ended = cli.invoke(app, ["dead-letters", "list", "a", "--json"])
    error = {"type": "TopicRecreated", "message": "pipeline p, topic a: it has another id. Decide", "exit_code": 1}
    assert (ended.exit_code, json.loads(ended.stdout)) == (1, {"error": error})
    assert ended.stderr == "error: pipeline p, topic a: it has another id. Decide\n"


def test_a_wrong_option_is_json_too(cli: CliRunner) -> None:
    ended = cli.invoke(app, ["check", "--no-such-option", "--json"])
    told = json.loads(ended.stdout)["error"]
    assert (ended.exit_code, told["type"], told["exit_code"]) == (2, "InvalidInput", 2)
    assert "--no-such-option" in told["message"]
