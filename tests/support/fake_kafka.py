"""A Kafka cluster inside the test, for stages that query one. It passes the client's own behaviour suite."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from frazil.clients.kafka import Span, TopicState
from frazil.clients.kafka_records import Record
from frazil.declaration.options import Isolation
from frazil.errors import KafkaUnavailable, TopicMissing


@dataclass(slots=True)
class FakePartition:
    """`timestamps` of all records ever written, including transaction markers (None)."""

    timestamps: list[int | None] = field(default_factory=list)
    earliest: int = 0
    open_from: int | None = None

    def span(self, isolation: Isolation) -> Span:
        is_open = self.open_from is not None and isolation is Isolation.READ_COMMITTED
        return Span(self.earliest, self.open_from if is_open and self.open_from is not None else len(self.timestamps))


@dataclass(slots=True)
class FakeTopic:
    compacted: bool
    partitions: list[FakePartition]
    topic_id: str = field(default_factory=lambda: uuid.uuid4().hex[:22])


@dataclass(slots=True)
class FakeTransaction:
    partition: FakePartition

    def commit(self) -> None:
        """Commit a transaction. Its marker takes an offset."""
        self.partition.timestamps.append(None)
        self.partition.open_from = None


class FakeKafka:
    """A cluster that is queried like `Kafka` and written like `KafkaBroker`. `down = True` simulates an outage."""

    def __init__(self) -> None:
        self.topics: dict[str, FakeTopic] = {}
        self.down = False

    def topic(self, name: str) -> TopicState:
        topic = self._topic(name)
        return TopicState(
            name=name,
            topic_id=topic.topic_id,
            partitions=tuple(range(len(topic.partitions))),
            compacted=topic.compacted,
            retention_ms=None,
        )

    def offsets(self, topic: str, isolation: Isolation) -> dict[int, Span]:
        return {number: one.span(isolation) for number, one in enumerate(self._topic(topic).partitions)}

    def leader_epochs(self, topic: str, partitions: Collection[int]) -> dict[int, int | None]:
        self._topic(topic)
        return dict.fromkeys(partitions)

    def records(self, topic: str, offsets: Mapping[int, int], isolation: Isolation) -> dict[int, Record | None]:
        """Return records without key and value."""
        found: dict[int, Record | None] = {}
        for number, offset in offsets.items():
            partition = self._topic(topic).partitions[number]
            span = partition.span(isolation)
            ms = partition.timestamps[offset] if span.earliest <= offset < span.stable else None
            found[number] = None if ms is None else Record(number, offset, None, None, ms, 0, ())
        return found

    def offsets_at(self, topic: str, milliseconds: int, isolation: Isolation) -> dict[int, int]:
        found = {}
        for number, partition in enumerate(self._topic(topic).partitions):
            span = partition.span(isolation)
            later = (
                offset
                for offset in range(span.earliest, span.stable)
                if (partition.timestamps[offset] or 0) >= milliseconds
            )
            found[number] = next(later, span.stable)
        return found

    def create(self, name: str, *, partitions: int = 1, compacted: bool = False) -> None:
        self.topics[name] = FakeTopic(compacted, [FakePartition() for _ in range(partitions)])

    def delete(self, name: str) -> None:
        del self.topics[name]

    def add_partitions(self, name: str, total: int) -> None:
        partitions = self.topics[name].partitions
        partitions.extend(FakePartition() for _ in range(total - len(partitions)))

    def append(self, name: str, partition: int, timestamps: Sequence[int]) -> None:
        self.topics[name].partitions[partition].timestamps.extend(timestamps)

    def begin(self, name: str, partition: int, timestamps: Sequence[int]) -> FakeTransaction:
        """Write records in a transaction that stays open."""
        place = self.topics[name].partitions[partition]
        place.open_from = len(place.timestamps)
        place.timestamps.extend(timestamps)
        return FakeTransaction(place)

    def trim(self, name: str, partition: int, before: int) -> None:
        """Delete the records before an offset."""
        self.topics[name].partitions[partition].earliest = before

    def _topic(self, name: str) -> FakeTopic:
        if self.down:
            raise KafkaUnavailable("it is down", where="fake kafka")
        if name not in self.topics:
            raise TopicMissing("the cluster has no such topic", where=f"topic {name}")
        return self.topics[name]
