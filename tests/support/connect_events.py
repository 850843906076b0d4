"""Change events as Debezium's PostgreSQL connector writes them with JSON converters."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from frazil.clients.registry.schemas import SchemaType
from tests.support.connect_schemas import confluent, envelope_struct, field, struct
from tests.support.debezium_events import Source
from tests.support.shop import Shop, frame

ORDERS = (field("id", "int64", optional=False), field("customer", "string"), field("note", "string"))


class Written(StrEnum):
    """How a converter writes: JSON Schema in Confluent's frame, or Kafka Connect's JSON without or with its schema."""

    JSON_SCHEMA = "json_schema"
    JSON = "json"
    CONNECT_JSON = "connect_json"


class ConnectSource(Source):
    """The source of `debezium_events`, its columns fields of Kafka Connect; with `flat` its events are flattened."""

    def __init__(
        self,
        shop: Shop,
        columns: Sequence[Mapping[str, Any]] = ORDERS,
        key: Sequence[Mapping[str, Any]] = ORDERS[:1],
        *,
        written: Written = Written.JSON_SCHEMA,
        partitions: int = 1,
        flat: bool = False,
    ) -> None:
        self.written, self.flat = written, flat
        super().__init__(shop, columns, key, partitions=partitions)

    def identify(self, key: Sequence[Mapping[str, Any]]) -> None:
        """Say which columns the key has."""
        self.key_name, self._key_schema = key[0]["field"], struct("shop.public.orders.Key", key)
        self._key_id = self._registered("key", self._key_schema)

    def evolve(self, columns: Sequence[Mapping[str, Any]]) -> None:
        """Change the table's columns."""
        added = (field("__deleted", "string"), field("__op", "string"), field("__lsn", "int64"))
        self._names = [each["field"] for each in columns]
        self._schema = struct("Value", (*columns, *added)) if self.flat else envelope_struct(columns)
        self._schema_id = self._registered("value", self._schema)

    def event(self, op: str, after: Mapping[str, Any] | None, before: Mapping[str, Any] | None = None) -> bytes:
        """Return the bytes of an event."""
        change = self.change(op, after, before)
        if self.flat:
            change = {**(after or before or {}), "__deleted": str(op == "d").lower(), "__op": op, "__lsn": self.lsn}
        return self._bytes(self._schema_id, self._schema, change)

    def key(self, number: Any) -> bytes:
        """Return the bytes of a record's key."""
        return self._bytes(self._key_id, self._key_schema, {self.key_name: number})

    def _registered(self, side: str, schema: Mapping[str, Any]) -> int:
        if self.written is not Written.JSON_SCHEMA:
            return 0
        text = json.dumps(confluent(schema))
        return self.shop.registry_admin.register(f"{self.shop.topic}-{side}", text, SchemaType.JSON)

    def _bytes(self, schema_id: int, schema: Mapping[str, Any], value: Any) -> bytes:
        value = {"schema": schema, "payload": value} if self.written is Written.CONNECT_JSON else value
        body = json.dumps(value, default=_in_base64, separators=(",", ":"), ensure_ascii=False).encode()
        return frame(schema_id, body) if self.written is Written.JSON_SCHEMA else body


def _in_base64(value: Any) -> str:
    assert isinstance(value, bytes)
    return base64.b64encode(value).decode()
