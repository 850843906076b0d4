"""The offsets of many topics at a time are those of each by itself."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from frazil.clients.kafka import Kafka
from frazil.clients.kafka_topics import KafkaTopics, TopicOffsets
from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Kafka as Settings
from frazil.declaration.options import Isolation
from frazil.errors import KafkaUnavailable, TopicMissing
from frazil.local.services import LocalServices


@pytest.mark.e2e
def test_all_topics_are_asked_for_at_once_and_a_missing_one_is_its_own_error(
    local_world: LocalServices, name: str
) -> None:
    admin = AdminClient({"bootstrap.servers": local_world.bootstrap})
    names = [f"{name}-{number}" for number in range(3)]
    for created in admin.create_topics([NewTopic(one, 2, 1) for one in names]).values():
        created.result()
    producer = Producer({"bootstrap.servers": local_world.bootstrap, "transactional.id": name})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(names[0], b"open", partition=0)
    producer.flush()  # the transaction stays open: its record is not stable
    settings, secrets = Settings(bootstrap=local_world.bootstrap), Secrets({})
    committed, uncommitted = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
    asked = {(one, committed) for one in names} | {(names[0], uncommitted), (f"{name}-gone", committed)}
    found = KafkaTopics(settings, secrets, timeout_seconds=10).offsets(asked)
    assert found.keys() == asked
    assert isinstance(found.pop((f"{name}-gone", committed)), TopicMissing)
    alone = Kafka(settings, secrets)
    for (topic, isolation), offsets in found.items():
        assert isinstance(offsets, TopicOffsets)
        assert offsets.spans == alone.offsets(topic, isolation)
        assert offsets.topic_id == alone.topic(topic).topic_id
    both = [found[names[0], level] for level in (committed, uncommitted)]
    assert [one.spans[0].stable for one in both if isinstance(one, TopicOffsets)] == [0, 1]


def test_a_silent_cluster_is_unavailable_for_all() -> None:
    topics = KafkaTopics(Settings(bootstrap="127.0.0.1:1"), Secrets({}), timeout_seconds=0.5)
    began = time.monotonic()
    with pytest.raises(KafkaUnavailable):
        topics.offsets({("t", Isolation.READ_COMMITTED)})
    assert time.monotonic() - began < 5
