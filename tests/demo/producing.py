"""A producer of the demo's topics that never pauses, and a journal of the acknowledged records."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from random import Random
from typing import Any

from confluent_kafka import KafkaException, Producer

from frazil.cli.demo.topics import KINDS, SOURCES, Row, Source, planes
from frazil.clients.registry.admin import RegistryAdmin
from frazil.clients.registry.client import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration import Registry as RegistryPlace

PORTION, PAUSE_SECONDS = 600, 30.0
"""Records of each topic that are sent at once, and how long it then waits: a batch of all topics costs the driver a CPU-second or two."""
SPOILT_EVERY, DELETED_EVERY = 100, 25
STATE = "fleet"
"""The topic of an upsert table: the planes, again and again, and deletes of some. None is invalid."""
_FLUSH_SECONDS = 60.0

Place = tuple[int, int]
"""A record's partition and offset."""


@dataclass(slots=True)
class Journal:
    """The acknowledged records by topic: good ones, and ones that were made invalid on purpose."""

    good: dict[str, set[Place]] = field(default_factory=lambda: defaultdict(set))
    spoilt: dict[str, set[Place]] = field(default_factory=lambda: defaultdict(set))
    last: dict[bytes, Place] = field(default_factory=dict)
    """The keys of the state that are not deleted, with their last record."""

    def count(self, topic: str) -> int:
        """Return the number of all records of a topic."""
        return len(self.good[topic]) + len(self.spoilt[topic])

    def rows(self, topic: str) -> set[Place]:
        """Return the records that a topic's table must have, each in one row."""
        return set(self.last.values()) if topic == STATE else self.good[topic]


class NotProduced(Exception):
    """The broker refused a record."""


class Feed:
    """The endless records of one topic: the rows of its source, repeated, with one version of its schema."""

    def __init__(self, source: Source, registry: RegistryAdmin, *, version: int = 0) -> None:
        self.source, self._registry = source, registry
        self._rows: Iterator[Row] = chain.from_iterable(each() for each in repeat(source.rows))
        self._random, self._sent = Random(source.topic), 0
        self.turn_to(version)

    def turn_to(self, version: int) -> None:
        """Write further records with this version, which is registered if necessary."""
        chosen = self.source.versions[version]
        schema = self._registry.register(f"{self.source.topic}-value", chosen.text, self.source.type)
        self._write = (b"\0" + schema.to_bytes(4, "big") + self.source.index, chosen.encode)

    def next(self) -> Iterator[tuple[bytes, bytes | None, bool]]:
        """Return the next record: key, value, whether it is invalid. Each hundredth is followed by an invalid copy.

        In the topic of the state, each 25th is followed by its delete instead.
        """
        row, (frame, encode) = next(self._rows), self._write
        key, value = self.source.key(row).encode(), frame + encode(row)
        yield key, value, False
        self._sent += 1
        if self.source.topic == STATE:
            if self._sent % DELETED_EVERY == 0:
                yield key, None, False
        elif self._sent % SPOILT_EVERY == 0:
            spoil = list(KINDS.values())[self._sent // SPOILT_EVERY % len(KINDS)]
            yield key, spoil(value, len(frame), self._random), True


class Producing:
    """A thread that sends records until `stop`."""

    def __init__(self, bootstrap: str, registry_url: str) -> None:
        self.journal = Journal()
        self._registry = RegistryAdmin(registry_url)
        self._reader = Registry.of(RegistryPlace(url=registry_url), Secrets({}))
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )
        self._feeds: dict[str, Feed] = {}
        self._refused: list[str] = []
        self._lock, self._enough = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="producing", daemon=True)

    def add(self, topic: str, *, at_once: int = 0) -> None:
        """Add a topic, with a number of records at once."""
        source = replace(planes(), topic=STATE) if topic == STATE else SOURCES[topic]()
        feed = Feed(source, self._registry)
        self._send(feed, at_once)
        with self._lock:
            self._feeds[topic] = feed

    def turn_to(self, topic: str, version: int) -> None:
        """Write a topic's further records with another version of its schema, the first portion of them now."""
        with self._lock:
            self._feeds[topic].turn_to(version)
            self._send(self._feeds[topic], PORTION)

    def subjects(self) -> tuple[str, ...]:
        """Return the subjects of the registry."""
        return self._reader.subjects()

    def count(self) -> int:
        """Return the number of acknowledged records of all topics."""
        return sum(self.journal.count(topic) for topic in list(self.journal.good))

    def end(self, topic: str) -> None:
        """Write no more records of a topic."""
        with self._lock:
            del self._feeds[topic]

    def start(self) -> None:
        """Send portion by portion, until `stop`. A second call has no effect."""
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """Stop sending, and wait until all records are acknowledged. Raises `NotProduced` if a record was refused."""
        self._enough.set()
        if self._thread.is_alive():
            self._thread.join()
        left = self._producer.flush(_FLUSH_SECONDS)
        if left or self._refused:
            raise NotProduced(self._refused[0] if self._refused else f"{left} records are not acknowledged")

    def _go_on(self) -> None:
        try:
            while not self._enough.wait(PAUSE_SECONDS):
                with self._lock:
                    for feed in self._feeds.values():
                        self._send(feed, PORTION)
        except (KafkaException, BufferError, NotProduced) as error:  # raised by `stop`, in the calling thread
            self._refused.append(f"{type(error).__name__}: {error}")

    def _send(self, feed: Feed, count: int) -> None:
        for _ in range(count):
            for key, value, is_spoilt in feed.next():
                delivered = partial(self._delivered, is_spoilt)
                self._producer.produce(feed.source.topic, value, key, on_delivery=delivered)
            self._producer.poll(0)
        left = self._producer.flush(_FLUSH_SECONDS)
        if left:
            raise NotProduced(f"{left} records of {feed.source.topic} are not acknowledged")

    def _delivered(self, is_spoilt: bool, error: Any, message: Any) -> None:
        if error is not None:
            self._refused.append(error.str())
            return
        kept, place = self.journal.spoilt if is_spoilt else self.journal.good, (message.partition(), message.offset())
        kept[message.topic()].add(place)
        if message.topic() == STATE:  # a key's records are of one partition, and acknowledged in their order
            self.journal.last.pop(message.key(), None)
            if message.value() is not None:
                self.journal.last[message.key()] = place
