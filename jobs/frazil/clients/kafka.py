"""A Kafka cluster: the identity of topics, and their offsets. Spark reads the records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka import admin as kafka_admin

from frazil.clients import kafka_records, kafka_security
from frazil.clients.kafka_connection import Connection, Request, is_silence
from frazil.clients.kafka_records import Record
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.declaration.options import Isolation
from frazil.errors import KafkaUnavailable

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
    `partitions` in order. `compacted`: `cleanup.policy` contains `compact`, so offsets may have gaps. `retention_ms` is None where
    there is no limit; compaction removes a record without a value `delete_retention_ms` after it has removed those before it.
    """

    name: str
    topic_id: str
    partitions: tuple[int, ...]
    compacted: bool
    retention_ms: int | None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster that accepted our login."""

    id: str
    brokers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOffsets:
    """A topic's id, and the offsets of each partition, as in `Kafka.topic` and `Kafka.offsets`."""

    topic_id: str
    spans: Mapping[int, Span]


Asked = dict[tuple[str, Isolation], TopicOffsets | KafkaUnavailable]
"""The offsets of topics, each under an isolation level, or why they are unknown."""


class Kafka:
    """One Kafka cluster; safe to share between threads, one connection for all.

    `timeout_seconds` bounds each request, waits for leaders included. When a login is refused, the secrets are read
    again and the request is made once more. All methods raise `KafkaUnavailable`: `KafkaRefused` of it when the broker
    does not accept our login, `TopicMissing` when there is no such topic, itself for everything else; and
    `SecretUnavailable`.
    """

    def __init__(self, settings: environment.Kafka, secrets: Secrets, *, timeout_seconds: float = 10.0) -> None:
        self._settings, self._secrets = settings, secrets
        self._connection = Connection(settings, secrets, timeout_seconds=timeout_seconds)
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
            self._partitions[topic] = len(described.result().partitions)
            listed = _Listed.of(request, [described.result()], isolation)
            request.settle(listed.answers)
            return listed.spans(topic)

        return self._connection.ask(f"topic {topic}", spans)

    def offsets_of(self, topics: Collection[tuple[str, Isolation]]) -> Asked:
        """Return the offsets of many topics in three round trips, or why they are unknown; do not wait for a missing topic.

        Raises `KafkaUnavailable` if the cluster does not answer at all, `KafkaRefused` if it does not accept our login.
        """
        return self._connection.ask("topics", lambda request: self._asked(request, topics)) if topics else {}

    def names(self) -> frozenset[str]:
        """Return the names of all topics that our login may describe, in one round trip."""
        return self._connection.ask(
            "all topics", lambda request: frozenset(request.admin.list_topics(timeout=request.seconds).topics)
        )

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
            listed = _listed(request, topic, ends, OffsetSpec.for_timestamp(milliseconds), isolation)
            found = {number: int(answer.result().offset) for number, answer in listed.items()}
            return {number: found[number] if found[number] >= 0 else span.stable for number, span in ends.items()}

        return self._connection.ask(f"topic {topic}", first)

    def leader_epochs(self, topic: str, partitions: Collection[int]) -> dict[int, int | None]:
        """Return the present leader epoch of each partition, None if the broker does not say; in one round trip."""

        def epochs(request: Request) -> dict[int, int | None]:
            listed = _listed(request, topic, partitions, OffsetSpec.latest(), Isolation.READ_UNCOMMITTED)
            return {partition: answer.result().leader_epoch for partition, answer in listed.items()}

        return self._connection.ask(f"topic {topic}", epochs)

    def records(self, topic: str, offsets: Mapping[int, int], isolation: Isolation) -> dict[int, Record | None]:
        """Return the record at an offset of each partition; None if it does not exist (any more).

        Needs READ on the topic, as do all that read records.
        """
        options = {"isolation.level": isolation.value, **kafka_records.FEW}
        return self._connection.consume(
            f"topic {topic}", options, lambda consumer, seconds: kafka_records.at(consumer, topic, offsets, seconds)
        )

    def stretches(
        self, topic: str, ends: Mapping[int, tuple[int, int]], isolation: Isolation, is_wanted: Callable[[Record], bool]
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

    def cluster(self) -> Cluster:
        """Return the cluster that accepted our login. Needs no right."""

        def described(request: Request) -> Cluster:
            answer = request.admin.describe_cluster(request_timeout=request.seconds)
            request.settle([answer])
            return Cluster(id=str(answer.result().cluster_id), brokers=len(answer.result().nodes))

        return self._connection.ask(f"brokers {self._settings.bootstrap}", described)

    def rights(self, topic: str) -> frozenset[str]:
        """Return the operations on a topic that our login may do, like READ; empty if the broker does not say."""

        def described(request: Request) -> frozenset[str]:
            (answer,) = request.admin.describe_topics(
                TopicCollection([topic]), include_authorized_operations=True, request_timeout=request.seconds
            ).values()
            request.settle([answer])
            return frozenset(operation.name for operation in answer.result().authorized_operations or ())

        return self._connection.ask(f"topic {topic}", described)

    def java_options(self) -> dict[str, str]:
        """Return the connection as options of Spark's Kafka source, secrets included; see `kafka_security.java_options`."""
        return kafka_security.java_options(self._settings, self._secrets)

    def read_secrets_again(self) -> None:
        """Connect again with the current secrets, for a caller whose own connection was refused, such as Spark."""
        self._connection.renew()

    def _asked(self, request: Request, topics: Collection[tuple[str, Isolation]]) -> Asked:
        names = list(dict.fromkeys(name for name, _ in topics))
        answers = request.admin.describe_topics(TopicCollection(names), request_timeout=request.seconds)
        request.settle(answers.values())
        described = {name: answer.result() for name, answer in answers.items() if answer.exception() is None}
        listed = {
            level: _Listed.of(request, [described[n] for n, of in topics if of is level and n in described], level)
            for level in Isolation
        }
        request.settle([answer for one in listed.values() for answer in one.answers])
        found: Asked = {}
        for name, level in topics:
            problem = listed[level].problem(name) if name in described else answers[name].exception()
            if problem is not None:
                found[name, level] = self._error(name, problem)
            else:
                spans = listed[level].spans(name)
                found[name, level] = TopicOffsets(topic_id=str(described[name].topic_id), spans=spans)
        return found

    def _error(self, topic: str, problem: BaseException) -> KafkaUnavailable:
        """Return the error of one topic. Raises it if it is the cluster that is silent."""
        if not isinstance(problem, KafkaException) or is_silence(problem):
            raise problem
        return self._connection.explained(problem.args[0], f"topic {topic}")


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
    answers = {place.partition: answer for place, answer in list_offsets(request, places, spec, isolation).items()}
    request.settle(answers.values())
    return answers


def _state(topic: Any, config: Mapping[str, str | None]) -> TopicState:
    """Return the topic from `describe_topics` and `describe_configs`."""
    retention_ms = int(config.get("retention.ms") or -1)
    return TopicState(
        name=topic.name,
        topic_id=str(topic.topic_id),
        partitions=tuple(sorted(partition.id for partition in topic.partitions)),
        compacted="compact" in (config.get("cleanup.policy") or "").split(","),
        retention_ms=retention_ms if retention_ms >= 0 else None,
        delete_retention_ms=int(config.get("delete.retention.ms") or DELETE_RETENTION_MS),
    )


@dataclass(frozen=True, slots=True)
class _Listed:
    """Answers to where partitions begin and end."""

    first: Mapping[TopicPartition, Future[Any]]
    last: Mapping[TopicPartition, Future[Any]]

    @classmethod
    def of(cls, request: Request, topics: Sequence[Any], isolation: Isolation) -> _Listed:
        """Ask for both ends of all partitions of described topics."""
        places = [TopicPartition(topic.name, partition.id) for topic in topics for partition in topic.partitions]
        first, last = (
            list_offsets(request, places, spec, isolation) for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        )
        return cls(first, last)

    @property
    def answers(self) -> list[Future[Any]]:
        """All answers."""
        return [*self.first.values(), *self.last.values()]

    def problem(self, topic: str) -> BaseException | None:
        """Return the first error among a topic's partitions."""
        answers = [answer for one in (self.first, self.last) for place, answer in one.items() if place.topic == topic]
        return next((error for error in (answer.exception() for answer in answers) if error is not None), None)

    def spans(self, topic: str) -> dict[int, Span]:
        """Return the offsets of a topic's partitions, in order."""
        found = {}
        for place, answer in sorted(self.first.items(), key=lambda one: one[0].partition):
            if place.topic == topic:
                start, last = int(answer.result().offset), self.last[place].result()
                # Retention may move the start between the two answers: a span never ends before it starts.
                found[place.partition] = Span(start, max(start, int(last.offset)), last.leader_epoch)
        return found
