"""What Kafka tells of topics and offsets: the client on a real broker, and the fake alike."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from frazil.clients.kafka import Kafka, Span, TopicOffsets
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.declaration.environment import Kafka as Settings
from frazil.declaration.options import Isolation
from frazil.errors import KafkaUnavailable, TopicMissing
from frazil.local.services import LocalServices
from tests.support.fake_kafka import FakeKafka
from tests.support.kafka_broker import KafkaBroker

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED


class Pair:
    """A cluster to ask and to write."""

    def __init__(self, kafka: Any, writer: Any) -> None:
        self.kafka, self.writer = kafka, writer


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.e2e)])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    if request.param == "fake":
        fake = FakeKafka()
        yield Pair(fake, fake)
    else:
        bootstrap = request.getfixturevalue("local_world").bootstrap
        yield Pair(Kafka(environment.Kafka(bootstrap=bootstrap), Secrets({})), KafkaBroker(bootstrap))


def eventually(claim: Callable[[], bool]) -> None:
    """A broker tells some changes a moment later."""
    deadline = time.monotonic() + 10
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def topic_id(pair: Pair, name: str) -> str | None:
    """The topic's id; None while a broker does not know yet that it was made."""
    try:
        return str(pair.kafka.topic(name).topic_id)
    except TopicMissing:
        return None


class TestBehaviour:
    """What every cluster does."""

    def test_a_topic_tells_its_partitions_in_order(self, pair: Pair, name: str) -> None:
        pair.writer.create(name, partitions=12)
        topic = pair.kafka.topic(name)
        assert (topic.name, topic.partitions, len(topic.topic_id)) == (name, tuple(range(12)), 22)

    def test_a_topic_that_was_made_again_has_another_id(self, pair: Pair, name: str) -> None:
        pair.writer.create(name)
        before = pair.kafka.topic(name).topic_id
        assert pair.kafka.topic(name).topic_id == before
        pair.writer.delete(name)
        pair.writer.create(name)
        eventually(lambda: topic_id(pair, name) not in (before, None))

    @pytest.mark.parametrize("is_compacted", [True, False])
    def test_a_compacted_topic_says_so(self, pair: Pair, name: str, is_compacted: bool) -> None:
        pair.writer.create(name, compacted=is_compacted)
        assert pair.kafka.topic(name).compacted is is_compacted

    def test_a_topic_that_is_not_there_is_missing(self, pair: Pair, name: str) -> None:
        for ask, arguments in (("topic", ()), ("offsets", (COMMITTED,)), ("offsets_at", (0, COMMITTED))):
            with pytest.raises(TopicMissing, match=f"topic {name}"):
                getattr(pair.kafka, ask)(name, *arguments)

    def test_an_empty_partition_begins_where_it_ends(self, pair: Pair, name: str) -> None:
        pair.writer.create(name, partitions=2)
        assert pair.kafka.offsets(name, COMMITTED) == {0: Span(0, 0), 1: Span(0, 0)}

    def test_an_offset_is_the_next_to_read(self, pair: Pair, name: str) -> None:
        pair.writer.create(name, partitions=2)
        pair.writer.append(name, 1, [1, 2, 3])
        assert pair.kafka.offsets(name, COMMITTED) == {0: Span(0, 0), 1: Span(0, 3)}

    def test_an_open_transaction_ends_what_is_stable(self, pair: Pair, name: str) -> None:
        pair.writer.create(name)
        pair.writer.append(name, 0, [1, 2, 3])
        transaction = pair.writer.begin(name, 0, [4, 5])
        pair.writer.append(name, 0, [6])
        assert pair.kafka.offsets(name, COMMITTED) == {0: Span(0, 3)}
        assert pair.kafka.offsets(name, UNCOMMITTED) == {0: Span(0, 6)}
        transaction.commit()
        # The marker that ends the transaction takes an offset of its own.
        eventually(lambda: bool(pair.kafka.offsets(name, COMMITTED) == {0: Span(0, 7)}))
        assert pair.kafka.offsets(name, UNCOMMITTED) == {0: Span(0, 7)}

    def test_trimmed_records_move_the_beginning(self, pair: Pair, name: str) -> None:
        pair.writer.create(name)
        pair.writer.append(name, 0, [1, 2, 3])
        pair.writer.trim(name, 0, 2)
        assert pair.kafka.offsets(name, COMMITTED) == {0: Span(2, 3)}
        pair.writer.trim(name, 0, 3)
        assert pair.kafka.offsets(name, COMMITTED) == {0: Span(3, 3)}

    def test_added_partitions_are_told(self, pair: Pair, name: str) -> None:
        pair.writer.create(name)
        pair.writer.add_partitions(name, 3)
        eventually(lambda: bool(pair.kafka.topic(name).partitions == (0, 1, 2)))
        eventually(lambda: set(pair.kafka.offsets(name, COMMITTED)) == {0, 1, 2})

    @pytest.mark.parametrize(("instant", "offset"), [(0, 0), (1000, 0), (1001, 1), (2000, 1), (3000, 3), (3001, 4)])
    def test_an_instant_is_the_first_record_not_before_it(
        self, pair: Pair, name: str, instant: int, offset: int
    ) -> None:
        pair.writer.create(name)
        pair.writer.append(name, 0, [1000, 2000, 1500, 3000])
        assert pair.kafka.offsets_at(name, instant, COMMITTED) == {0: offset}

    def test_an_instant_after_all_records_is_the_end(self, pair: Pair, name: str) -> None:
        pair.writer.create(name, partitions=2)
        pair.writer.append(name, 0, [1000])
        assert pair.kafka.offsets_at(name, 2_000_000_000_000, COMMITTED) == {0: 1, 1: 0}

    def test_an_instant_within_an_open_transaction_is_its_beginning(self, pair: Pair, name: str) -> None:
        pair.writer.create(name)
        pair.writer.append(name, 0, [1000])
        transaction = pair.writer.begin(name, 0, [2000, 3000])
        assert pair.kafka.offsets_at(name, 3000, COMMITTED) == {0: 1}
        assert pair.kafka.offsets_at(name, 3000, UNCOMMITTED) == {0: 2}
        transaction.commit()


@pytest.mark.e2e
class TestClient:
    """What the client does beyond."""

    @pytest.fixture
    def kafka(self, local_world: LocalServices) -> Kafka:
        return Kafka(environment.Kafka(bootstrap=local_world.bootstrap), Secrets({}))

    def test_offsets_of_all_partitions_are_told_at_once(
        self, local_world: LocalServices, kafka: Kafka, name: str
    ) -> None:
        KafkaBroker(local_world.bootstrap).create(name, partitions=50)
        kafka.offsets(name, COMMITTED)
        seconds = []
        for _ in range(10):
            begun = time.perf_counter()
            assert len(kafka.offsets(name, COMMITTED)) == 50
            seconds.append(time.perf_counter() - begun)
        assert sorted(seconds)[5] < 0.1  # 8 ms on an idle machine; the bound is for a busy one

    def test_a_record_that_arrives_while_an_instant_is_looked_up_is_not_skipped(
        self, local_world: LocalServices, kafka: Kafka, name: str
    ) -> None:
        broker = KafkaBroker(local_world.bootstrap)
        broker.create(name)
        broker.append(name, 0, [1000])
        ask = kafka.offsets

        def then_a_record(topic: str, isolation: Isolation) -> dict[int, Span]:
            found = ask(topic, isolation)
            broker.append(topic, 0, [1500])
            return found

        kafka.offsets = then_a_record  # type: ignore[method-assign]
        assert kafka.offsets_at(name, 2000, COMMITTED) == {0: 1}

    def test_a_record_is_read_where_it_stands_and_none_where_there_is_none(
        self, local_world: LocalServices, kafka: Kafka, name: str
    ) -> None:
        broker = KafkaBroker(local_world.bootstrap)
        broker.create(name, partitions=4)
        for partition in range(3):
            broker.append(name, partition, [-5, 1000 + partition])
        broker.trim(name, 2, 2)
        there = kafka.records(name, {0: 1, 1: 0, 2: 1, 3: 0}, COMMITTED)
        first, second = there[0], there[1]
        assert first is not None
        assert second is not None
        assert (first.offset, first.key, first.value, first.timestamp_ms, first.headers) == (1, b"k", b"x", 1000, ())
        assert (second.timestamp_ms, second.timestamp_type) == (-5, 0)
        assert (there[2], there[3]) == (None, None)

    def test_records_are_read_from_the_first_to_the_last_that_is_wanted(
        self, local_world: LocalServices, kafka: Kafka, name: str
    ) -> None:
        broker = KafkaBroker(local_world.bootstrap)
        broker.create(name, partitions=3)
        broker.append(name, 0, [1, 9, 2, 9, 3, 9])
        broker.append(name, 1, [1, 2, 3])
        found = kafka.stretches(name, {0: (0, 5), 1: (0, 3), 2: (0, 0)}, COMMITTED, lambda r: r.timestamp_ms == 9)
        assert [(r.partition, r.offset) for r in found] == [(0, 1), (0, 2), (0, 3)]

    def test_leader_epochs_are_those_of_the_offsets(self, local_world: LocalServices, kafka: Kafka, name: str) -> None:
        KafkaBroker(local_world.bootstrap).create(name, partitions=2)
        spans = kafka.offsets(name, COMMITTED)
        assert kafka.leader_epochs(name, spans.keys()) == {p: span.leader_epoch for p, span in spans.items()}
        assert all(span.leader_epoch is not None for span in spans.values())

    def test_threads_may_share_it(self, local_world: LocalServices, kafka: Kafka, name: str) -> None:
        KafkaBroker(local_world.bootstrap).create(name, partitions=3)
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.append(len(kafka.offsets(name, COMMITTED)))) for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [3] * 16


class TestOutage:
    def test_a_broker_that_is_down_is_an_outage_that_says_why(self, capfd: pytest.CaptureFixture[str]) -> None:
        kafka = Kafka(environment.Kafka(bootstrap="127.0.0.1:1"), Secrets({}), timeout_seconds=5)
        begun = time.perf_counter()
        with pytest.raises(KafkaUnavailable, match=r"127\.0\.0\.1:1 did not answer within 5 s.*refused") as caught:
            kafka.topic("t")
        assert not isinstance(caught.value, TopicMissing)
        assert time.perf_counter() - begun < 30
        assert capfd.readouterr() == ("", "")

    def test_a_port_that_says_nothing_is_an_outage(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
            kafka = Kafka(environment.Kafka(bootstrap=bootstrap), Secrets({}), timeout_seconds=0.3)
            with pytest.raises(KafkaUnavailable, match="did not answer within"):
                kafka.offsets("t", COMMITTED)

    def test_its_repr_tells_no_secret(self) -> None:
        assert repr(Kafka(environment.Kafka(bootstrap="b:1"), Secrets({}))) == "Kafka('b:1')"


@pytest.mark.e2e
def test_all_topics_are_asked_for_at_once_and_a_missing_one_is_its_own_error(
    local_world: LocalServices, name: str
) -> None:
    broker, names = KafkaBroker(local_world.bootstrap), [f"{name}-{number}" for number in range(3)]
    for one in names:
        broker.create(one, partitions=2)
    producer = Producer({"bootstrap.servers": local_world.bootstrap, "transactional.id": name})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(names[0], b"open", partition=0)
    producer.flush()  # the transaction stays open: its record is not stable
    settings, secrets = Settings(bootstrap=local_world.bootstrap), Secrets({})
    committed, uncommitted = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
    asked = {(one, committed) for one in names} | {(names[0], uncommitted), (f"{name}-gone", committed)}
    found = Kafka(settings, secrets, timeout_seconds=10).offsets_of(asked)
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
    topics = Kafka(Settings(bootstrap="127.0.0.1:1"), Secrets({}), timeout_seconds=0.5)
    began = time.monotonic()
    with pytest.raises(KafkaUnavailable):
        topics.offsets_of({("t", Isolation.READ_COMMITTED)})
    assert time.monotonic() - began < 5
