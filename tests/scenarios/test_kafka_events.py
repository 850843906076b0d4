"""What Kafka does on its own: the run stops and says which command decides; it never rewinds and never leaves a gap unsaid."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import cycle

import pytest
from confluent_kafka import Producer

from frazil.declaration import At, Latest, Limits, Reading, Upsert
from frazil.declaration import Offsets as StartOffsets
from frazil.declaration.options import Isolation
from frazil.errors import CountsDisagree, InvalidInput, OffsetsLost, TopicRecreated
from frazil.job.context import ConsumerGroups
from frazil.recovery.decisions import Accepted
from tests.support.jobs import once
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def test_a_topic_created_again_stops_the_pipeline(shop: Shop) -> None:
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id))
    shop.drain()
    shop.new_topic(2)
    shop.produce(shop.orders(9, schema_id))
    with pytest.raises(TopicRecreated):
        shop.drain()
    assert len(shop.landed()) == 5


def test_a_topic_created_again_while_a_batch_is_staged_publishes_nothing(shop: Shop) -> None:
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id))

    with pytest.raises(TopicRecreated):
        shop.drain(failpoint=once("stage.written", partial(shop.new_topic, 2)))
    assert shop.landed() == []


def test_added_partitions_are_read_from_their_beginning(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id), partition=0)
    shop.drain()
    shop.add_partitions(3)
    for partition in range(3):
        shop.produce(shop.orders(4, schema_id), partition=partition)
    shop.drain()
    shop.assert_each_record_once()


@pytest.mark.long
def test_records_of_an_added_partition_that_retention_took_unread_stop_the_pipeline(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    schema_id = shop.register()
    shop.produce(shop.orders(4, schema_id), partition=0)
    shop.drain()
    shop.add_partitions(2)
    shop.produce(shop.orders(10, schema_id, first=100), partition=1)
    shop.delete_records(6, partition=1)
    with pytest.raises(OffsetsLost, match="records 0 to 5 of partition 1"):
        shop.drain()
    decided = shop.accept(Accepted.OFFSETS_LOST)
    assert (decided.after.at, decided.lost) == ({0: 4, 1: 6}, {1: 6})
    assert shop.drain().written == 4
    shop.assert_proven()
    assert [(a.read, a.landed, a.gaps) for a in shop.verified().partitions] == [(4, 4, 0), (10, 4, 6)]


def transactional(shop: Shop, name: str, *values: bytes, key: bytes | None = None) -> Producer:
    """Return a producer; with values, it has written them in a transaction that is open."""
    producer = Producer({"bootstrap.servers": shop.world.bootstrap, "transactional.id": f"{shop.topic}-{name}"})
    producer.init_transactions()
    if values:
        producer.begin_transaction()
        for value in values:
            producer.produce(shop.topic, value, key=key, partition=0)
        producer.flush()
    return producer


def test_an_open_transaction_is_waited_for_and_an_aborted_one_never_lands(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, transactional=True)
    schema_id = shop.register()
    values = shop.orders(9, schema_id)
    aborted, left_open = transactional(shop, "a", *values[:3]), transactional(shop, "b", *values[3:6])
    aborted.abort_transaction()
    shop.produce(values[6:], partition=0)
    shop.drain()
    assert shop.landed() == []
    left_open.commit_transaction()
    shop.drain()
    assert sorted(r["order_id"] for r in shop.landed()) == [3, 4, 5, 6, 7, 8]


def test_a_state_has_the_records_of_committed_transactions_only(shop_of: ShopOf) -> None:
    """Aborted records and the markers of both ends are offsets without a record, which the proof counts."""
    choices = {"partitions": 1, "transactional": True, "limits": Limits(first_rows=5, max_rows=5)}
    shop = shop_of(write=Upsert(), key_format="text", **choices)
    schema_id, producer = shop.register(), transactional(shop, "a")

    def begin(words: dict[int, str | None]) -> None:
        producer.begin_transaction()
        for number, word in words.items():
            value = {"order_id": number, "user": word, "amount": None}
            record = None if word is None else frame(schema_id, avro(ORDER, value))
            producer.produce(shop.topic, record, key=f"k{number}".encode(), partition=0)
        producer.flush()

    begin({1: "first", 2: "first"})
    producer.commit_transaction()
    begin({1: "aborted", 2: None, 3: "aborted"})
    producer.abort_transaction()
    begin({1: "second", 4: "first"})
    producer.commit_transaction()
    begin({4: None})  # stays open, and begins only when the markers before it are written
    shop.drain()
    producer.abort_transaction()
    found = sorted((row["order_id"], row["user"]) for row in shop.landed())
    assert found == [(1, "second"), (2, "first"), (4, "first")]
    shop.assert_proven()
    assert [(a.read, a.landed, a.gaps) for a in shop.verified(deep=True).partitions] == [(10, 4, 6)]


@pytest.mark.long
def test_records_of_an_open_transaction_that_were_read_are_no_truncated_log(shop_of: ShopOf) -> None:
    """The isolation was changed since. The log ends there only for those who wait for the transaction."""
    shop = shop_of(partitions=1, transactional=True, kafka=Reading(isolation=Isolation.READ_UNCOMMITTED))
    values = shop.orders(6, shop.register())
    shop.produce(values[:2], partition=0)
    producer = transactional(shop, "open", values[2])
    shop.produce(values[3:5], partition=0)
    shop.drain()
    waiting = replace(shop.pipeline, kafka=Reading(isolation=Isolation.READ_COMMITTED))
    consumers = ConsumerGroups()
    consumers.group(waiting.name, {"of": "the run before, which was another process"})
    assert shop.drain(waiting, consumers=consumers).read == 0
    for event in (Accepted.LOG_TRUNCATED, Accepted.LOG_TRUNCATED_REPLAY):
        with pytest.raises(InvalidInput, match="there is nothing to accept"):
            shop.accept(event, waiting)
    producer.commit_transaction()
    shop.produce(values[5:], partition=0)
    kafka, deadline = shop.job().kafka, time.monotonic() + 20
    ends = (kafka.offsets(shop.topic, each)[0].stable for each in cycle(Isolation))
    while next(ends) != next(ends):  # the broker writes the end of the transaction when it has answered
        assert time.monotonic() < deadline
    shop.drain(waiting, consumers=consumers)
    assert sorted(row["order_id"] for row in shop.landed()) == list(range(6))


def test_gaps_on_a_topic_that_is_not_declared_to_have_any_are_never_explained_away(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    transactional(shop, "c", *shop.orders(1, shop.register())).commit_transaction()
    with pytest.raises(CountsDisagree, match="transactional=True"):
        shop.drain()
    assert shop.landed() == []


def test_start_latest_is_decided_once(shop_of: ShopOf) -> None:
    shop = shop_of(start=Latest())
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id))
    assert shop.drain().read == 0
    shop.produce(shop.orders(3, schema_id, first=5))
    assert shop.drain().read == 3


def test_start_at_a_time_leaves_earlier_records_out(shop_of: ShopOf) -> None:
    shop = shop_of(start=At(datetime(2026, 1, 1, tzinfo=UTC)), partitions=1)
    schema_id = shop.register()
    for year, count in ((2025, 3), (2026, 4)):
        at = int(datetime(year, 6, 1, tzinfo=UTC).timestamp() * 1000)
        shop.produce(shop.orders(count, schema_id), timestamp=at)
    assert shop.drain().read == 4


def test_start_at_explicit_offsets(shop_of: ShopOf) -> None:
    shop = shop_of(start=StartOffsets({0: 3}), partitions=2)
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id), partition=0)
    shop.produce(shop.orders(5, schema_id), partition=1)
    assert shop.drain().read == 2 + 5


def test_a_topic_without_a_schema_yet_is_no_error(shop: Shop) -> None:
    assert shop.drain().read == 0
    shop.produce(shop.orders(1, shop.register()))
    assert shop.drain().read == 1
