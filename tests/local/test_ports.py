"""A project's services have the same ports at each start, unless another process uses one."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frazil.errors import InvalidInput, LocalPartFailed
from frazil.local.ports import (
    FIRST,
    HOST,
    LAST_PORT,
    RANGE,
    STATE_FILE,
    free_ports,
    keep_addresses,
    kept_ports,
    last_addresses,
    locked,
    running_addresses,
)


@contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((HOST, port))
        server.listen()
        yield server


def kept(home: Path, part: str, count: int = 1) -> tuple[int, ...]:
    with kept_ports(home, part, count) as ports:
        return ports


def address(port: int) -> dict[str, str]:
    return {"url": f"http://{HOST}:{port}/path"}


def test_a_part_has_the_port_of_its_last_start_again(tmp_path: Path) -> None:
    (first,) = kept(tmp_path, "registry")
    assert FIRST <= first < FIRST + RANGE + 1000
    assert keep_addresses(tmp_path, {"registry": address(first + 7)}) == ()
    assert kept(tmp_path, "registry") == (first + 7,)


def test_connections_of_a_server_that_ended_do_not_take_its_port(tmp_path: Path) -> None:
    """The side that closes first keeps the port for a minute: here, as after `down`, it is the server's."""
    (port,) = kept(tmp_path, "registry")
    with listening(port) as server, socket.create_connection((HOST, port)) as client:
        accepted, _ = server.accept()
        accepted.close()
        assert client.recv(1) == b""
    with socket.socket() as strict, pytest.raises(OSError, match="in use"):
        strict.bind((HOST, port))
    keep_addresses(tmp_path, {"registry": address(port)})
    assert kept(tmp_path, "registry") == (port,)


def test_only_a_port_in_use_is_replaced_and_it_is_said(tmp_path: Path) -> None:
    s3, catalog = kept(tmp_path, "object-store", 2)
    before = {"s3": f"http://{HOST}:{s3}", "catalog": f"http://{HOST}:{catalog}"}
    assert keep_addresses(tmp_path, {"object-store": before}) == ()
    with listening(s3):
        other, same = kept(tmp_path, "object-store", 2)
    assert (other not in (s3, catalog), same) == (True, catalog)
    now = {**before, "s3": f"http://{HOST}:{other}"}
    (moved,) = keep_addresses(tmp_path, {"object-store": now})
    assert str(moved) == (
        f"object-store: the address is now http://{HOST}:{other} http://{HOST}:{catalog}, because another process uses a port "
        f"of http://{HOST}:{s3} http://{HOST}:{catalog}"
    )
    assert kept(tmp_path, "object-store", 2) == (other, catalog)


def test_a_new_part_takes_no_port_that_another_part_keeps(tmp_path: Path) -> None:
    (first,) = kept(tmp_path, "registry")
    keep_addresses(tmp_path, {"kafka": {"bootstrap": f"{HOST}:{first}"}})
    assert kept(tmp_path, "registry") != (first,)
    assert kept(tmp_path, "kafka") == (first,)


def test_a_part_that_does_not_start_now_keeps_its_address(tmp_path: Path) -> None:
    keep_addresses(tmp_path, {"kafka": {"bootstrap": f"{HOST}:20001"}, "postgres": {"uri": "postgresql://f@h:20002/f"}})
    keep_addresses(tmp_path, {"kafka": {"bootstrap": f"{HOST}:20001"}})
    assert kept(tmp_path, "postgres") == (20002,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "parts": {}}',
        '{"version": 1, "parts": {"kafka": 5}}',
        '{"version": 1, "parts": {"kafka": {"pid": 1, "address": {"bootstrap": "127.0.0.1:99999"}}}}',
        '{"version": 1, "parts": {"kafka": {"pid": 1, "address": {"bootstrap": "nothing"}}}}',
    ],
)
def test_a_damaged_file_chooses_ports_again(tmp_path: Path, text: str) -> None:
    (tmp_path / STATE_FILE).write_text(text)
    (port,) = kept(tmp_path, "kafka")
    assert port >= FIRST
    keep_addresses(tmp_path, {"kafka": {"bootstrap": f"{HOST}:{port}"}})
    assert json.loads((tmp_path / STATE_FILE).read_bytes())["version"] == 1
    assert last_addresses(tmp_path)["kafka"] == {"bootstrap": f"{HOST}:{port}"}


def test_a_held_port_is_taken_by_its_server_only() -> None:
    with free_ports(1) as (port,), socket.socket() as server, socket.socket() as stranger:
        with pytest.raises(OSError, match="in use"):
            stranger.bind((HOST, port))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((HOST, port))
        server.listen()
        with socket.create_connection((HOST, port)):
            pass


def test_a_port_can_be_asked_for_from_a_lowest_one_on() -> None:
    with free_ports(2, lowest=60_000) as ports, free_ports(2, lowest=60_000) as others:
        assert min(*ports, *others) >= 60_000
        assert len({*ports, *others}) == 4


def test_when_none_is_free_it_is_said() -> None:
    with pytest.raises(LocalPartFailed, match="no port from 65535 on is free"), free_ports(2, lowest=LAST_PORT):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": 1}', '{"version": 1, "parts": {"kafka": {}}}'])
def test_a_damaged_state_file_has_no_running_part(tmp_path: Path, content: str) -> None:
    (tmp_path / STATE_FILE).write_text(content)
    assert running_addresses(tmp_path) == {}


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / ".frazil").touch()
    with pytest.raises(InvalidInput, match=r"\.frazil: it cannot be written"), locked(tmp_path / ".frazil"):
        pass
