"""When a rejected record stops a pipeline, and which records the stop names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from frazil.declaration import Pipeline, Table, Topic
from frazil.errors import RejectedRecords
from frazil.ingest.batch import refused_records
from frazil.ingest.batch.record_counts import Rejected
from frazil.ingest.batch.refused_records import Refused, check_mode, ranges
from frazil.ingest.plan.plan import Plan
from frazil.lake.commit.fence import StageAgain
from frazil.lake.ledger.entry import Ranges
from frazil.lake.ledger.next_offsets import Offsets

TOPIC = Topic("orders", value="avro", key="avro")
SUSPENDS = Pipeline(topic=TOPIC, table=Table("shop.orders"), write="upsert", envelope="debezium")
START, END = Offsets("orders", "T1", {0: 0, 1: 5, 2: 0}), Offsets("orders", "T1", {0: 100, 1: 50, 2: 9})
BAD = [Refused(0, 7, "undecodable"), Refused(0, 8, "undecodable"), Refused(1, 9, "key_null")]


def check(found: Sequence[Refused], accepted: Ranges | None = None, kept: dict[str, int] | None = None) -> None:
    counts = kept if kept is not None else {"undecodable": len(found)}
    planned = Plan(START, START, END, lag=0, accepted_records=accepted or {})
    check_mode(SUSPENDS, planned, Rejected(kept=counts), found, lambda one: "explained")


def test_a_stop_names_its_records_and_the_offsets_up_to_which_there_are_no_others() -> None:
    with pytest.raises(RejectedRecords, match="record partition 0 offset 7: undecodable, explained") as stopped:
        check(BAD)
    facts = stopped.value.facts
    assert (facts["records"], facts["until"]) == ({0: [[7, 9]], 1: [[9, 10]]}, END.at)
    assert facts["record"] == ("orders", 0, 7)


def test_accepted_records_pass_and_the_first_other_one_stops() -> None:
    check(BAD, {0: [[7, 9]], 1: [[9, 10]]})
    with pytest.raises(RejectedRecords, match="partition 1 offset 9: key_null, explained"):
        check(BAD, {0: [[7, 9]], 1: [[8, 9]]})


def test_of_very_many_records_a_stop_names_the_first_and_the_offsets_before_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refused_records, "MOST_NAMED", 2)
    with pytest.raises(RejectedRecords, match="it counts for the first 2 of them") as stopped:
        check(BAD)
    assert (stopped.value.facts["records"], stopped.value.facts["until"]) == ({0: [[7, 9]]}, {0: 100, 1: 9, 2: 0})
    check(BAD[:2], {0: [[7, 9]]})


def test_records_that_are_not_those_that_were_counted_are_staged_again() -> None:
    with pytest.raises(StageAgain):
        check(BAD[:2], {0: [[7, 9]]}, kept={"undecodable": 3})


def test_a_truncate_is_no_record_that_the_error_mode_decides_on() -> None:
    """An operator may keep the rows also where the error mode is `suspend`; other records stop the pipeline all the same."""
    check([], kept={"truncated": 1})
    with pytest.raises(RejectedRecords, match="cannot land 1 undecodable: "):
        check(BAD[:1], kept={"truncated": 1, "undecodable": 1})


def test_places_are_ranges_of_offsets_by_partition() -> None:
    assert ranges([]) == {}
    assert ranges([(0, 1), (0, 2), (0, 4), (3, 0)]) == {0: [[1, 3], [4, 5]], 3: [[0, 1]]}
