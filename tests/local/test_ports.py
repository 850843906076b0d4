import socket
from pathlib import Path

import pytest

from frazil.errors import InvalidInput, LocalPartFailed
from frazil.local.ports import HOST, LAST_PORT, STATE_FILE, free_ports, locked, running_addresses


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
