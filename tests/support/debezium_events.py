"""Change events as Debezium's PostgreSQL connector writes them with an Avro converter: schemas, keys, values, tombstones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.shop import Shop, avro, frame

PLACEHOLDER = "__debezium_unavailable_value"
LEFT_OUT = (PLACEHOLDER, PLACEHOLDER.encode(), [PLACEHOLDER])
SOURCE = {
    "type": "record",
    "name": "Source",
    "namespace": "io.debezium.connector.postgresql",
    "fields": [
        {"name": "version", "type": "string"},
        {"name": "connector", "type": "string"},
        {"name": "name", "type": "string"},
        {"name": "ts_ms", "type": "long"},
        {
            "name": "snapshot",
            "type": [{"type": "string", "connect.default": "false", "connect.name": "io.debezium.data.Enum"}, "null"],
            "default": "false",
        },
        {"name": "db", "type": "string"},
        {"name": "sequence", "type": ["null", "string"], "default": None},
        {"name": "ts_us", "type": ["null", "long"], "default": None},
        {"name": "ts_ns", "type": ["null", "long"], "default": None},
        {"name": "schema", "type": "string"},
        {"name": "table", "type": "string"},
        {"name": "txId", "type": ["null", "long"], "default": None},
        {"name": "lsn", "type": ["null", "long"], "default": None},
        {"name": "xmin", "type": ["null", "long"], "default": None},
        {"name": "origin", "type": ["null", "string"], "default": None},
        {"name": "origin_lsn", "type": ["null", "long"], "default": None},
    ],
    "connect.name": "io.debezium.connector.postgresql.Source",
}
BLOCK = {
    "type": "record",
    "name": "block",
    "namespace": "event",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "total_order", "type": "long"},
        {"name": "data_collection_order", "type": "long"},
    ],
    "connect.name": "event.block",
}
STARTED_MS = 1_795_337_513_714


def named(base: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a type that holds a semantic type of Kafka Connect or Debezium."""
    return {"type": base, "connect.version": 1, "connect.name": name, **more}


def optional(of: Any) -> list[Any]:
    """Return the type of a column that may be null."""
    return ["null", of]


def column(name: str, of: Any) -> dict[str, Any]:
    """Return a field of a row; one that may be null is null by default."""
    return {"name": name, "type": of, **({"default": None} if isinstance(of, list) and of[0] == "null" else {})}


ORDERS = (column("id", "long"), column("customer", optional("string")), column("note", optional("string")))
KEY = (column("id", "long"),)


def envelope_schema(columns: Sequence[Mapping[str, Any]], table: str = "shop.public.orders") -> dict[str, Any]:
    """Return the schema of a table's values, as the connector registers it."""
    value = {"type": "record", "name": "Value", "fields": [*columns], "connect.name": f"{table}.Value"}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": table,
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": SOURCE},
            {"name": "transaction", "type": ["null", BLOCK], "default": None},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
            {"name": "ts_us", "type": ["null", "long"], "default": None},
            {"name": "ts_ns", "type": ["null", "long"], "default": None},
        ],
        "connect.version": 2,
        "connect.name": f"{table}.Envelope",
    }


def key_schema(columns: Sequence[Mapping[str, Any]], table: str = "shop.public.orders") -> dict[str, Any]:
    """Return the schema of a table's keys."""
    fields = [*columns]
    return {"type": "record", "name": "Key", "namespace": table, "fields": fields, "connect.name": f"{table}.Key"}


class Source:
    """A table of a database, and the connector that writes its changes to the shop's topic.

    `rows` is the table. If its replica identity `is_full`, events have the row before; else `before` of a delete has the key, and
    invented values beside it.
    """

    def __init__(
        self,
        shop: Shop,
        columns: Sequence[Mapping[str, Any]] = ORDERS,
        key: Sequence[Mapping[str, Any]] = KEY,
        *,
        partitions: int = 1,
    ) -> None:
        self.shop, self.partitions, self.rows = shop, partitions, dict[Any, dict[str, Any]]()
        self.lsn = 26_820_128
        self.is_full = False
        self.identify(key)
        self.evolve(columns)

    def identify(self, key: Sequence[Mapping[str, Any]]) -> None:
        """Say which columns the key has."""
        self.key_name, self._key_schema = key[0]["name"], key_schema(key)
        self._key_id = self.shop.registry_admin.register(f"{self.shop.topic}-key", json.dumps(self._key_schema))

    def evolve(self, columns: Sequence[Mapping[str, Any]]) -> None:
        """Change the table's columns; later events have another version of the schema."""
        self._schema = envelope_schema(columns)
        self._names = [each["name"] for each in columns]
        self._schema_id = self.shop.register(self._schema)

    def event(self, op: str, after: Mapping[str, Any] | None, before: Mapping[str, Any] | None = None) -> bytes:
        """Return the bytes of an event."""
        return frame(self._schema_id, avro(self._schema, self.change(op, after, before)))

    def change(self, op: str, after: Any, before: Any) -> dict[str, Any]:
        """Return the value of an event, which is a place further in the source's log."""
        self.lsn += 152
        now = STARTED_MS + self.lsn % 100_000
        place = {"version": "3.6.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": now, "db": "shop"}
        place |= {"snapshot": "first" if op == "r" else "false", "schema": "public", "table": "orders"}
        place |= {"txId": 745, "lsn": self.lsn, "sequence": f'[null,"{self.lsn}"]'}
        return {"before": before, "after": after, "source": place, "op": op, "ts_ms": now + 7}

    def key(self, number: Any) -> bytes:
        """Return the bytes of a record's key."""
        return frame(self._key_id, avro(self._key_schema, {self.key_name: number}))

    def write(self, op: str, number: Any, **values: Any) -> None:
        """Produce a `c`, `r` or `u`; a placeholder leaves the row's value as it is."""
        row = {name: values.get(name) for name in self._names} | {self.key_name: number}
        before = self.rows.get(number, {})
        known = {name: before.get(name) for name in self._names} if self.is_full and op == "u" else None
        self.produce(number, self.event(op, row, known))
        self.rows[number] = {name: before.get(name) if row[name] in LEFT_OUT else row[name] for name in self._names}

    def delete(self, number: Any, *, event: bool = True, tombstone: bool = True) -> None:
        """Produce a `d` and its tombstone, or what compaction left of them."""
        invented = dict.fromkeys(self._names) | {self.key_name: number}
        known = {name: self.rows[number].get(name) for name in self._names} if self.is_full else invented
        if event:
            self.produce(number, self.event("d", None, known))
        if tombstone:
            self.produce(number, None)
        self.rows.pop(number, None)

    def produce(self, number: Any, value: bytes | None) -> None:
        """Produce a record with the key of a row; with None as number it has none."""
        key = None if number is None else self.key(number)
        where = 0 if number is None else hash(number) % self.partitions
        self.shop.produce([value], key=key, partition=where)
