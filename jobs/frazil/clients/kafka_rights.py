"""What a broker lets us do: its cluster, and the operations on topics that it authorises for our login."""

from __future__ import annotations

import time
from dataclasses import dataclass

from confluent_kafka import TopicCollection

from frazil.clients.kafka_connection import Connection, Request
from frazil.clients.secrets import Secrets
from frazil.declaration import environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster that accepted our login."""

    id: str
    brokers: int


class KafkaAccess:
    """One cluster, asked about itself. Methods raise as those of `Kafka` do."""

    def __init__(self, settings: environment.Kafka, secrets: Secrets, *, timeout_seconds: float) -> None:
        self._connection = Connection(
            settings, secrets, timeout_seconds=timeout_seconds, clock=time.monotonic, sleep=time.sleep
        )
        self._bootstrap = settings.bootstrap

    def cluster(self) -> Cluster:
        """Return the cluster's id and the number of its brokers. Needs no right."""

        def described(request: Request) -> Cluster:
            answer = request.admin.describe_cluster(request_timeout=request.seconds)
            request.settle([answer])
            found = answer.result()
            return Cluster(id=str(found.cluster_id), brokers=len(found.nodes))

        return self._connection.ask(f"brokers {self._bootstrap}", described)

    def rights(self, topic: str) -> frozenset[str]:
        """Return the operations on a topic that our login may do, like READ and DESCRIBE; empty if the broker does not say."""

        def described(request: Request) -> frozenset[str]:
            asked = TopicCollection([topic])
            answer = request.admin.describe_topics(
                asked, include_authorized_operations=True, request_timeout=request.seconds
            )[topic]
            request.settle([answer])
            return frozenset(operation.name for operation in answer.result().authorized_operations or ())

        return self._connection.ask(f"topic {topic}", described)
