"""PostgreSQL and the Connect worker, with real changes: what reaches the broker, and what outlives a restart."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from frazil.local.connect_worker import create_connector
from frazil.local.process import noted
from frazil.local.services import CHANGE_DATA, USUAL, LocalServices, world
from tests.support.change_events import ChangeEvents
from tests.support.connectors import Converter, connector_settings

from .listening import listening

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@pytest.fixture(scope="module")
def parts() -> Iterator[LocalServices]:
    with world(parts=(*USUAL, *CHANGE_DATA)) as running:
        yield running


def sql(place: LocalServices, *statements: str) -> None:
    with psycopg.connect(place.database, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def capture(place: LocalServices, table: str) -> None:
    settings = connector_settings(
        place.database,
        prefix=table,
        tables=(f"public.{table}",),
        converter=Converter.AVRO,
        registry_url=place.registry_url,
    )
    create_connector(place.connect_url, table, settings)


def test_both_listen_on_this_machine_only(parts: LocalServices) -> None:
    for process in noted(parts.home):
        if process.name in CHANGE_DATA:
            addresses = listening(process)
            assert addresses, process.name
            assert {address.removeprefix("::ffff:") for address in addresses} == {"127.0.0.1"}, process.name


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests do not run as root")
def test_of_root_it_runs_as_nobody(parts: LocalServices) -> None:
    """The server, and the process that serves a client."""
    (server,) = (process.pid for process in noted(parts.home) if process.name == "postgres")
    nobody = pwd.getpwnam("nobody").pw_uid
    with psycopg.connect(parts.database) as connection:
        client = connection.info.backend_pid
        assert psutil.Process(client).ppid() == server
        assert [tuple(psutil.Process(pid).uids()) for pid in (server, client)] == [(nobody,) * 3] * 2


def test_a_client_is_no_superuser_and_no_other_role_connects(parts: LocalServices) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        sql(parts, "COPY (SELECT 1) TO PROGRAM 'cat'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        sql(parts, "COPY (SELECT 1) TO '/tmp/frazil-was-here'")
    with pytest.raises(psycopg.OperationalError, match="no pg_hba.conf entry"):
        psycopg.connect(parts.database.replace("//frazil@", "//postgres@"))


def test_data_and_position_outlive_a_restart(tmp_path: Path) -> None:
    """A connector that is created again goes on where it was: it reads no second snapshot, and loses no change."""
    all_parts = (*USUAL, *CHANGE_DATA)
    with world(tmp_path, parts=all_parts) as first:
        sql(first, "CREATE TABLE kept (id int PRIMARY KEY)", "INSERT INTO kept VALUES (1)")
        capture(first, "kept")
        sql(first, "INSERT INTO kept VALUES (2)")
        ChangeEvents(first, "kept.public.kept").until(lambda event: event.number == 2)
    with world(tmp_path, parts=all_parts) as second:
        assert second.addresses == first.addresses
        sql(second, "INSERT INTO kept VALUES (3)")
        capture(second, "kept")
        found = ChangeEvents(second, "kept.public.kept").until(lambda event: event.number == 3)
    assert [event.operation for event in found if event.number != 2] == ["r", "c"]
    assert {event.operation for event in found if event.number == 2} == {"c"}
