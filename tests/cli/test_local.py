"""`frazil local up`: with `--cloud`, AWS is where `localstack_client` looks; with `--postgres`, there is a source of changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.local.aws.endpoint import edge_port
from frazil.local.ports import HOST, free_ports
from frazil.local.process import noted
from frazil.local.services import down


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    down(tmp_path)


@pytest.mark.parametrize(
    ("variables", "port"),
    [
        ({}, 4566),
        ({"LOCALSTACK_HOST": "localhost:14566"}, 14566),
        ({"AWS_ENDPOINT_URL": f"http://{HOST}:14567"}, 14567),
        ({"LOCALSTACK_HOST": "elsewhere.example:14566"}, 4566),
    ],
)
def test_the_edge_is_where_localstacks_client_looks(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], port: int
) -> None:
    for name in ("LOCALSTACK_HOST", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert edge_port() == port


@pytest.mark.long
@pytest.mark.e2e
def test_the_cloud_is_found_by_localstacks_client_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with free_ports(1) as (port,):
        monkeypatch.setenv("LOCALSTACK_HOST", f"localhost:{port}")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    ended = CliRunner().invoke(app, ["local", "up", "--cloud", "--json"])
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.stdout)
    assert told["exports"]["AWS_ENDPOINT_URL"] == f"http://{HOST}:{port}"
    assert set(told["parts"]) == {"kafka", "registry", "aws"}
    code = (
        "from localstack_client.session import Session\n"
        "made = Session().client('emr-serverless').create_application(\n"
        "    name='a', releaseLabel='emr-spark-8.1.0', type='SPARK', clientToken='t')\n"
        "print(made['name'], [b['Name'] for b in Session().client('s3').list_buckets()['Buckets']])\n"
    )
    asked = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert asked.stdout.strip() == "a ['lake']"
    pids = [process.pid for process in noted(folder / ".frazil")]
    assert len(pids) == 3
    assert CliRunner().invoke(app, ["local", "down"]).exit_code == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)


@pytest.mark.e2e
@pytest.mark.long
def test_postgresql_is_started_shown_and_stopped_by_its_own_option(folder: Path) -> None:
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


def test_status_and_run_schedule_name_the_command_that_starts_what_does_not_run(folder: Path) -> None:
    ended = CliRunner().invoke(app, ["local", "status"])
    assert (ended.exit_code, ended.stdout) == (0, "no local service of this folder runs; start them: frazil local up\n")
    ended = CliRunner().invoke(app, ["local", "run-schedule", "anything"])
    assert ended.exit_code == 3
    assert "the local part aws does not run. Start it: `frazil local up --cloud`" in ended.stderr


@pytest.mark.parametrize("environment", ["glue", "rest", "dev"])
def test_data_of_another_environment_is_not_removed(
    environment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / ".frazil" / "lake"
    kept.mkdir(parents=True)
    ended = CliRunner().invoke(app, ["local", "down", "--data", "--env", environment])
    assert ended.exit_code == 2, ended.output
    assert kept.is_dir()
