"""Compaction on demand: a topic that the broker compacts within a second or so, and the wait until it has."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import admin as kafka_admin

_admin: Any = kafka_admin

COMPACTED: Mapping[str, str] = {"cleanup.policy": "compact"}  # nothing is compacted before a segment ends
_AT_ONCE = {"segment.ms": "50", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "100"}


def eager(bootstrap: str) -> None:
    """Have the broker look for logs to clean five times a second, not every 15 seconds."""
    admin = _admin.AdminClient({"bootstrap.servers": bootstrap})
    for broker in admin.list_topics(timeout=10).brokers:
        _alter(bootstrap, _admin.ResourceType.BROKER, str(broker), {"log.cleaner.backoff.ms": "200"})


def _alter(bootstrap: str, kind: Any, name: str, settings: Mapping[str, str]) -> None:
    set_to = _admin.AlterConfigOpType.SET
    entries = [_admin.ConfigEntry(key, value, incremental_operation=set_to) for key, value in settings.items()]
    resource = _admin.ConfigResource(kind, name, incremental_configs=entries)
    admin = _admin.AdminClient({"bootstrap.servers": bootstrap})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result()


def keep_deletes(bootstrap: str, topic: str, milliseconds: int) -> None:
    """Have the broker keep records without a value for so many milliseconds, from now on."""
    _alter(bootstrap, _admin.ResourceType.TOPIC, topic, {"delete.retention.ms": str(milliseconds)})


def offsets(bootstrap: str, topic: str, partition: int) -> list[int]:
    """Return the offsets of a partition that hold a record now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "compaction",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[int] = []
        while True:
            message = consumer.poll(10)
            assert message is not None, "the broker does not answer"
            if message.error() is not None:
                return found
            offset = message.offset()
            assert offset is not None
            found.append(offset)
    finally:
        consumer.close()


def compact(
    bootstrap: str, topic: str, partition: int, *, below: int, most: int, roll: Any, keep_deletes_ms: int = 0
) -> None:
    """Compact a topic until at most so many of the offsets `below` hold a record. `roll` appends a record, which ends a segment.

    Records without a value are kept for so many milliseconds.
    """
    settings = {**_AT_ONCE, "delete.retention.ms": str(keep_deletes_ms)}
    _alter(bootstrap, _admin.ResourceType.TOPIC, topic, settings)
    deadline = time.monotonic() + 60
    while len([offset for offset in offsets(bootstrap, topic, partition) if offset < below]) > most:
        assert time.monotonic() < deadline, "the topic is not compacted"
        roll()
