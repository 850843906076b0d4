"""`frazil local up`: with `--postgres`, there is a source of changes."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import psutil
import psycopg
import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.local.process import noted
from frazil.local.services import down


@pytest.mark.e2e
@pytest.mark.long
def test_postgresql_is_started_shown_and_stopped_by_its_own_option(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: down(folder))
    ended = CliRunner().invoke(app, ["local", "up", "--postgres"])
    assert ended.exit_code == 0, ended.output
    pids = {process.name: process.pid for process in noted(folder / ".frazil")}
    assert set(pids) == {"kafka", "registry", "postgres", "connect"}
    shown = CliRunner().invoke(app, ["local", "status", "--json"])
    parts = json.loads(shown.stdout)["parts"]
    with psycopg.connect(parts["postgres"]["uri"]) as connection:
        assert connection.execute("SELECT current_user, current_setting('wal_level')").fetchone() == (
            "frazil",
            "logical",
        )
    with urllib.request.urlopen(f"{parts['connect']['url']}/connector-plugins") as answer:
        assert "io.debezium.connector.postgresql.PostgresConnector" in {
            one["class"] for one in json.loads(answer.read())
        }
    for name in ("postgres", "connect"):
        assert next(iter(parts[name].values())) in ended.stdout.replace("\n", "")
    assert CliRunner().invoke(app, ["local", "down"]).exit_code == 0
    assert not any(psutil.pid_exists(pid) for pid in pids.values())
    assert CliRunner().invoke(app, ["local", "down", "--data"]).exit_code == 0
    assert not (folder / ".frazil" / "postgres").exists()


@pytest.mark.usefixtures("folder")
def test_status_names_the_command_that_starts_what_does_not_run() -> None:
    ended = CliRunner().invoke(app, ["local", "status"])
    assert (ended.exit_code, ended.stdout) == (0, "no local service of this folder runs; start them: frazil local up\n")
