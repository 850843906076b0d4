"""A dead letter holds all that a later replay needs, as Kafka held it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Message, Producer, TopicPartition

from frazil.schemas.reasons import MESSAGES, Reason
from tests.support.dead_letter_shop import HEADERS
from tests.support.kafka_broker import KafkaBroker
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
Place = tuple[int, int]


def consumed(bootstrap: str, topic: str, ends: dict[int, int]) -> dict[Place, Message]:
    """All records of a topic, by Kafka's own client."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        found: dict[Place, Message] = {}
        while len(found) < sum(ends.values()):
            (message,) = consumer.consume(1, timeout=20) or (None,)
            assert message is not None, f"only {len(found)} records came"
            assert message.error() is None, message.error()
            found[message.partition(), message.offset()] = message
        return found
    finally:
        consumer.close()


def ends_of(shop: Shop) -> dict[int, int]:
    return {p: 1 + max(offset for partition, offset in shop.journal if partition == p) for p, _ in shop.journal}


def as_kafka_has_it(message: Message) -> dict[str, Any]:
    kind, milliseconds = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": milliseconds,
        "timestamp_type": 0 if kind == TIMESTAMP_CREATE_TIME else 1,
        "headers": message.headers() or [],
        "key": message.key(),
        "value": message.value(),
    }


def as_the_table_has_it(row: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: row[name] for name in ("topic", "partition", "offset", "timestamp_type", "key", "value")},
        "timestamp": round(row["timestamp"].timestamp() * 1000),
        "headers": [(header["key"], header["value"]) for header in row["headers"] or ()],
    }


@pytest.mark.parametrize("timestamps", ["CreateTime", "LogAppendTime"])
def test_a_dead_letter_is_the_record_as_kafka_holds_it(shop_of: ShopOf, timestamps: str) -> None:
    shop = shop_of(config={"message.timestamp.type": timestamps})
    shop.register()
    shop.produce([b"", b"\x00\x01", b"bad!!", None], headers=HEADERS, key=b"\x00\xff", timestamp=1_700_000_000_123)
    shop.produce([b"\xff" * 300_000], key=None)
    shop.produce([b"no"], key=b"")
    shop.drain()
    records = consumed(shop.world.bootstrap, shop.topic, ends_of(shop))
    dead = {(row["partition"], row["offset"]): as_the_table_has_it(row) for row in shop.dead()}
    assert dead == {place: as_kafka_has_it(message) for place, message in records.items()}
    assert {letter["timestamp_type"] for letter in dead.values()} == {0 if timestamps == "CreateTime" else 1}


def test_headers_are_kept_also_where_the_table_has_none(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, headers=False, value_format="text")
    shop.produce([b"well", b"\xff"], headers=HEADERS)
    shop.drain()
    (letter,) = shop.dead()
    assert as_the_table_has_it(letter)["headers"] == HEADERS
    assert not shop.landed()[0]["_kafka_headers"]


@pytest.mark.long
def test_a_record_can_be_replayed_from_its_dead_letter(letters: Shop) -> None:
    again = f"{letters.topic}-again"
    KafkaBroker(letters.world.bootstrap).create(again)
    producer = Producer({"bootstrap.servers": letters.world.bootstrap})
    rows = sorted(map(as_the_table_has_it, letters.dead()), key=lambda row: (row["partition"], row["offset"]))
    for row in rows:
        producer.produce(again, row["value"], row["key"], timestamp=row["timestamp"], headers=row["headers"])
    assert producer.flush(20) == 0
    replayed = consumed(letters.world.bootstrap, again, {0: len(rows)})
    originals = consumed(letters.world.bootstrap, letters.topic, ends_of(letters))
    what = ("key", "value", "headers", "timestamp")
    for number, row in enumerate(rows):
        new, old = (as_kafka_has_it(m) for m in (replayed[0, number], originals[row["partition"], row["offset"]]))
        assert {name: new[name] for name in what} == {name: old[name] for name in what}


def test_it_tells_who_rejected_it_when_and_why_without_a_part_of_the_record(letters: Shop) -> None:
    rows = letters.dead()
    assert {(row["run"], row["rejected_at"].timestamp()) for row in rows} == {
        ("first", 1_800_000_000.0),
        ("second", 1_800_003_600.0),
    }
    assert {row["pipeline"] for row in rows} == {letters.pipeline.name}
    assert {row["stage"] for row in rows} == {"decode"}
    for row in rows:
        assert row["message"] == MESSAGES[Reason(row["reason"])]


def test_every_reason_has_its_sentence() -> None:
    assert set(MESSAGES) == set(Reason)
