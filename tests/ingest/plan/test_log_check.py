"""When is a log the one that was read? On values, and on records that a real broker would give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from frazil.clients.kafka import Span, TopicState
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline, Table, Topic
from frazil.errors import LogTruncated
from frazil.ingest.plan import fingerprint
from frazil.ingest.plan.log_check import Compared, LogCheck, compare
from frazil.ingest.reporting.events import Reporter
from frazil.lake.ledger.last_records import LastRecord, LastRecords
from frazil.lake.ledger.next_offsets import Offsets
from tests.support.fake_kafka import FakeKafka

RECORD = Record(0, 9, b"key", b"value", 1_700_000_000_000, 0, ())
LAST = LastRecords("T", {0: LastRecord(9, fingerprint.of_record(RECORD), 3, 1)})
HELD = Offsets("orders", "T", {0: 10}, LAST)


def found(record: Record | None, span: Span, *, compacted: bool = False) -> Compared:
    return compare(HELD, {0: span}, lambda at: dict.fromkeys(at, record), compacted=compacted, of=[0])


def test_the_record_that_was_read_is_the_same_log() -> None:
    assert found(RECORD, Span(0, 12)) == Compared()


@pytest.mark.parametrize(
    "change",
    [{"value": b"Value"}, {"key": None}, {"key": b""}, {"timestamp_ms": 1_700_000_000_001}, {"value": b"valuf"}],
)
def test_another_record_is_another_log(change: Mapping[str, Any]) -> None:
    assert found(replace(RECORD, **change), Span(0, 12)) == Compared(other=(0,))


def test_a_record_that_retention_removed_cannot_be_compared() -> None:
    assert found(None, Span(10, 12)) == Compared(unknown=(0,))


def test_a_record_that_compaction_may_have_removed_cannot_be_compared() -> None:
    assert found(None, Span(0, 12), compacted=True) == Compared(unknown=(0,))


def test_a_record_that_nothing_can_have_removed_is_missed() -> None:
    assert found(None, Span(0, 12)) == Compared(other=(0,))


def test_nothing_is_read_of_a_partition_without_a_last_record() -> None:
    held = replace(HELD, last=LastRecords("T"))
    assert compare(held, {0: Span(0, 12)}, lambda at: pytest.fail("it was read"), compacted=False, of=[0]) == Compared()


class Answering(FakeKafka):
    """A cluster with one record, which counts how often it was asked for."""

    record: Record | None = RECORD
    asked, described = 0, 0

    def topic(self, name: str) -> TopicState:
        self.described += 1
        return super().topic(name)

    def records(self, topic: str, offsets: Mapping[int, int], isolation: Any) -> dict[int, Record | None]:
        self.asked += 1
        return dict.fromkeys(offsets, self.record)


@pytest.fixture
def kafka() -> Answering:
    kafka = Answering()
    kafka.create("orders")
    kafka.append("orders", 0, [1] * 12)
    return kafka


def check_of(kafka: Any) -> LogCheck:
    pipeline = Pipeline(topic=Topic("orders", value="text"), table=Table("shop.orders"))
    return LogCheck(pipeline, kafka, Reporter(lambda event: None, "p", "orders", "r", lambda: 0.0))


def test_a_partition_is_compared_once_for_each_leader_and_after_an_interruption(kafka: Answering) -> None:
    check = check_of(kafka)
    for epoch, asked in ((3, 1), (3, 1), (4, 2), (4, 2)):
        check.check(HELD, {0: Span(0, 12, epoch)})
        assert (kafka.asked, kafka.described) == (asked, asked)
    check.forget()
    check.check(HELD, {0: Span(0, 12, 4)})
    assert kafka.asked == 3


def test_another_record_is_refused_at_each_look(kafka: Answering) -> None:
    check, kafka.record = check_of(kafka), replace(RECORD, value=b"other")
    for _ in range(2):
        with pytest.raises(LogTruncated, match="offset 9 of partition 0"):
            check.check(HELD, {0: Span(0, 12, 3)})
