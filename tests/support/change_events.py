"""The change events of a topic, decoded without Frazil."""

from __future__ import annotations

import io
import json
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import fastavro
from confluent_kafka import Consumer, Message, TopicPartition

from frazil.local.services import LocalServices


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """A record of change data. A tombstone has no value."""

    key: dict[str, Any] | None
    value: dict[str, Any] | None

    @property
    def number(self) -> Any:
        """The field `id` of the key; none without a key."""
        return self.key["id"] if self.key else None

    @property
    def operation(self) -> str | None:
        """The event's operation; none for a tombstone."""
        return self.value["op"] if self.value else None

    @property
    def after(self) -> dict[str, Any] | None:
        """The row after the change."""
        return self.value["after"] if self.value else None

    @property
    def is_of_incremental_snapshot(self) -> bool:
        """Whether an incremental snapshot read the row."""
        return self.value is not None and self.value["source"]["snapshot"] == "incremental"


@cache
def _schema(registry_url: str, number: int) -> Any:
    with urllib.request.urlopen(f"{registry_url}/schemas/ids/{number}", timeout=30) as answer:
        return fastavro.parse_schema(json.loads(json.loads(answer.read())["schema"]))


def decoded(data: bytes | None, registry_url: str) -> Any:
    """Return a key or a value: Avro in Confluent's frame, or JSON with or without its schema."""
    if data is None:
        return None
    if data[:1] == b"\0":
        return fastavro.schemaless_reader(
            io.BytesIO(data[5:]), _schema(registry_url, int.from_bytes(data[1:5], "big")), None
        )
    document = json.loads(data)
    return document["payload"] if isinstance(document, dict) and set(document) == {"schema", "payload"} else document


class ChangeEvents:
    """A reader of one topic from its beginning."""

    def __init__(self, place: LocalServices, topic: str) -> None:
        self._registry_url = place.registry_url
        self._seen: list[ChangeEvent] = []
        self._unread: deque[Message] = deque()
        self._consumer = Consumer(
            {
                "bootstrap.servers": place.bootstrap,
                "group.id": f"reader of {topic}",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def until(self, is_last: Callable[[ChangeEvent], bool], *, seconds: float = 120) -> list[ChangeEvent]:
        """Read on until an event is the last one. Return all events from the beginning. Fails after `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            for message in self._consumer.consume(1000, timeout=0.2):
                assert message.error() is None or message.error().retriable(), message.error()
                if message.error() is None:
                    self._unread.append(message)
            while self._unread:
                message = self._unread.popleft()
                key, value = (decoded(data, self._registry_url) for data in (message.key(), message.value()))
                self._seen.append(ChangeEvent(key=key, value=value))
                if is_last(self._seen[-1]):
                    return list(self._seen)
            assert time.monotonic() < deadline, f"the last event does not arrive; so far: {self._seen[-5:]}"

    def close(self) -> None:
        """Close the reader."""
        self._consumer.close()
