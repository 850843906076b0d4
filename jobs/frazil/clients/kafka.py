"""What the ingest must know of Kafka: a topic's identity, and which offsets it has. Records themselves are Spark's to
read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import IsolationLevel, TopicCollection, TopicPartition
from confluent_kafka import admin as kafka_admin

from frazil.clients import kafka_records, kafka_security
from frazil.clients.kafka_connection import Connection, Request
from frazil.clients.kafka_records import Record
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.declaration.options import Isolation

# The SDK exports these names without saying so to type checkers.
ConfigResource: Any = vars(kafka_admin)["ConfigResource"]
OffsetSpec: Any = vars(kafka_admin)["OffsetSpec"]
ResourceType: Any = vars(kafka_admin)["ResourceType"]

_LEVELS = {
    Isolation.READ_COMMITTED: IsolationLevel.READ_COMMITTED,
    Isolation.READ_UNCOMMITTED: IsolationLevel.READ_UNCOMMITTED,
}

DELETE_RETENTION_MS = 86_400_000  # Kafka's default of delete.retention.ms


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic as it is now.

    `topic_id` is Kafka's own id in its usual text form; it changes when a topic is deleted and created again.
    `partitions` in order. `compacted`: `cleanup.policy` contains `compact`, so offsets may have gaps. `retention_ms`
    and `retention_bytes` (of each partition) are None where there is no limit; compaction removes a record without a value
    `delete_retention_ms` after it has removed those before it. `log_append_time`: the broker, not the producer, sets timestamps.
    """

    name: str
    topic_id: str
    partitions: tuple[int, ...]
    compacted: bool
    retention_ms: int | None
    retention_bytes: int | None
    log_append_time: bool
    delete_retention_ms: int = DELETE_RETENTION_MS


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets that a partition has: from `earliest` up to, not including, `stable`.

    `stable` is the next offset after all that may be read: the last stable offset under `read_committed`, the high
    watermark under `read_uncommitted`. In an empty partition both are equal. `leader_epoch` grows with each election of the
    partition's leader; None if the broker does not say.
    """

    earliest: int
    stable: int
    leader_epoch: int | None = field(default=None, compare=False)


class Kafka:
    """One Kafka cluster; safe to share between threads, one connection for all.

    `timeout_seconds` bounds each request, waits for leaders included. When a login is refused, the secrets are read
    again and the request is made once more. All methods raise `KafkaUnavailable`: `KafkaRefused` of it when the broker
    does not accept our login, `TopicMissing` when there is no such topic, itself for everything else; and
    `SecretUnavailable`. `clock` (monotonic, seconds) and `sleep` are for tests.
    """

    def __init__(
        self,
        settings: environment.Kafka,
        secrets: Secrets,
        *,
        timeout_seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings, self._secrets = settings, secrets
        self._connection = Connection(settings, secrets, timeout_seconds=timeout_seconds, clock=clock, sleep=sleep)
        self._partitions: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Kafka({self._settings.bootstrap!r})"

    def topic(self, name: str) -> TopicState:
        """Return the topic's id, partitions and settings, in one round trip. Needs DESCRIBE and DESCRIBE_CONFIGS on it."""

        def state(request: Request) -> TopicState:
            resource = ConfigResource(ResourceType.TOPIC, name)
            described = request.admin.describe_topics(TopicCollection([name]), request_timeout=request.seconds)[name]
            (configured,) = request.admin.describe_configs([resource], request_timeout=request.seconds).values()
            request.settle([described, configured])
            topic, config = described.result(), configured.result()
            return _state(topic, {key: entry.value for key, entry in config.items()})

        return self._connection.ask(f"topic {name}", state)

    def offsets(self, topic: str, isolation: Isolation) -> dict[int, Span]:
        """Return the offsets that each partition has now, in two round trips: the partitions, then all their offsets."""

        def spans(request: Request) -> dict[int, Span]:
            described = request.admin.describe_topics(TopicCollection([topic]), request_timeout=request.seconds)[topic]
            request.settle([described])
            partitions = sorted(partition.id for partition in described.result().partitions)
            self._partitions[topic] = len(partitions)
            earliest = _listed(request, topic, partitions, OffsetSpec.earliest(), isolation)
            latest = _listed(request, topic, partitions, OffsetSpec.latest(), isolation)
            starts, ends = _settled(request, earliest), _settled(request, latest)
            epochs = {partition: answer.result().leader_epoch for partition, answer in latest.items()}
            # Retention may move the start between the two answers: a span never ends before it starts.
            return {p: Span(starts[p], max(starts[p], ends[p]), epochs[p]) for p in partitions}

        return self._connection.ask(f"topic {topic}", spans)

    def partition_count(self) -> int:
        """Return the number of partitions of all topics whose offsets were asked for."""
        return sum(list(self._partitions.values()))

    def offsets_at(self, topic: str, milliseconds: int, isolation: Isolation) -> dict[int, int]:
        """Return per partition the first offset whose record has this timestamp (milliseconds since 1970, UTC) or a later one.

        A partition without such a record gives its end, as `offsets` reports it. The ends are read before the timestamps
        are looked up: a record that arrives in between is read, at worst one that is too old, and never skipped.
        """
        ends = self.offsets(topic, isolation)

        def first(request: Request) -> dict[int, int]:
            spec = OffsetSpec.for_timestamp(milliseconds)
            found = _settled(request, _listed(request, topic, ends, spec, isolation))
            return {number: found[number] if found[number] >= 0 else span.stable for number, span in ends.items()}

        return self._connection.ask(f"topic {topic}", first)

    def leader_epochs(self, topic: str, partitions: Collection[int]) -> dict[int, int | None]:
        """Return the present leader epoch of each partition, None if the broker does not say; in one round trip."""

        def epochs(request: Request) -> dict[int, int | None]:
            listed = _listed(request, topic, partitions, OffsetSpec.latest(), Isolation.READ_UNCOMMITTED)
            request.settle(listed.values())
            return {partition: answer.result().leader_epoch for partition, answer in listed.items()}

        return self._connection.ask(f"topic {topic}", epochs)

    def records(self, topic: str, offsets: Mapping[int, int], isolation: Isolation) -> dict[int, Record | None]:
        """Return the record at an offset of each partition; None if there is none (any more).

        Needs READ on the topic, as do all that read records.
        """
        options = {"isolation.level": isolation.value, **kafka_records.FEW}
        return self._connection.consume(
            f"topic {topic}", options, lambda consumer, seconds: kafka_records.at(consumer, topic, offsets, seconds)
        )

    def stretches(
        self,
        topic: str,
        ends: Mapping[int, tuple[int, int]],
        isolation: Isolation,
        is_wanted: Callable[[Record], bool],
    ) -> list[Record]:
        """Return the records of each partition from the first to the last that is wanted, between two offsets of it.

        All records between them are read. Raises `MemoryError` if those to return are too many (`kafka_records.MOST_RECORDS`).
        """
        options = {"isolation.level": isolation.value, **kafka_records.MANY}
        return self._connection.consume(
            f"topic {topic}",
            options,
            lambda consumer, seconds: kafka_records.stretches(consumer, topic, ends, is_wanted, seconds),
        )

    def java_options(self) -> dict[str, str]:
        """Return the connection as options of Spark's Kafka source, secrets included; see `kafka_security.java_options`."""
        return kafka_security.java_options(self._settings, self._secrets)

    def read_secrets_again(self) -> None:
        """Connect again with the current secrets, for a caller whose own connection was refused, such as Spark."""
        self._connection.renew()


def list_offsets(
    request: Request, places: Collection[TopicPartition], spec: Any, isolation: Isolation
) -> Mapping[TopicPartition, Future[Any]]:
    """Ask for one offset of each partition; one request to each broker that leads any of them.

    With the isolation level, `latest` is the last stable offset: seen on Kafka 4.3 with an open transaction. Without
    it, `list_offsets` returns the high watermark, on which a `read_committed` reader hangs.
    """
    if not places:
        return {}
    answers: Mapping[TopicPartition, Future[Any]] = request.admin.list_offsets(
        dict.fromkeys(places, spec), isolation_level=_LEVELS[isolation], request_timeout=request.seconds
    )
    return answers


def _listed(
    request: Request, topic: str, partitions: Iterable[int], spec: Any, isolation: Isolation
) -> dict[int, Future[Any]]:
    places = [TopicPartition(topic, partition) for partition in partitions]
    return {place.partition: answer for place, answer in list_offsets(request, places, spec, isolation).items()}


def _settled(request: Request, answers: Mapping[int, Future[Any]]) -> dict[int, int]:
    request.settle(answers.values())
    return {partition: int(answer.result().offset) for partition, answer in answers.items()}


def _state(topic: Any, config: Mapping[str, str | None]) -> TopicState:
    """Return the topic from `describe_topics` and `describe_configs`."""
    return TopicState(
        name=topic.name,
        topic_id=str(topic.topic_id),
        partitions=tuple(sorted(partition.id for partition in topic.partitions)),
        compacted="compact" in (config.get("cleanup.policy") or "").split(","),
        retention_ms=_limit(config.get("retention.ms")),
        retention_bytes=_limit(config.get("retention.bytes")),
        log_append_time=config.get("message.timestamp.type") == "LogAppendTime",
        delete_retention_ms=int(config.get("delete.retention.ms") or DELETE_RETENTION_MS),
    )


def _limit(text: str | None) -> int | None:
    """Return a limit of Kafka's, where -1 and silence mean none."""
    return None if text is None or int(text) < 0 else int(text)
