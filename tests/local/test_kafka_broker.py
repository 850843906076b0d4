import os
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from frazil.local.kafka_broker import LARGEST_MESSAGE_BYTES
from frazil.local.process import noted
from frazil.local.services import LocalServices

pytestmark = pytest.mark.e2e


@pytest.fixture
def admin(whole_world: LocalServices) -> AdminClient:
    return AdminClient({"bootstrap.servers": whole_world.bootstrap, "log_level": 0})


@pytest.fixture
def topic(admin: AdminClient, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.name
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    yield name
    admin.delete_topics([name])[name].result()


def producer(world: LocalServices, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": world.bootstrap, "log_level": 0} | settings)


def values(world: LocalServices, topic: str, count: int) -> list[bytes]:
    """The first records that a reader of committed ones is given."""
    consumer = Consumer(
        {
            "bootstrap.servers": world.bootstrap,
            "group.id": topic,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": LARGEST_MESSAGE_BYTES,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(count, timeout=30)
    consumer.close()
    return [message.value() for message in found]


@pytest.mark.long
def test_kafkas_own_variable_has_javas_options(whole_world: LocalServices) -> None:
    pid = next(process.pid for process in noted(whole_world.home) if process.name == "kafka")
    assert set(os.environ["KAFKA_JVM_PERFORMANCE_OPTS"].split()) <= set(psutil.Process(pid).cmdline())


@pytest.mark.long
def test_a_record_may_have_20_mb(whole_world: LocalServices, topic: str) -> None:
    large = bytes(20 * 1024 * 1024)
    writer = producer(whole_world, **{"message.max.bytes": LARGEST_MESSAGE_BYTES})
    writer.produce(topic, large)
    assert writer.flush(60) == 0
    assert values(whole_world, topic, 1) == [large]


def test_a_topic_is_not_made_by_asking_for_it(whole_world: LocalServices, admin: AdminClient) -> None:
    failures: list[Any] = []
    writer = producer(whole_world, **{"topic.metadata.propagation.max.ms": 100})
    writer.produce("misspelt", b"x", on_delivery=lambda error, _: failures.append(error))
    writer.flush(30)
    assert [error.name().removeprefix("_") for error in failures] in (["UNKNOWN_TOPIC"], ["UNKNOWN_TOPIC_OR_PART"])
    assert "misspelt" not in admin.list_topics(timeout=30).topics


def test_old_records_are_kept_for_ever(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    while topic not in admin.list_topics(timeout=30).topics:
        pass  # made, and not yet known to the broker that answers
    settings = admin.describe_configs([resource])[resource].result()
    assert settings["retention.ms"].value == "-1"


def test_internal_topics_are_small(whole_world: LocalServices, admin: AdminClient, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": whole_world.bootstrap, "group.id": topic, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    assert len(admin.list_topics(timeout=30).topics["__consumer_offsets"].partitions) == 5
