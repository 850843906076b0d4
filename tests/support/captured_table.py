"""A table of a real PostgreSQL, and the Debezium connector that captures it.

The database's own answer to `SELECT *` is what the Iceberg table must hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg.rows import dict_row

from frazil.local.connect_worker import create_connector
from frazil.local.services import LocalServices
from tests.support.change_events import ChangeEvent, ChangeEvents
from tests.support.connectors import Converter, connector_settings, delete_connector

SIGNALS = "debezium_signal"
_MARKER = -1
"""The key of a row that is inserted and deleted after the changes of interest: its delete is the last record."""
_OF_DELETES = "transforms.unwrap.delete.tombstone.handling.mode"


class CapturedTable:
    """A table with the key `id`, an integer. Its name is also that of connector, slot and publication.

    With a `prefix`, the connector is that of the table of this name.
    """

    def __init__(self, place: LocalServices, name: str, columns: str, *, prefix: str = "") -> None:
        self.place, self.name, self.topic = place, name, f"{prefix or name}.public.{name}"
        self._connection = psycopg.connect(place.database, autocommit=True, row_factory=dict_row)
        self.sql(
            f"CREATE TABLE {name} (id bigint PRIMARY KEY, {columns})",
            f"CREATE TABLE IF NOT EXISTS {SIGNALS} (id text PRIMARY KEY, type text NOT NULL, data text)",
        )
        self._events, self._has_tombstones = ChangeEvents(place, self.topic), True

    def capture(
        self, converter: Converter, more: Mapping[str, str] = MappingProxyType({}), *, beside: Sequence[str] = ()
    ) -> None:
        """Create the connector, and wait until the topic has the snapshot. The connector captures the tables `beside` too."""
        settings = connector_settings(
            self.place.database,
            prefix=self.name,
            tables=[f"public.{table}" for table in (self.name, *beside, SIGNALS)],
            converter=converter,
            registry_url=self.place.registry_url,
            more={"signal.data.collection": f"public.{SIGNALS}", "incremental.snapshot.chunk.size": "64", **more},
        )
        self._has_tombstones = more.get(_OF_DELETES) != "rewrite"
        create_connector(self.place.connect_url, self.name, settings)
        self.captured()

    def release(self) -> None:
        """Delete the connector."""
        delete_connector(self.place.connect_url, self.name)

    def close(self) -> None:
        """Close the connections."""
        self._events.close()
        self._connection.close()

    def sql(self, *statements: str) -> list[dict[str, Any]]:
        """Run statements, each in a transaction of its own. Return the rows of the last one."""
        rows: list[dict[str, Any]] = []
        for statement in statements:
            found = self._connection.execute(statement.encode())
            rows = found.fetchall() if found.description else []
        return rows

    def captured(self) -> list[ChangeEvent]:
        """Wait until the topic has all changes so far. Return its events."""
        self.sql(f"INSERT INTO {self.name} (id) VALUES ({_MARKER})", f"DELETE FROM {self.name} WHERE id = {_MARKER}")

        def is_last(event: ChangeEvent) -> bool:
            is_delete = event.value is None if self._has_tombstones else event.value["__deleted"] == "true"
            return is_delete and event.number == _MARKER

        return self._events.until(is_last)

    def begin_incremental_snapshot(self) -> None:
        """Ask for an incremental snapshot, and wait until the topic has its first row."""
        self._signal()
        self._events.until(lambda event: event.is_of_incremental_snapshot)

    def snapshot_incrementally(self) -> list[ChangeEvent]:
        """Ask for an incremental snapshot, and wait until the topic has a row of each key. Return the events."""
        missing = {row["id"] for row in self.selected("id")}
        self._signal()

        def is_last(event: ChangeEvent) -> bool:
            if event.is_of_incremental_snapshot:
                missing.discard(event.number)
            return not missing

        self._events.until(is_last)
        return self.captured()

    def _signal(self) -> None:
        data = json.dumps({"data-collections": [f"public.{self.name}"], "type": "incremental"})
        self.sql(f"INSERT INTO {SIGNALS} VALUES (gen_random_uuid(), 'execute-snapshot', '{data}')")

    def selected(self, *columns: str) -> list[dict[str, Any]]:
        """Return the rows of the source, by key."""
        return self.sql(f"SELECT {', '.join(columns) or '*'} FROM {self.name} ORDER BY id")
