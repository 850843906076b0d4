"""The facts of an event in CloudWatch's embedded metric format (EMF), so that a log line is a metric too.

The format: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
CloudWatch Logs makes metrics of such lines without any call by us; who reads logs elsewhere sees a few members more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from frazil.ingest.reporting.events import Event

NAMESPACE = "Frazil"

_NAMES = ("time", "pipeline", "group", "topic", "run")
"""The members of each event."""

# The members of an event that are metrics, with CloudWatch's unit.
UNITS = {
    "read": "Count",
    "written": "Count",
    "bytes": "Bytes",
    "duration_seconds": "Seconds",
    "stage_seconds": "Seconds",
    "freshness_seconds": "Seconds",
    "lag": "Count",
}
# Events that are counted: an alarm on a sum above zero reports each.
COUNTED = {
    Event.FENCED: "fenced",
    Event.DECISION_REQUIRED: "decision_required",
    Event.PIPELINE_FAILED: "pipeline_failed",
    Event.PIPELINE_RETRIED: "pipeline_retried",
    Event.SERVICE_UNAVAILABLE: "service_unavailable",
    Event.BATCH_RETRIED: "batch_retried",
    Event.SCHEMA_INCOMPATIBLE: "schema_incompatible",
}


def lines(event: Mapping[str, Any], namespace: str = NAMESPACE) -> Iterator[dict[str, Any]]:
    """Yield an event as log lines: the event itself, with its metrics, and one line for each reason of rejected,
    skipped or filtered records.

    Metrics by pipeline are `read`, `written`, `bytes`, `duration_seconds`, `stage_seconds`, `lag` (offsets not landed yet),
    `freshness_seconds` (now minus the newest landed record's time while records are waiting, 0 when none are), and a count of
    1 of each event of `COUNTED`, by the event's name. By pipeline, and by pipeline and reason:
    `rejected`, `skipped` and `filtered`.
    The metrics of a group's pipelines have the dimension `group` too.
    Environments that share an account have each a `namespace` of their own.
    """
    facts = dict(event)
    metrics = {name: unit for name, unit in UNITS.items() if isinstance(facts.get(name), int | float)}
    counted = COUNTED.get(Event(facts["event"]))
    if counted:
        facts[counted] = 1
        metrics[counted] = "Count"
    yield _line(facts, namespace, metrics) if metrics else facts
    for kind in ("rejected", "skipped", "filtered"):
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
