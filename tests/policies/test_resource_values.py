"""What rules know, told by documents and resources."""

from __future__ import annotations

from typing import Any

import pytest

from policies.resource_values import Facts, Place
from policies.resources import read, together
from tests.policies.reviewing import TODAY, stack


def facts(*documents: dict[str, Any]) -> Facts:
    return Facts(together([read(document) for document in documents]), TODAY)


def test_a_topic_that_two_pipelines_read_may_be_as_late_as_the_later_one() -> None:
    two = {
        "version": 1,
        "pipelines": [
            {"name": name, "topic": {"name": "orders"}, "table": {"identifier": f"shop.{name}"}} for name in ("a", "b")
        ],
    }
    alarms = stack(
        aws_cloudwatch_metric_alarm__a={
            "metric_name": "freshness_seconds",
            "threshold": 60,
            "dimensions": {"pipeline": "a"},
        },
        aws_cloudwatch_metric_alarm__b={
            "metric_name": "freshness_seconds",
            "threshold": "900",
            "dimensions": {"pipeline": "b"},
        },
        aws_cloudwatch_metric_alarm__c={"metric_name": "refused", "threshold": 9999, "dimensions": {"pipeline": "b"}},
        aws_cloudwatch_metric_alarm__d={"metric_name": "freshness_seconds", "threshold": 9999},
    )
    assert facts(two, alarms).lag_seconds("orders") == 900
    assert facts(two, alarms).lag_seconds("refunds") is None
    assert facts(two).lag_seconds("orders") is None


@pytest.mark.parametrize("warehouse", ["s3://tables/lake", "s3://tables/lake/", "s3a://tables/lake"])
def test_a_warehouse_is_a_place(warehouse: str) -> None:
    environment = {"version": 1, "name": "dev", "catalog": {"type": "glue", "warehouse": warehouse}}
    assert list(facts(environment).table_places()) == [Place("tables", "lake")]


def test_a_warehouse_on_a_disk_is_none() -> None:
    environment = {"version": 1, "name": "dev", "catalog": {"type": "local", "warehouse": "file:///lake"}}
    assert list(facts(environment).table_places()) == []
