"""A real broker as tests write it: topics, records with timestamps, and transactions that stay open."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka import admin as kafka_admin

# The SDK exports these names without saying so to type checkers.
_admin: Any = kafka_admin


class OpenTransaction:
    """A transaction whose records are written and not committed."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def commit(self) -> None:
        self._producer.commit_transaction(20)


class KafkaBroker:
    """Writes to the broker at `bootstrap`; every call returns when the broker has done it."""

    def __init__(self, bootstrap: str, **options: Any) -> None:
        self._options = {"bootstrap.servers": bootstrap, "linger.ms": 0, **options}
        self._admin = _admin.AdminClient({"bootstrap.servers": bootstrap, **options})

    def create(
        self, name: str, *, partitions: int = 1, compacted: bool = False, config: Mapping[str, str] | None = None
    ) -> None:
        policy = {"cleanup.policy": "compact,delete"} if compacted else dict(config or {})
        deadline = time.monotonic() + 20
        while True:
            try:
                self._admin.create_topics([_admin.NewTopic(name, partitions, 1, config=policy)])[name].result()
                break
            except KafkaException as error:
                # A topic of that name is being deleted still.
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS" or time.monotonic() > deadline:
                    raise
        while name not in self._admin.list_topics(timeout=10).topics:
            assert time.monotonic() < deadline

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result()
        deadline = time.monotonic() + 30
        while name in self._admin.list_topics(timeout=10).topics:  # brokers learn it after the answer
            assert time.monotonic() < deadline

    def add_partitions(self, name: str, total: int) -> None:
        self._admin.create_partitions([_admin.NewPartitions(name, total)])[name].result()

    def append(self, name: str, partition: int, timestamps: Sequence[int]) -> None:
        producer = Producer(self._options)
        self._write(producer, name, partition, timestamps)

    def produce(self, name: str, values: Iterable[bytes]) -> None:
        producer = Producer(self._options)
        for value in values:
            producer.produce(name, value)
        assert producer.flush(20) == 0

    def begin(self, name: str, partition: int, timestamps: Sequence[int]) -> OpenTransaction:
        producer = Producer({**self._options, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(20)
        producer.begin_transaction()
        self._write(producer, name, partition, timestamps)
        return OpenTransaction(producer)

    def trim(self, name: str, partition: int, before: int) -> None:
        place = TopicPartition(name, partition, before)
        self._admin.list_topics(
            name, timeout=10
        )  # a partition that was added since has a leader that is not known here
        self._admin.delete_records([place])[place].result()

    @staticmethod
    def _write(producer: Producer, name: str, partition: int, timestamps: Sequence[int]) -> None:
        failures: list[Any] = []

        def noted(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(error)

        for timestamp in timestamps:
            producer.produce(name, b"x", b"k", partition=partition, timestamp=timestamp, on_delivery=noted)
        assert producer.flush(20) == 0
        assert not failures, failures
