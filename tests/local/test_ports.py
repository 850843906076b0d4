import socket

import pytest

from frazil.errors import LocalPartFailed
from frazil.local.ports import HOST, LAST_PORT, free_ports


def test_ports_are_different() -> None:
    with free_ports(20) as ports:
        assert len(set(ports)) == 20


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
