"""`frazil status` prints all pipelines, again and again if asked."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.clients.secrets import Secrets
from frazil.declaration.documents.document import environment_document, parse_environment
from frazil.lake.ledger.key_totals import StaleKeys
from frazil.lake.ledger.stop import Stop, property_name
from frazil.lake.read.stored_tables import Lake
from frazil.status.looking import stopped_broker
from tests.audit.audited_table import Landed
from tests.audit.landed_state import LandedState
from tests.support.documents import written

DECLARED = """
from frazil.declaration import *
pipelines = [
    Pipeline(topic=Topic("orders", value=Json(columns=("order_id long",))), table=Table("shop.orders"), name="orders"),
    Pipeline(topic=Topic("clicks", value="text"), table=Table("shop.clicks")),
]
"""


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one landed pipeline of two, whose broker does not run."""
    landed = Landed(folder)
    landed.land({0: 100, 1: 50}, rejected=[(0, 7)])
    (folder / "pipelines.py").write_text(DECLARED)
    (folder / "env.json").write_text(json.dumps(environment_document(landed.environment)))
    monkeypatch.setenv("FRAZIL_PIPELINES", "pipelines.py")
    monkeypatch.setenv("FRAZIL_ENV", "env.json")
    return folder


@pytest.mark.usefixtures("project")
def test_each_pipeline_is_a_row_and_the_last_row_is_their_sum() -> None:
    ended = CliRunner().invoke(app, ["status"])
    assert ended.exit_code == 0, ended.output
    lines = ended.stdout.splitlines()
    total = next(number for number, line in enumerate(lines) if line.startswith("total"))
    assert lines[1].rstrip().endswith("unknown")
    assert (lines[1].split()[0], lines[total - 1].split()[0]) == ("orders", "clicks")
    assert "no table yet" in lines[total - 1]
    assert "149" in lines[total]
    rejected, broker = lines[total + 1 :]
    assert rejected == "orders: dead letters: 1 open"
    assert broker == "orders, clicks: The local broker 127.0.0.1:9 does not run"  # once for both
    found = json.loads(CliRunner().invoke(app, ["status", "--json", "orders"]).stdout)
    assert (found["pipelines"][0]["rows"], found["totals"]["rejected_24h"]) == (149, 1)
    assert found["states"] == {"unknown": 1}


def test_rows_that_another_engine_deleted_are_noted_with_the_command_that_counts(project: Path) -> None:
    document = json.loads((project / "env.json").read_text())
    lake = Lake(parse_environment(document), Secrets({}).read)
    stored = lake.table("shop.orders")
    assert stored is not None
    stored.iceberg.delete("_kafka_offset < 3")
    note = "orders: Other engines changed rows in 1 commits, so the number of rows may differ; `frazil verify orders`"
    assert note in " ".join(CliRunner().invoke(app, ["status"]).stdout.split())
    found = json.loads(CliRunner().invoke(app, ["status", "--json", "orders"]).stdout)
    assert found["pipelines"][0]["foreign_commits"] == 1


def test_a_secret_that_is_missing_is_the_reason_of_rows_and_none_is_printed(project: Path) -> None:
    document = json.loads((project / "env.json").read_text())
    secured = {"security": "SASL_SSL", "mechanism": "PLAIN", "username": {"env": "NO_U"}, "password": {"env": "NO_P"}}
    document["kafka"] = {"bootstrap": "kafka.example:9", **secured}
    (project / "env.json").write_text(json.dumps(document))
    ended = CliRunner().invoke(app, ["status", "--json"])
    assert ended.exit_code == 0, ended.output
    first = json.loads(ended.stdout)["pipelines"][0]
    assert (first["state"], first["why"], first["rows"]) == ("unknown", "secret env NO_U: it is not set", 149)


@pytest.mark.usefixtures("project")
def test_watching_off_a_terminal_needs_json() -> None:
    ended = CliRunner().invoke(app, ["status", "--watch"])
    assert ended.exit_code == 2
    assert "Give --json, for one line a look" in ended.stderr


@pytest.mark.usefixtures("project")
def test_watching_prints_a_json_line_a_look_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "frazil.cli.main", "status", "--watch", "--json", "--every", "0.5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as watching:
        assert watching.stdout is not None
        looks = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 0
    assert looks[0]["at"] < looks[1]["at"]
    assert looks[1]["totals"]["rows"] == 149  # the first look may end before a slow machine has opened the table


@pytest.mark.parametrize("address", ["kafka.example:9", "10.0.0.1:9", "127.0.0.1.example:9"])
def test_a_broker_on_another_machine_is_not_tried(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("tried"))
    assert stopped_broker(address) == ""
    assert stopped_broker(f"{address},127.0.0.1:9") == ""


def test_a_local_broker_runs_if_one_of_its_ports_accepts() -> None:
    with socket.socket() as listening, socket.socket() as free:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        free.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        running, refusing = (f"127.0.0.1:{one.getsockname()[1]}" for one in (listening, free))
        assert stopped_broker(f"{refusing},{running}") == ""
        assert stopped_broker(refusing) == f"The local broker {refusing} does not run"


def test_stale_keys_are_printed_by_status_and_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = LandedState(tmp_path)
    state.change(range(30))
    state.stale = StaleKeys(keys=1_200, unknown=3, file="named by the commit")
    state.change(range(20, 40), range(5))
    monkeypatch.chdir(tmp_path)
    options = written(tmp_path, [state.pipeline], state.environment)

    def output(command: str, *more: str) -> str:
        ended = CliRunner().invoke(app, [command, "orders", *options, *more])
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    for command, *more in (["status"], ["verify"], ["verify", "--verbose"]):
        shown = " ".join(output(command, *more).split())
        assert shown.count("1,200 keys are stale: their newest record was rejected") == 1
        assert shown.count("3 rejected records have a key that cannot be read; each may make a key stale") == 1
        found = json.loads(output(command, "--json"))
        (one,) = found.get("pipelines", [found])
        assert (one["stale_keys"], one["unknown_keys"]) == (1_200, 3)
    (row,) = json.loads(output("status", "--json"))["pipelines"]
    assert (row["rows"], row["topic"], row["partitions"][0]["lag"], len(row["commits"])) == (35, "orders", None, 4)


def test_dead_letters_say_that_the_pipeline_is_stopped(project: Path) -> None:
    stop = Stop(error="RejectedRecords", message="cause. Run `frazil accept orders rejected-records --reason …`")
    landed = Lake(parse_environment((project / "env.json").read_bytes()), Secrets({}).read).table("shop.orders")
    assert landed is not None
    text = json.dumps(asdict(stop))
    landed.iceberg.transaction().set_properties({property_name("orders"): text}).commit_transaction()
    said = "The pipeline is stopped. cause. Run `frazil accept orders rejected-records --reason … --env env.json`"
    listed = CliRunner().invoke(app, ["dead-letters", "list", "orders"])
    assert (listed.exit_code, listed.stderr) == (0, f"{said}\n")
    assert json.loads(CliRunner().invoke(app, ["dead-letters", "list", "orders", "--json"]).stdout)["stopped"] == said
    shown = CliRunner().invoke(app, ["dead-letters", "show", "orders", "0:99"])
    assert (shown.exit_code, said in shown.stderr) == (2, True)
