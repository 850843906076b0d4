"""The dashboard shows what jobs write: each search finds metrics with the dimensions of the embedded format."""

from __future__ import annotations

import itertools
import json
import re

import boto3
from moto import mock_aws

from frazil.metrics.emf import UNITS, lines
from frazil.metrics.metric_registry import COUNTED
from infra.cloudwatch_dashboard import Dashboard, widgets
from tests.infra.test_constructs import made

NAMESPACE = "Frazil/dev"
SEARCH = re.compile(
    r"""SEARCH\('\{"Frazil/dev",([a-z,]+)\} MetricName=\(("\w+"(?: OR "\w+")*)\)', '(?:Maximum|Sum)', 300\)"""
)
BY_REASON = ("rejected", "skipped", "filtered")


def body() -> str:
    """The body as CloudWatch gets it from Terraform."""
    found = made(
        lambda stack: Dashboard(stack, "d", dashboard="frazil-dev", namespace=NAMESPACE, region="eu-central-1")
    )
    [dashboard] = found["aws_cloudwatch_dashboard"].values()
    return str(dashboard["dashboard_body"]).replace("$${", "${")


def searched() -> set[tuple[frozenset[str], str]]:
    """The dimensions and the metric of all searches."""
    found = set()
    for widget in json.loads(body())["widgets"]:
        for [search] in widget["properties"]["metrics"]:
            parts = SEARCH.fullmatch(search["expression"])
            assert parts, search["expression"]
            found |= {(frozenset(parts[1].split(",")), name.strip('"')) for name in parts[2].split(" OR ")}
    return found


def written() -> set[tuple[frozenset[str], str]]:
    """The dimensions and the metric of all that jobs write."""
    facts = {"time": 0.0, "pipeline": "orders", **dict.fromkeys(UNITS, 1), **{each: {"x": 1} for each in BY_REASON}}
    events = itertools.product(("batch_committed", *COUNTED), ({}, {"group": "shop"}))
    return {
        (frozenset(by), metric["Name"])
        for event, more in events
        for line in lines({**facts, **more, "event": event}, NAMESPACE)
        for directive in line["_aws"]["CloudWatchMetrics"]
        for by, metric in itertools.product(directive["Dimensions"], directive["Metrics"])
    }


def test_each_search_finds_metrics_that_jobs_write() -> None:
    assert searched() <= written()


def test_all_counted_events_and_reasons_are_shown_of_groups_too() -> None:
    for names, by in ((COUNTED, {"pipeline"}), (BY_REASON, {"pipeline", "reason"})):
        assert {(frozenset(each), name) for each in (by, {*by, "group"}) for name in names} <= searched()


def test_at_most_ten_widgets_lie_on_the_grid_without_overlap() -> None:
    drawn = json.loads(body())["widgets"]
    assert len(drawn) == len(widgets()) <= 10
    assert len({(each["x"], each["y"]) for each in drawn}) == len(drawn)
    assert all(each["x"] + each["width"] <= 24 for each in drawn)


@mock_aws
def test_the_stand_in_keeps_the_dashboard() -> None:
    cloudwatch = boto3.client("cloudwatch", region_name="eu-central-1")
    cloudwatch.put_dashboard(DashboardName="frazil-dev", DashboardBody=body())
    assert cloudwatch.get_dashboard(DashboardName="frazil-dev")["DashboardBody"] == body()
