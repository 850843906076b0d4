"""When a batch has too many rejected records."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from frazil.declaration import Pipeline, Table, Topic
from frazil.errors import SourceTruncated, TooManyLate, TooManyRejected
from frazil.ingest.batch.rejected_share import check_share
from frazil.ingest.plan.planner import accepted
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts

START, END = Offsets("orders", "T1", {0: 0, 1: 5}), Offsets("orders", "T1", {0: 1000, 1: 5})


def check(
    counts: Counts,
    percent: int | None = None,
    allowed: dict[int, int] | None = None,
    event: str = ledger.REJECTED_SHARE,
) -> None:
    topic = Topic("orders", value="avro")
    pipeline = Pipeline(topic=topic, table=Table("shop.orders"), max_rejected_percent=percent)
    check_share(pipeline, counts, START, END, {event: allowed or {}})


def counts(read: int, **rejected: int) -> Counts:
    return Counts(read=read, written=read - sum(rejected.values()), rejected=rejected)


@pytest.mark.parametrize(
    ("batch", "percent"),
    [
        (counts(1000, undecodable=501), None),
        (counts(100, undecodable=51), None),
        (counts(1000, undecodable=300, wrong_magic=300), 50),
        (counts(1000, undecodable=11), 1),
        (replace(counts(1000), written=0, skipped={"undecodable": 1000}), None),
    ],
)
def test_more_than_is_allowed_stops_the_pipeline(batch: Counts, percent: int | None) -> None:
    with pytest.raises(TooManyRejected, match="max_rejected_percent is"):
        check(batch, percent)


@pytest.mark.parametrize(
    ("batch", "percent"),
    [
        (counts(1000, undecodable=500), None),
        (counts(99, undecodable=99), None),
        (counts(1000, undecodable=1000), 100),
        (replace(counts(1000), written=0, skipped={"tombstone": 1000}), None),
        (replace(counts(1000), written=0, skipped={"no_change": 1000}), None),
        (counts(0), None),
    ],
)
def test_what_is_allowed_or_says_too_little_passes(batch: Counts, percent: int | None) -> None:
    check(batch, percent)


def test_an_accepted_range_passes_and_what_is_behind_it_does_not() -> None:
    check(counts(1000, undecodable=1000), allowed={0: 1000, 1: 5})
    with pytest.raises(TooManyRejected):
        check(counts(1000, undecodable=1000), allowed={0: 999, 1: 5})


def entry(end: Offsets) -> Entry:
    return Entry(1, None, None, end, None, None, None, {})


def test_what_is_accepted_of_one_topic_is_not_of_its_successor() -> None:
    summary = {ledger.window_of(ledger.REJECTED_SHARE): str(Offsets("orders", "T0", {0: 2000, 1: 9}))}
    assert accepted(replace(entry(END), summary=summary)) == {}
    assert accepted(entry(END)) == {}


def test_the_message_names_reasons_the_likely_cause_and_the_command() -> None:
    with pytest.raises(TooManyRejected) as caught:
        check(counts(6504, wrong_magic=6000, undecodable=503))
    assert "6,503 of 6,504 records cannot be landed: 6,000 wrong_magic, 503 undecodable" in str(caught.value)
    assert "another format may be meant" in str(caught.value)
    assert "`frazil accept orders rejected-share --reason …`" in str(caught.value)


def late(number: int, read: int, allowed: dict[int, int] | None = None) -> None:
    pipeline = Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"))
    check_share(pipeline, Counts(read, read - number, late=number), START, END, {ledger.LATE_RECORDS: allowed or {}})


@pytest.mark.parametrize(("number", "read"), [(99, 99), (100, 10_000), (0, 1000), (120, 12_000)])
def test_a_few_late_records_pass(number: int, read: int) -> None:
    late(number, read)


@pytest.mark.parametrize(("number", "read"), [(100, 100), (100, 9_999), (500, 10_000)])
def test_more_late_records_than_one_percent_stop_unless_they_are_accepted(number: int, read: int) -> None:
    with pytest.raises(TooManyLate, match="late-records"):
        late(number, read)
    late(number, read, allowed={0: 1000, 1: 5})


@pytest.mark.parametrize("event", ledger.BATCH_EVENTS)
def test_a_decision_counts_for_its_own_event_up_to_the_ends_of_then(event: str) -> None:
    ends = Offsets("orders", "T1", {0: 1000, 1: 5})
    made = {ledger.EVENTS: json.dumps({"event": event, ledger.UNTIL: ends.at}), ledger.window_of(event): str(ends)}
    found = accepted(replace(entry(START), summary=made))
    assert found == {event: {0: 1000, 1: 5}}
    asked = {
        ledger.REJECTED_SHARE: counts(1000, undecodable=1000),
        ledger.LATE_RECORDS: Counts(1000, 0, late=1000),
        ledger.SOURCE_TRUNCATED: counts(1000, truncated=1),
    }
    for name, batch in asked.items():
        if name == event:
            check(batch, allowed=found[event], event=event)
            continue
        with pytest.raises((TooManyRejected, TooManyLate, SourceTruncated)):
            check(batch, allowed=found[event], event=event)


def test_a_fenced_batch_is_late_because_of_another_driver() -> None:
    topic = Topic("orders", value="avro")
    pipeline = Pipeline(topic=topic, table=Table("shop.orders"))
    late = Counts(1000, 0, late=1000)
    with pytest.raises(TooManyLate):
        check_share(pipeline, late, START, END, {})
    check_share(pipeline, late, START, END, {}, is_fenced=True)


def test_one_truncate_stops_the_pipeline_unless_it_is_accepted() -> None:
    with pytest.raises(SourceTruncated, match="source-truncated"):
        check(counts(10, truncated=1), percent=100)
    check(counts(10, truncated=1), allowed={0: 1000, 1: 5}, event=ledger.SOURCE_TRUNCATED)
