"""A producer: rows to records in the registry's wire format, as fast as one process can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka import admin as kafka_admin

from frazil.cli.demo.topics import FRAME, KINDS, Row, Source, Version
from frazil.clients.registry.admin import RegistryAdmin
from frazil.errors import KafkaUnavailable

NewTopic: Any = vars(kafka_admin)["NewTopic"]  # exported without saying so to type checkers

_SECONDS = 60.0
_STEP = 2_000  # records between two words to the one who watches


@dataclass(slots=True)
class Filling:
    """One topic while it is filled, a version at a time: what was sent so far, good and spoilt."""

    source: Source
    bootstrap: str
    registry_url: str
    share: float
    """Share of the rows that get a spoilt twin, of each kind in turn."""
    seed: int
    sent: int = 0
    spoilt: dict[str, int] = field(default_factory=dict)
    """The spoilt twins by reason."""
    _rows: Iterator[Row] | None = None
    _done: int = 0
    _refused: list[str] = field(default_factory=list)
    _random: Random = field(init=False)
    _places: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._places = set(self._random.sample(range(self.source.count), round(self.source.count * self.share)))

    def create(self, *, partitions: int) -> None:
        """Create the topic."""
        admin = kafka_admin.AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        asked = admin.create_topics([NewTopic(self.source.topic, partitions, 1)], request_timeout=_SECONDS)
        try:
            asked[self.source.topic].result()
        except KafkaException as error:
            raise KafkaUnavailable(error.args[0].str(), where=f"topic {self.source.topic}") from error

    @property
    def is_unfinished(self) -> bool:
        """True if another version of the schema is to come."""
        return self._done < len(self.source.versions)

    def next_version(self, on_progress: Callable[[int], None]) -> Version:
        """Register the next version and send its share of the rows; `on_progress` gets the number sent since."""
        version, rows = self.source.versions[self._done], self._share()
        schema_id = RegistryAdmin(self.registry_url).register(
            f"{self.source.topic}-value", version.text, self.source.type
        )
        frame = b"\0" + schema_id.to_bytes(4, "big") + self.source.index
        self._send(self._records(rows, frame, version), on_progress)
        self._done += 1
        return version

    def _share(self) -> Iterator[Row]:
        if self._rows is None:
            self._rows = self.source.rows()
        if self._done == len(self.source.versions) - 1:
            return self._rows
        return islice(self._rows, self.source.count // len(self.source.versions))

    def _records(self, rows: Iterator[Row], frame: bytes, version: Version) -> Iterator[tuple[bytes, bytes]]:
        encode, key_of, place = version.encode, self.source.key, self.sent - sum(self.spoilt.values())
        for row in rows:
            key, value = key_of(row).encode(), frame + encode(row)
            yield key, value
            if place in self._places:
                kind = list(KINDS)[sum(self.spoilt.values()) % len(KINDS)]
                self.spoilt[kind.value] = self.spoilt.get(kind.value, 0) + 1
                yield key, KINDS[kind](value, FRAME + len(self.source.index), self._random)
            place += 1

    def _send(self, records: Iterator[tuple[bytes, bytes]], on_progress: Callable[[int], None]) -> None:
        producer = Producer(_settings(self.bootstrap))
        began = self.sent
        for key, value in records:
            while True:
                try:
                    producer.produce(self.source.topic, value, key, on_delivery=self._refuse)
                    break
                except BufferError:
                    producer.poll(0.1)
            self.sent += 1
            if (self.sent - began) % _STEP == 0:
                producer.poll(0)
                on_progress(_STEP)
        left = producer.flush(_SECONDS)
        on_progress((self.sent - began) % _STEP)
        if left or self._refused:
            what = self._refused[0] if self._refused else f"{left} records were not taken in {_SECONDS:.0f} s"
            raise KafkaUnavailable(what, where=f"topic {self.source.topic}")

    def _refuse(self, error: Any, message: Any) -> None:
        if error is not None:
            self._refused.append(error.str())


def _settings(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,  # a record that is sent again is in the topic once
        "delivery.report.only.error": True,
        "linger.ms": 20,
        "compression.type": "lz4",
        "queue.buffering.max.messages": 500_000,
        "error_cb": lambda _: None,  # the delivery callback reports errors
        "log_level": 0,
    }
