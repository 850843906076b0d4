"""`frazil show` finds a stopped local broker at once, asks every other broker, and says what a state is not sure of."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.cli.show import stopped_broker
from frazil.declaration.documents.document import document
from frazil.declaration.documents.to_json import canonical, to_json
from frazil.lake.ledger.key_totals import StaleKeys
from tests.audit.landed_state import LandedState


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


def test_stale_keys_are_printed_by_show_and_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = LandedState(tmp_path)
    state.change(range(30))
    state.stale = StaleKeys(keys=1_200, unknown=3, file="named by the commit")
    state.change(range(20, 40), range(5))
    (tmp_path / "pipelines.json").write_bytes(canonical(document([state.pipeline])))
    (tmp_path / "here.json").write_bytes(canonical({"version": 1, **to_json(state.environment)}))
    monkeypatch.chdir(tmp_path)
    options = ["--pipelines", "pipelines.json", "--env", "here.json"]

    def output(command: str, *more: str) -> str:
        ended = CliRunner().invoke(app, [command, "orders", *options, *more])
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    for command, *more in (["show"], ["verify"], ["verify", "--verbose"]):
        shown = " ".join(output(command, *more).split())
        assert shown.count("1,200 keys are stale: their newest record was rejected") == 1
        assert shown.count("3 rejected records have a key that cannot be read; each may make a key stale") == 1
        found = json.loads(output(command, "--json"))
        assert (found["stale_keys"], found["unknown_keys"]) == (1_200, 3)
    (row,) = json.loads(output("status", "--json"))["pipelines"]
    assert row["rows"] == 35
