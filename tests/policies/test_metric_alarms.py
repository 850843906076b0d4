"""What alarms watch, as the rules and the estimate of the cost read it."""

from __future__ import annotations

from typing import Any

import pytest

from policies.resources import TYPE, Resource, Watch, watch
from stacks.spec.deployments import DEPLOYMENTS, AlarmsOf, Monitoring
from tests.stacks.synthesised import named, resources, synthesised


def alarm(**values: Any) -> Resource:
    return Resource(f"{TYPE}.a", TYPE, values)


def query(text: str) -> Resource:
    return alarm(metric_query=[{"id": "q", "expression": text}])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (alarm(metric_name="lag", dimensions={"pipeline": "orders"}), Watch("lag", pipeline="orders")),
        (query('SELECT MAX(lag) FROM SCHEMA("Frazil/dev", pipeline) GROUP BY pipeline'), Watch("lag")),
        (
            query(
                """SELECT SUM(rejected) FROM SCHEMA("Frazil/dev", "group", pipeline) WHERE "group" = 'pay' GROUP BY x"""
            ),
            Watch("rejected", group="pay"),
        ),
        (alarm(metric_name="TargetErrorCount", dimensions={"ScheduleGroup": "frazil-dev"}), None),
        (query("m1 / m2"), None),
        (alarm(), None),
    ],
)
def test_an_alarm_is_about_a_pipeline_a_group_or_neither(given: Resource, wanted: Watch | None) -> None:
    assert watch(given) == wanted


@pytest.mark.parametrize("alarms", list(AlarmsOf))
def test_each_pipeline_is_watched_whatever_has_the_alarms(alarms: AlarmsOf) -> None:
    stack = synthesised(named(DEPLOYMENTS["dev"], monitoring=Monitoring(alarms=alarms)))["ingestion"]
    found = [watch(Resource(f"{TYPE}.{at}", TYPE, each)) for at, each in resources(stack, TYPE).items()]
    late = [each for each in found if each is not None and each.metric == "freshness_seconds"]
    assert any(each.covers("flights", None) for each in late)
    assert not any(each.covers("flights", "other") for each in late if each.pipeline is None)
