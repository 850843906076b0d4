"""`frazil status` prints all pipelines, again and again if asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.clients.secrets import Secrets
from frazil.declaration.documents.document import environment_document, parse_environment
from frazil.lake.read.stored_tables import Lake
from tests.audit.audited_table import Landed

DECLARED = """
from frazil.declaration import *
pipelines = [
    Pipeline(topic=Topic("orders", value_format="text"), table=Table("shop.orders"), name="orders"),
    Pipeline(topic=Topic("clicks", value_format="text"), table=Table("shop.clicks")),
]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one landed pipeline of two, whose broker does not run."""
    landed = Landed(tmp_path)
    landed.land({0: 100, 1: 50}, rejected=[(0, 7)])
    (tmp_path / "pipelines.py").write_text(DECLARED)
    (tmp_path / "env.json").write_text(json.dumps(environment_document(landed.environment)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRAZIL_PIPELINES", "pipelines.py")
    monkeypatch.setenv("FRAZIL_ENV", "env.json")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_each_pipeline_is_a_row_and_the_last_row_is_their_sum() -> None:
    ended = CliRunner().invoke(app, ["status"])
    assert ended.exit_code == 0, ended.output
    lines = ended.stdout.splitlines()
    total = next(number for number, line in enumerate(lines) if line.startswith("total"))
    assert lines[1].rstrip().endswith("unknown")
    assert (lines[1].split()[0], lines[total - 1].split()[0]) == ("orders", "clicks")
    assert "no table yet" in lines[total - 1]
    assert "149" in lines[total]
    assert lines[total + 1 :] == ["orders, clicks: The local broker 127.0.0.1:9 does not run"]  # once for both
    found = json.loads(CliRunner().invoke(app, ["status", "--json", "orders"]).stdout)
    assert (found["pipelines"][0]["rows"], found["totals"]["rejected_24h"]) == (149, 1)
    assert found["states"] == {"unknown": 1}


def test_rows_that_another_engine_deleted_are_noted_with_the_command_that_counts(folder: Path) -> None:
    document = json.loads((folder / "env.json").read_text())
    lake = Lake(parse_environment(document), Secrets({}).read)
    stored = lake.table("shop.orders")
    assert stored is not None
    stored.iceberg.delete("_kafka_offset < 3")
    note = "orders: Other engines changed rows in 1 commits, so the number of rows may differ; `frazil verify orders`"
    assert note in " ".join(CliRunner().invoke(app, ["status"]).stdout.split())
    found = json.loads(CliRunner().invoke(app, ["status", "--json", "orders"]).stdout)
    assert found["pipelines"][0]["foreign_commits"] == 1


def test_a_secret_that_is_missing_is_the_reason_of_rows_and_none_is_printed(folder: Path) -> None:
    document = json.loads((folder / "env.json").read_text())
    secured = {"security": "SASL_SSL", "mechanism": "PLAIN", "username": {"env": "NO_U"}, "password": {"env": "NO_P"}}
    document["kafka"] = {"bootstrap": "kafka.example:9", **secured}
    (folder / "env.json").write_text(json.dumps(document))
    ended = CliRunner().invoke(app, ["status", "--json"])
    assert ended.exit_code == 0, ended.output
    first = json.loads(ended.stdout)["pipelines"][0]
    assert (first["state"], first["why"], first["rows"]) == ("unknown", "secret env NO_U: it is not set", 149)


@pytest.mark.usefixtures("folder")
def test_watching_off_a_terminal_needs_json() -> None:
    ended = CliRunner().invoke(app, ["status", "--watch"])
    assert ended.exit_code == 2
    assert "Give --json, for one line a look" in ended.stderr


@pytest.mark.usefixtures("folder")
def test_watching_prints_a_json_line_a_look_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "frazil.cli.main", "status", "--watch", "--json", "--every", "0.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as watching:
        assert watching.stdout is not None
        looks = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 0
    assert looks[0]["at"] < looks[1]["at"]
    assert looks[1]["totals"]["rows"] == 149  # the first look may end before a slow machine has opened the table
