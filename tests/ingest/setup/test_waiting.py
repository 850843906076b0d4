"""What a pipeline without a schema reports: how much waits, for how long, and for what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline, Table
from frazil.declaration.options import Isolation, SubjectStrategy
from frazil.decode.writers.seen_frames import SeenFrames, UnknownSchemas
from frazil.errors import KafkaUnavailable
from frazil.ingest.setup.waiting import waiting
from frazil.schemas.wire_format import GUID_MAGIC
from tests.support.topics import topic_of

NOW = 1_700_000_000.0


@dataclass(frozen=True)
class Span:
    earliest: int
    stable: int


class Kafka:
    """Single records; or a broker that does not give them."""

    def __init__(self, *records: Record, is_away: bool = False) -> None:
        self._records, self._is_away = {r.partition: r for r in records}, is_away

    def records(self, topic: str, offsets: Mapping[int, int], isolation: Isolation) -> dict[int, Record | None]:
        if self._is_away:
            raise KafkaUnavailable("READ is not allowed")
        return {p: self._records.get(p) for p in offsets}


def record(value: bytes | None, *, partition: int = 0, age: float = 60.0, **more: Any) -> Record:
    given: dict[str, Any] = {"timestamp_type": 0, "headers": (), "key": None, **more}
    return Record(partition=partition, offset=3, value=value, timestamp_ms=round((NOW - age) * 1000), **given)


def found(kafka: Kafka, *, topic: Mapping[str, Any] | None = None, lacks_key: bool = False, problem: str = "") -> Any:
    pipeline = Pipeline(
        topic=topic_of("clicks", **{"value_format": "avro", **(topic or {})}), table=Table("shop.clicks")
    )
    spans = {0: Span(3, 10), 1: Span(0, 5), 2: Span(4, 4)}
    return waiting(pipeline, kafka, {0: 0, 1: 2, 2: 4}, spans, now=NOW, lacks_key=lacks_key, problem=problem)


def test_lag_and_freshness_are_those_of_the_records_that_wait() -> None:
    facts = found(Kafka(record(b"\x00\x00\x00\x00\x01x"), record(b"\x00\x00\x00\x00\x01x", partition=1, age=90.0)))
    assert facts == {"lag": 10, "message": "waiting for a schema in subject clicks-value", "freshness_seconds": 90.0}


def test_freshness_is_not_known_where_records_cannot_be_read() -> None:
    assert "freshness_seconds" not in found(Kafka(is_away=True))
    assert "freshness_seconds" not in found(Kafka(record(b"\x00", timestamp_type=-1)))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (b'{"a": 1}', "looks like JSON without a schema id: declare the format json"),
        (b" [1]", "looks like JSON without a schema id: declare the format json"),
        (b"hello", "does not begin with 0x00, so it has no schema id: declare another format"),
        (b"\x00\x00\x00\x00\x01", None),
        (b"", None),
        (None, None),
    ],
)
def test_a_first_record_without_a_schema_id_gives_a_hint(value: bytes | None, hint: str | None) -> None:
    told = found(Kafka(record(value))).get("hint")
    assert told == (f"The record at partition 0, offset 3 {hint}" if hint else None)


@pytest.mark.parametrize(
    ("topic", "lacks_key", "subject"),
    [
        ({}, True, "clicks-key"),
        ({"subject_strategy": SubjectStrategy.TOPIC_RECORD, "record_name": "a.B"}, False, "clicks-a.B"),
        ({"subject_strategy": SubjectStrategy.RECORD, "record_name": "a.B"}, False, "a.B"),
    ],
)
def test_the_subject_is_the_one_that_is_asked(topic: Mapping[str, Any], lacks_key: bool, subject: str) -> None:
    assert found(Kafka(), topic=topic, lacks_key=lacks_key)["message"] == f"waiting for a schema in subject {subject}"


def test_a_schema_that_cannot_be_used_is_not_called_missing() -> None:
    assert (
        found(Kafka(), problem="it is recursive")["message"] == "no schema of clicks-value can be used: it is recursive"
    )


def test_a_new_schema_id_is_named_as_what_it_is() -> None:
    one = UnknownSchemas(SeenFrames(waiting=(b"\x00\x00\x00\x00\x07",)), SeenFrames())
    assert one.looked_up == "new schema id 7 was looked up"
    guid = bytes([GUID_MAGIC]) + bytes(16)
    many = UnknownSchemas(
        SeenFrames(unknown=tuple(b"\x00\x00\x00\x00" + bytes([n]) for n in range(1, 9))), SeenFrames(unknown=(guid,))
    )
    assert many.looked_up == "new schema ids 00000000-0000-0000-0000-000000000000, 1, 2, 3, 4 and 4 more were looked up"
