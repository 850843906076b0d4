"""`frazil show` finds a stopped local broker at once, and asks every other broker."""

from __future__ import annotations

import socket

import pytest

from frazil.cli.show import stopped_broker


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
