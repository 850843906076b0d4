"""Plans that lose data."""

from __future__ import annotations

import pytest

from policies.resources import HOLDS_DATA
from policies.rules.retention import data_lost, partitions_lowered
from tests.policies.review.planning import change, plan
from tests.policies.reviewing import told


@pytest.mark.parametrize("kind", sorted(HOLDS_DATA))
def test_what_holds_data_is_neither_destroyed_nor_replaced(kind: str) -> None:
    gone = change(f"{kind}.x", "delete", {"a": 1})
    again = change(f"{kind}.y", "replace", {"a": 1}, {"a": 2}, forced=[["a"]])
    assert told(data_lost, plan(gone, again)) == [
        (f"{kind}.x", f"it is deleted; this loses {HOLDS_DATA[kind]}"),
        (f"{kind}.y", f"it is replaced, forced by a; this loses {HOLDS_DATA[kind]}"),
    ]


@pytest.mark.parametrize("verb", ["create", "update", "no-op", "read"])
def test_other_changes_lose_nothing(verb: str) -> None:
    assert told(data_lost, plan(change("aws_s3_bucket.x", verb, {"a": 1}, {"a": 2}))) == []


def test_what_holds_no_data_may_go() -> None:
    assert told(data_lost, plan(change("aws_scheduler_schedule.x", "delete", {"a": 1}))) == []


@pytest.mark.parametrize(("before", "after", "count"), [(6, 3, 1), (6, 12, 0), (6, 6, 0), (None, 6, 0), (6, None, 0)])
def test_partitions_may_grow_only(before: int | None, after: int | None, count: int) -> None:
    was, will = ({"topic_name": "t", "partitions_count": n} if n else None for n in (before, after))
    findings = told(partitions_lowered, plan(change("confluent_kafka_topic.t", "replace", was, will)))
    lost = ", so the topic is replaced and loses all records that are not landed"
    assert findings == [("confluent_kafka_topic.t", f"partitions go from {before} to {after}{lost}")][:count]
