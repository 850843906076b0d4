"""The offsets of many topics at a time, in three round trips for all of them."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition

from frazil.clients.kafka import OffsetSpec, Span, list_offsets
from frazil.clients.kafka_connection import Connection, Request, is_silence
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.declaration.options import Isolation
from frazil.errors import KafkaUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOffsets:
    """A topic's id, and the offsets of each partition, as in `Kafka.topic` and `Kafka.offsets`."""

    topic_id: str
    spans: Mapping[int, Span]


Asked = dict[tuple[str, Isolation], TopicOffsets | KafkaUnavailable]
"""The offsets of topics, each under an isolation level, or why there are none."""


class KafkaTopics:
    """One cluster, asked about many topics at once."""

    def __init__(self, settings: environment.Kafka, secrets: Secrets, *, timeout_seconds: float) -> None:
        self._connection = Connection(
            settings, secrets, timeout_seconds=timeout_seconds, clock=time.monotonic, sleep=time.sleep
        )

    def offsets(self, topics: Collection[tuple[str, Isolation]]) -> Asked:
        """Return the offsets of each topic, or why there are none; a topic that is missing is not asked for again.

        Raises `KafkaUnavailable` if the cluster does not answer at all, `KafkaRefused` if it does not accept our login.
        """
        if not topics:
            return {}
        return self._connection.ask("topics", lambda request: self._asked(request, topics))

    def _asked(self, request: Request, topics: Collection[tuple[str, Isolation]]) -> Asked:
        names = list(dict.fromkeys(name for name, _ in topics))
        answers = request.admin.describe_topics(TopicCollection(names), request_timeout=request.seconds)
        request.settle(answers.values())
        described = {name: answer.result() for name, answer in answers.items() if answer.exception() is None}
        listed = {
            level: _Listed.of(request, [described[n] for n, of in topics if of is level and n in described], level)
            for level in Isolation
        }
        request.settle([answer for one in listed.values() for answer in one.all])
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
    def all(self) -> list[Future[Any]]:
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
