"""A batch is committed only if each of its offsets is accounted for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.declaration import Pipeline, Table, Topic
from frazil.errors import CountsDisagree
from frazil.ingest.batch.offset_account import check, gaps
from frazil.ingest.plan.plan import Plan
from frazil.ingest.plan.ranges import OffsetRange
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts

START, END = Offsets("orders", "T1", {0: 5, 1: 0}), Offsets("orders", "T1", {0: 9, 1: 6})
PLAN = Plan(START, START, END, lag=10)
WHOLE = Counts(read=10, written=7, rejected={"undecodable": 2}, skipped={"tombstone": 1})
WITH_GAPS = Counts(read=8, written=8, gaps={1: 2})


def pipeline(*, transactional: bool = False) -> Pipeline:
    topic = Topic("orders", value="text", transactional=transactional)
    return Pipeline(topic=topic, table=Table("shop.orders"))


def test_gaps_are_what_the_ranges_lack() -> None:
    ranges = [OffsetRange(0, 5, 9), OffsetRange(1, 0, 6), OffsetRange(2, 0, 3)]
    assert gaps({0: 4, 1: 4, 2: 5}, ranges) == {1: 2, 2: -2}


def test_a_batch_that_adds_up_is_accepted() -> None:
    check(pipeline(), PLAN, WHOLE, compacted=False)
    check(pipeline(), PLAN, WITH_GAPS, compacted=True)
    check(pipeline(transactional=True), PLAN, WITH_GAPS, compacted=False)


def test_a_plain_topic_has_no_gaps() -> None:
    with pytest.raises(CountsDisagree, match=r"missing \{1: 2\} by partition"):
        check(pipeline(), PLAN, WITH_GAPS, compacted=False)


@pytest.mark.parametrize(
    "counts",
    [
        replace(WHOLE, written=6),
        replace(WHOLE, skipped={"tombstone": 2}),
        replace(WHOLE, read=9, written=6),
        replace(WITH_GAPS, gaps={1: 1}),
        replace(WITH_GAPS, gaps={0: -1, 1: 3}),
    ],
    ids=["a row is lost", "one too many", "a record is lost", "a gap is lost", "a partition has too many"],
)
def test_a_batch_that_does_not_add_up_is_refused(counts: Counts) -> None:
    with pytest.raises(CountsDisagree, match="do not add up"):
        check(pipeline(), PLAN, counts, compacted=True)
