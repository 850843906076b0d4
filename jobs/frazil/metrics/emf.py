"""The facts of an event in CloudWatch's embedded metric format (EMF), so that a log line is a metric too.

The format: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
CloudWatch Logs makes metrics of such lines without any call by us; who reads logs elsewhere sees a few members more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from frazil.metrics.metric_registry import COUNTED, METRICS, Unit

NAMESPACE = "Frazil"

_NAMES = ("time", "pipeline", "group", "topic", "run")
"""The members of each event."""

_BY_REASON = tuple(one.emf for one in METRICS if one.emf and one.labels == ("reason",))
UNITS = {one.emf: one.unit.value for one in METRICS if one.emf and not one.labels} | {
    "duration_seconds": Unit.SECONDS.value,
    "stage_seconds": Unit.SECONDS.value,
}
"""The members of an event that are metrics, with CloudWatch's unit."""


def lines(event: Mapping[str, Any], namespace: str = NAMESPACE) -> Iterator[dict[str, Any]]:
    """Yield an event as log lines: the event itself, with its metrics, and one line for each reason of rejected,
    skipped or filtered records.

    Metrics by pipeline are those of `UNITS`, and a count of 1 of each event of `COUNTED`, by the event's name. By pipeline, and by
    pipeline and reason: `rejected`, `skipped` and `filtered`.
    The metrics of a group's pipelines have the dimension `group` too.
    Environments that share an account have each a `namespace` of their own.
    """
    facts = dict(event)
    metrics = {name: unit for name, unit in UNITS.items() if isinstance(facts.get(name), int | float)}
    if facts["event"] in COUNTED:
        facts[facts["event"]] = 1
        metrics[facts["event"]] = "Count"
    yield _line(facts, namespace, metrics) if metrics else facts
    for kind in _BY_REASON:
        by_reason = facts.get(kind)
        for reason, number in by_reason.items() if isinstance(by_reason, Mapping) else ():
            named: dict[str, Any] = {key: facts[key] for key in _NAMES if key in facts}
            facts_of_reason = {**named, "event": kind, "reason": reason, kind: number}
            yield _line(facts_of_reason, namespace, {kind: "Count"}, ["pipeline", "reason"])


def _line(facts: Mapping[str, Any], namespace: str, metrics: Mapping[str, str], *by: list[str]) -> dict[str, Any]:
    group = ["group"] if "group" in facts else []
    directive = {
        "Namespace": namespace,
        "Dimensions": [[*group, *each] for each in (["pipeline"], *by)],
        "Metrics": [{"Name": name, "Unit": unit} for name, unit in metrics.items()],
    }
    return {**facts, "_aws": {"Timestamp": round(facts["time"] * 1000), "CloudWatchMetrics": [directive]}}
