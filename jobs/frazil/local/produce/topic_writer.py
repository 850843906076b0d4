"""Writing to a topic of the local broker: create it, and send records that are in memory, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import admin as kafka_admin

from frazil.errors import InvalidInput, KafkaUnavailable
from frazil.local.kafka_broker import LARGEST_MESSAGE_BYTES

NewTopic: Any = vars(kafka_admin)["NewTopic"]  # exported without saying so to type checkers

SECONDS = 60.0
_QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}  # errors are reported by results
_WRONG = (KafkaError.TOPIC_EXCEPTION, KafkaError.INVALID_PARTITIONS, KafkaError.POLICY_VIOLATION)


class TopicWriter:
    """A topic of the broker at `bootstrap`. Raises `KafkaUnavailable` if the broker does not answer or refuses."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._admin: Any = kafka_admin.AdminClient({"bootstrap.servers": bootstrap, **_QUIET})

    def partitions(self) -> int:
        """Return the number of the topic's partitions; 0 if it does not exist."""
        try:
            found = self._admin.list_topics(timeout=SECONDS).topics.get(self._topic)
        except KafkaException as error:
            raise self._unavailable(error) from None
        return len(found.partitions) if found is not None else 0

    def create(self, partitions: int, *, is_rehearsal: bool = False) -> None:
        """Create the topic if it does not exist; as a rehearsal, only find out whether the broker would.

        Raises `InvalidInput` for a name or a number of partitions that Kafka does not allow.
        """
        new = NewTopic(self._topic, partitions, 1)
        asked = self._admin.create_topics([new], request_timeout=SECONDS, validate_only=is_rehearsal)
        try:
            asked[self._topic].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return  # another client created it meanwhile
            if error.args[0].code() in _WRONG:
                raise InvalidInput(error.args[0].str(), where=f"topic {self._topic}", do="Correct it") from None
            raise self._unavailable(error) from None

    def send(self, records: Iterable[tuple[bytes | None, bytes]]) -> dict[int, int]:
        """Send records, in their order, and return how many each partition got.

        Raises `KafkaUnavailable` if the broker did not take all; it says how many it took.
        """
        sent: Counter[int] = Counter()
        refused: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                sent[message.partition()] += 1
            else:
                refused.append(error.str())

        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,  # a record that is sent again is in the topic once
                "message.max.bytes": LARGEST_MESSAGE_BYTES,
                "linger.ms": 20,
                "compression.type": "lz4",
                "partitioner": "murmur2_random",  # as Java's producers choose a key's partition
                **_QUIET,
            }
        )
        total = 0
        for key, value in records:
            while True:
                try:
                    producer.produce(self._topic, value, key, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            total += 1
            producer.poll(0)
        producer.flush(SECONDS)
        if sent.total() < total:
            why = f": {refused[0]}" if refused else ""
            what = f"the broker took {sent.total():,} of {total:,} records{why}"
            raise KafkaUnavailable(
                what, where=f"topic {self._topic}", do="Start the local services again and look at the topic"
            )
        return dict(sorted(sent.items()))

    def _unavailable(self, error: KafkaException) -> KafkaUnavailable:
        do = "Check that the local services run: frazil local status"
        return KafkaUnavailable(error.args[0].str(), where=f"topic {self._topic}", do=do)
