"""What Confluent's JSON Schema converter would write: a topic of Kafka Connect's JSON with schemas, copied in Confluent's frame.

The converter itself is in no Maven repository that the tests use. Values are those of Connect's own converter, which writes them alike.
"""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from frazil.clients.registry.admin import RegistryAdmin
from frazil.clients.registry.schemas import SchemaType
from frazil.local.services import LocalServices
from tests.support.connect_schemas import confluent
from tests.support.shop import frame


class JsonSchemaRelay:
    """A copy of a topic of one partition; keys and values of each schema are registered as they come."""

    def __init__(self, place: LocalServices, source: str, target: str) -> None:
        self._source, self._target, self._place = source, target, place
        self._registry = RegistryAdmin(place.registry_url)
        self._producer = Producer({"bootstrap.servers": place.bootstrap, "log_level": 0})
        self._next = 0
        self._ids: dict[str, int] = {}

    def copy(self) -> None:
        """Copy all records that the topic has and the copy has not."""
        settings = {"bootstrap.servers": self._place.bootstrap, "group.id": f"relay of {self._source}", "log_level": 0}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        try:
            partition = TopicPartition(self._source, 0, self._next)
            end = consumer.get_watermark_offsets(partition, timeout=30)[1]
            consumer.assign([partition])
            while self._next < end:
                for message in consumer.consume(1000, timeout=0.5):
                    assert message.error() is None, message.error()
                    key, value = self._framed("key", message.key()), self._framed("value", message.value())
                    self._producer.produce(self._target, value, key=key)
                    self._next = message.offset() + 1
        finally:
            consumer.close()
        assert self._producer.flush(30) == 0

    def _framed(self, side: str, written: bytes | None) -> bytes | None:
        if written is None:
            return None
        document: dict[str, Any] = json.loads(written)
        if document["schema"] is None:  # a tombstone's value
            assert document["payload"] is None
            return None
        text = json.dumps(confluent(document["schema"]))
        if (side + text) not in self._ids:
            self._ids[side + text] = self._registry.register(f"{self._target}-{side}", text, SchemaType.JSON)
        return frame(self._ids[side + text], json.dumps(document["payload"]).encode())
