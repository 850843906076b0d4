"""How long Kafka keeps what is not landed yet."""

from __future__ import annotations

from typing import Any

import pytest

from policies.rules.retention import retention_under_lag
from tests.policies.reviewing import change, plan, stack, told

DAY_MS = 86_400_000
DOCUMENT = {
    "version": 1,
    "pipelines": [{"topic": {"name": "Orders"}, "table": {"identifier": "shop.orders"}}],
}
LATE = {"metric_name": "freshness_seconds", "threshold": 3600, "dimensions": {"pipeline": "orders"}}


def topic(**config: str) -> dict[str, Any]:
    values = {"topic_name": "Orders", "partitions_count": 6, **({"config": config} if config else {})}
    return stack(confluent_kafka_topic__t=values, aws_cloudwatch_metric_alarm__late=LATE)


def kept(milliseconds: int) -> dict[str, str]:
    return {"retention.ms": str(milliseconds)}


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (kept(3_599_999), 1),
        (kept(3_600_000), 0),
        (kept(-1), 0),
        (kept(0), 1),
        ({}, 0),
        ({"cleanup.policy": "compact", **kept(1)}, 0),
    ],
    ids=str,
)
def test_records_are_kept_for_as_long_as_rows_may_be_late(config: dict[str, str], count: int) -> None:
    assert len(told(retention_under_lag, topic(**config), DOCUMENT)) == count


def test_a_retention_under_the_lag_says_both() -> None:
    assert told(retention_under_lag, topic(**kept(60_000)), DOCUMENT) == [
        ("confluent_kafka_topic.t", "records are kept for 60 s, rows may come 3600 s late")
    ]


def test_another_pipelines_alarm_says_nothing() -> None:
    other = stack(
        confluent_kafka_topic__t={"topic_name": "Orders", "config": kept(60_000)},
        aws_cloudwatch_metric_alarm__late={**LATE, "dimensions": {"pipeline": "refunds"}},
    )
    assert told(retention_under_lag, other, DOCUMENT) == []


def cut(before: dict[str, str], after: dict[str, str]) -> dict[str, Any]:
    was, will = ({"topic_name": "Orders", "config": config} for config in (before, after))
    return plan(change("confluent_kafka_topic.t", "update", was, will))


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        (kept(7 * DAY_MS), kept(DAY_MS), 1),
        (kept(-1), kept(DAY_MS), 1),
        ({}, kept(DAY_MS), 1),
        (kept(DAY_MS), kept(7 * DAY_MS), 0),
        (kept(DAY_MS), kept(-1), 0),
        (kept(DAY_MS), kept(DAY_MS), 0),
    ],
    ids=str,
)
def test_a_cut_of_which_nothing_says_how_late_rows_may_be_is_told(
    before: dict[str, str], after: dict[str, str], count: int
) -> None:
    assert len(told(retention_under_lag, cut(before, after))) == count


def test_a_cut_that_stays_above_the_lag_passes() -> None:
    alarm = stack(aws_cloudwatch_metric_alarm__late=LATE)
    assert told(retention_under_lag, cut(kept(7 * DAY_MS), kept(DAY_MS)), alarm, DOCUMENT) == []
    assert len(told(retention_under_lag, cut(kept(7 * DAY_MS), kept(60_000)), alarm, DOCUMENT)) == 1
