"""A log that was truncated and has grown again: its offsets are those of the ledger, its records are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.clients import kafka_records
from frazil.declaration import Limits
from frazil.errors import LogTruncated, TopicRecreated
from frazil.job.context import ConsumerGroups
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_accept import Renamed
from tests.scenarios.test_timestamps import ANY_TIME, NANOSECONDS
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
FIRST = 1_767_225_600_000


@pytest.fixture
def texts(shop_of: ShopOf) -> Shop:
    """A shop that has landed 10 rows and 2 dead letters of one partition."""
    shop = shop_of(partitions=1, value_format="text")
    produce(shop, 0, 10)
    shop.produce([None, None], timestamp=FIRST)
    shop.drain()
    assert (len(shop.landed()), len(shop.dead())) == (10, 2)
    return shop


def produce(shop: Shop, first: int, count: int, *, late: int = 0) -> None:
    for number in range(first, first + count):
        shop.produce([b"v%d" % number], key=str(number).encode(), timestamp=FIRST + number + late)


def truncated(shop: Shop, *, kept: int, grown: int) -> Renamed:
    """Cut the log to `kept` records and have it grow to `grown`: a new topic that is told under the old id."""
    kafka = shop.job().kafka
    real = kafka.topic(shop.topic).topic_id
    shop.new_topic()
    produce(shop, 0, kept)
    produce(shop, kept, grown - kept, late=5_000)
    return Renamed(shop.job().kafka, real)


def accepted(shop: Shop, event: Accepted, kafka: Any) -> dict[int, int]:
    return dict(shop.accept(event, kafka=kafka).after.at)


@pytest.mark.long
def test_a_timestamp_beyond_the_calendar_does_not_hinder_the_replay(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1, value_format="text", config=ANY_TIME)

    def produce_around(late: int) -> None:
        produce(shop, 0, 3)
        shop.produce([b"odd"], key="odd", timestamp=NANOSECONDS)
        produce(shop, 4, 3, late=late)

    produce_around(late=0)
    shop.drain()
    real = shop.job().kafka.topic(shop.topic).topic_id
    shop.new_topic(1, ANY_TIME)
    produce_around(late=5_000)
    kafka = Renamed(shop.job().kafka, real)
    assert accepted(shop, Accepted.LOG_TRUNCATED_REPLAY, kafka) == {0: 4}


@pytest.mark.long
@pytest.mark.parametrize("kept", [(1, 12), (0, 5), (9, 14)])
def test_more_records_between_such_timestamps_than_the_driver_holds_do_not_hinder_it(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, kept: tuple[int, int]
) -> None:
    monkeypatch.setattr(kafka_records, "MOST_RECORDS", 3)  # instead of 20,000
    shop = shop_of(partitions=2, value_format="text", config=ANY_TIME)

    def produce_between(*kept: int) -> None:
        for partition, same in enumerate(kept):
            for number in range(14):
                at = NANOSECONDS if number in (1, 12) else FIRST + number + (0 if number < same else 5_000)
                shop.produce([b"v"], key=str(number) if number < same else "other", timestamp=at, partition=partition)

    produce_between(14, 14)
    shop.drain()
    real = shop.job().kafka.topic(shop.topic).topic_id
    shop.new_topic(2, ANY_TIME)
    produce_between(*kept)
    job = shop.job(kafka=Renamed(shop.job().kafka, real))
    # The next group is a new one, for consumers that did not fetch the old log ahead.
    job.consumers.group(shop.pipeline.name, {})
    found = accept(shop.pipeline, Accepted.LOG_TRUNCATED_REPLAY, "as the test says", job)
    assert found.after.at == dict(enumerate(kept))


@pytest.mark.parametrize(
    ("event", "grown", "landed_to"),
    [
        pytest.param(Accepted.LOG_TRUNCATED_REPLAY, 15, 4, id="past the ledger"),
        pytest.param(Accepted.LOG_TRUNCATED_REPLAY, 12, 4, id="to the ledger", marks=pytest.mark.long),
        pytest.param(Accepted.LOG_TRUNCATED, 15, 12, id="left out", marks=pytest.mark.long),
    ],
)
def test_records_that_replaced_others_are_landed_by_the_operators_word(
    texts: Shop, event: Accepted, grown: int, landed_to: int
) -> None:
    """Or they are left out."""
    kafka = truncated(texts, kept=4, grown=grown)
    with pytest.raises(LogTruncated, match=rf"offset 11 of partition 0.*{event.value} --reason"):
        texts.drain(kafka=kafka)
    assert len(texts.landed()) == 10
    assert accepted(texts, event, kafka) == {0: landed_to}
    texts.assert_proven(deep=True)
    assert texts.drain(kafka=kafka).written == grown - landed_to
    assert len(texts.landed()) == 10 + grown - landed_to
    texts.assert_proven(deep=True)


@pytest.mark.long
def test_dead_letters_whose_records_kafka_has_are_landed_again(texts: Shop) -> None:
    texts.job().iceberg.drop(texts.pipeline.table.identifier, purge=False)
    texts.drain()
    texts.assert_each_record_once()
    texts.roll_back(1)
    accepted(texts, Accepted.ROLLED_BACK_REPLAY, texts.job().kafka)
    assert texts.dead() == []
    texts.drain()
    texts.assert_each_record_once()
    texts.assert_proven(deep=True)


@pytest.mark.long
def test_a_log_that_has_grown_less_far_is_landed_from_the_first_record_that_is_another_one(texts: Shop) -> None:
    kafka = truncated(texts, kept=4, grown=7)
    with pytest.raises(LogTruncated, match="the topic ends at 7"):
        texts.drain(kafka=kafka)
    assert accepted(texts, Accepted.LOG_TRUNCATED_REPLAY, kafka) == {0: 4}
    assert texts.drain(kafka=kafka).written == 3
    texts.assert_proven(deep=True)


@pytest.mark.long
def test_a_last_record_that_retention_removed_is_reported_and_nothing_stops(texts: Shop) -> None:
    produce(texts, 20, 3)
    texts.delete_records(12)
    assert texts.drain().written == 3
    (event,) = texts.seen("log_unverified")
    assert event["partitions"] == [0]
    texts.assert_each_record_once()


class Elected:
    """A cluster with an election while the first batch is read."""

    def __init__(self, kafka: Any) -> None:
        self._kafka, self.asked = kafka, 0

    def leader_epochs(self, topic: str, partitions: Any) -> dict[int, int]:
        self.asked += 1
        return {p: e + (self.asked == 1) for p, e in self._kafka.leader_epochs(topic, partitions).items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)


@pytest.mark.long
def test_a_batch_that_was_read_under_two_leaders_is_read_again(texts: Shop) -> None:
    produce(texts, 20, 3)
    kafka = Elected(texts.job().kafka)
    assert texts.drain(kafka=kafka).written == 3
    assert "new leader" in str(texts.seen("batch_retried"))
    texts.assert_each_record_once()


class Until(Renamed):
    """A cluster whose partitions end at offset 4."""

    def offsets(self, *asked: Any) -> Any:
        return {p: replace(span, stable=min(span.stable, 4)) for p, span in self._kafka.offsets(*asked).items()}


class Reelected(Renamed):
    """A cluster that has elected new leaders."""

    def offsets(self, *asked: Any) -> Any:
        spans = self._kafka.offsets(*asked).items()
        return {p: replace(span, leader_epoch=(span.leader_epoch or 0) + 1) for p, span in spans}

    def leader_epochs(self, *asked: Any) -> dict[int, int]:
        return {p: (epoch or 0) + 1 for p, epoch in self._kafka.leader_epochs(*asked).items()}


def test_records_of_the_old_log_that_an_executor_fetched_ahead_do_not_land(shop_of: ShopOf) -> None:
    shop, consumers = shop_of(partitions=1, value_format="text"), ConsumerGroups()
    produce(shop, 0, 8)
    kafka = shop.job().kafka
    real = kafka.topic(shop.topic).topic_id
    assert shop.drain(kafka=Until(kafka, real), consumers=consumers).written == 4
    shop.new_topic()
    produce(shop, 0, 4)
    produce(shop, 14, 4)
    assert shop.drain(kafka=Reelected(shop.job().kafka, real), consumers=consumers).written == 4
    assert sorted(row["value"] for row in shop.landed()) == sorted(value.decode() for value in shop.journal.values())


def test_records_of_a_deleted_topic_that_were_fetched_ahead_do_not_land_for_those_of_the_new_one(
    shop_of: ShopOf,
) -> None:
    shop = shop_of(partitions=1, value_format="text", limits=Limits(first_rows=4, max_rows=4))
    produce(shop, 0, 12)
    driver = shop.ingestion()
    assert driver.drain({0: 4}).written == 4
    shop.delete()
    shop.create(1)
    shop.new_producer(1)
    shop.journal.clear()
    produce(shop, 14, 12)
    driver.forget()
    with pytest.raises(TopicRecreated):
        driver.poll()
    accept(shop.pipeline, Accepted.TOPIC_RECREATED, "made again", shop.job())
    driver.forget()
    driver.drain()
    assert {row["value"] for row in shop.landed()} == {f"v{number}" for number in (*range(4), *range(14, 26))}
    assert len(shop.landed()) == 16
