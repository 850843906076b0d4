"""Dead letters are compared with the records that Kafka has at their offsets."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

from frazil.declaration import Pipeline, Table, Topic
from frazil.ingest.setup.letter_check import first_replaced
from tests.support.fake_kafka import FakeKafka

pytestmark = pytest.mark.spark
TOPIC = "orders"
PIPELINE = Pipeline(topic=Topic(TOPIC, value="text"), table=Table("shop.orders"))
COLUMNS = "run string, rejected_at timestamp, partition int, offset long, timestamp timestamp, key binary, value binary"
Letter = tuple[str, int, int, int]  # run, partition, offset, the record's milliseconds


def letters(spark: SparkSession, *found: Letter) -> DataFrame:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [(run, at, p, offset, datetime.fromtimestamp(ms / 1000, UTC), None, None) for run, p, offset, ms in found]
    return spark.createDataFrame(rows, COLUMNS)


@pytest.fixture
def kafka() -> FakeKafka:
    """A topic with two partitions; the records of each have the timestamps 1000, 1001, ..."""
    made = FakeKafka()
    made.create(TOPIC, partitions=2)
    for partition in (0, 1):
        made.append(TOPIC, partition, range(1000, 1010))
    return made


def test_dead_letters_of_records_that_kafka_has_are_in_the_log(spark: SparkSession, kafka: FakeKafka) -> None:
    found = letters(spark, ("a", 0, 3, 1003), ("a", 1, 9, 1009), ("b", 0, 4, 1004), ("b", 0, 0, 1000))
    assert first_replaced(PIPELINE, kafka, found) is None  # type: ignore[arg-type]


def test_no_dead_letters_ask_kafka_nothing(spark: SparkSession) -> None:
    assert first_replaced(PIPELINE, FakeKafka(), letters(spark)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "place"),
    [
        pytest.param([("a", 0, 3, 1), ("b", 0, 9, 1009)], (0, 3), id="another record, of an earlier batch"),
        pytest.param([("a", 0, 3, 1003), ("a", 1, 9, 1)], (1, 9), id="another record, in one partition"),
        pytest.param([("a", 0, 10, 1010)], (0, 10), id="the log ends before it"),
        pytest.param([("a", 2, 0, 1000)], (2, 0), id="the partition is gone"),
    ],
)
def test_a_record_that_kafka_does_not_have_is_found(
    spark: SparkSession, kafka: FakeKafka, found: list[Letter], place: tuple[int, int]
) -> None:
    assert first_replaced(PIPELINE, kafka, letters(spark, *found)) == place  # type: ignore[arg-type]


def test_a_record_that_retention_took_is_found(spark: SparkSession, kafka: FakeKafka) -> None:
    kafka.trim(TOPIC, 0, before=4)
    assert first_replaced(PIPELINE, kafka, letters(spark, ("a", 0, 3, 1003))) == (0, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("compacted", [True, False])
def test_a_hole_in_a_log_is_another_log_unless_the_topic_is_compacted(
    spark: SparkSession, kafka: FakeKafka, *, compacted: bool
) -> None:
    topic = kafka.topics[TOPIC]
    topic.compacted = compacted
    topic.partitions[0].timestamps[3] = None
    found = first_replaced(PIPELINE, kafka, letters(spark, ("a", 0, 3, 1003)))  # type: ignore[arg-type]
    assert found == (None if compacted else (0, 3))


def test_dead_letters_without_their_values_are_not_taken_for_those_of_the_log(
    spark: SparkSession, kafka: FakeKafka
) -> None:
    found = letters(spark, ("a", 0, 3, 1003)).drop("value")
    assert first_replaced(PIPELINE, kafka, found) == (0, 3)  # type: ignore[arg-type]
