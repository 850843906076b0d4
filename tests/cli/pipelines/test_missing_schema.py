"""`frazil status` says what a pipeline without a table waits for."""

from __future__ import annotations

from typing import Any

from frazil.cli.pipelines.status import missing_schema
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline, Table, Topic
from frazil.errors import KafkaUnavailable
from tests.support.fake_registry import FakeRegistry


class Span:
    earliest, stable = 0, 2000


class Kafka:
    def __init__(self, *, is_away: bool = False) -> None:
        self._is_away = is_away

    def offsets(self, topic: str, isolation: Any) -> dict[int, Any]:
        if self._is_away:
            raise KafkaUnavailable("silent")
        return {0: Span}

    def records(self, topic: str, offsets: Any, isolation: Any) -> dict[int, Record | None]:
        return {0: Record(0, 0, None, b'{"a": 1}', 0, 0, ())}


def said(value_format: str = "avro", *, registry: Any = None, kafka: Any = None) -> str:
    pipeline = Pipeline(topic=Topic("clicks", value=value_format), table=Table("shop.clicks"))
    return missing_schema(pipeline, registry or FakeRegistry(), kafka or Kafka())


def test_the_subject_and_a_likely_cause_are_named() -> None:
    assert said() == (
        "waiting for a schema in subject clicks-value. The record at partition 0, offset 0 looks like JSON without a schema "
        "id: declare the format json"
    )


def test_without_kafka_the_subject_is_named_all_the_same() -> None:
    assert said(kafka=Kafka(is_away=True)) == "waiting for a schema in subject clicks-value"


def test_a_topic_that_needs_no_schema_waits_for_none() -> None:
    assert said("json") == ""


def test_a_registry_that_is_away_is_told() -> None:
    registry = FakeRegistry()
    registry.down = True
    assert said(registry=registry)
    assert "waiting" not in said(registry=registry)
