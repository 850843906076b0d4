"""What CloudWatch is told."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.ingest.reporting.events import Event, Reporter
from frazil.metrics import emf

LANDED = {
    "snapshot": 7,
    "read": 10,
    "written": 7,
    "rejected": {"undecodable": 2},
    "skipped": {"tombstone": 1},
    "bytes": 99,
    "duration_seconds": 1.5,
    "stage_seconds": 1.1,
    "freshness_seconds": 2.25,
    "lag": 4,
}


def told(event: Event, **facts: Any) -> list[dict[str, Any]]:
    events: list[Any] = []
    Reporter(events.append, "orders", "Orders", "r1", lambda: 1_700_000_000.5)(event, **facts)
    return [line for one in events for line in emf.lines(one)]


def measured(line: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """The metrics of a line as CloudWatch reads them: name -> unit and value; every dimension must be a member too."""
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Frazil"
    assert all(isinstance(line[name], str) for dimensions in directive["Dimensions"] for name in dimensions)
    return {one["Name"]: (one["Unit"], line[one["Name"]]) for one in directive["Metrics"]}


def test_a_landed_batch_is_its_event_and_its_metrics() -> None:
    batch, *_ = told(Event.BATCH_COMMITTED, **LANDED)
    assert {**LANDED, "event": "batch_committed", "pipeline": "orders", "topic": "Orders"}.items() <= batch.items()
    assert measured(batch) == {
        "read": ("Count", 10),
        "written": ("Count", 7),
        "bytes": ("Bytes", 99),
        "duration_seconds": ("Seconds", 1.5),
        "stage_seconds": ("Seconds", 1.1),
        "freshness_seconds": ("Seconds", 2.25),
        "lag": ("Count", 4),
    }
    assert batch["_aws"]["Timestamp"] == 1_700_000_000_500


def test_rejected_and_skipped_records_are_metrics_by_reason() -> None:
    _, *others = told(Event.BATCH_COMMITTED, **LANDED)
    assert [(one["reason"], measured(one)) for one in others] == [
        ("undecodable", {"rejected": ("Count", 2)}),
        ("tombstone", {"skipped": ("Count", 1)}),
    ]
    by_pipeline_and_reason = [["pipeline"], ["pipeline", "reason"]]  # an alarm is on one pipeline, whatever the reason
    assert all(one["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == by_pipeline_and_reason for one in others)


def test_freshness_and_lag_are_told_when_nothing_was_read() -> None:
    (idle,) = told(Event.IDLE, lag=0, freshness_seconds=0.0)
    assert measured(idle) == {"lag": ("Count", 0), "freshness_seconds": ("Seconds", 0.0)}


@pytest.mark.parametrize(
    "event",
    [
        Event.FENCED,
        Event.DECISION_REQUIRED,
        Event.PIPELINE_FAILED,
        Event.PIPELINE_RETRIED,
        Event.SERVICE_UNAVAILABLE,
        Event.BATCH_RETRIED,
        Event.SCHEMA_INCOMPATIBLE,
    ],
)
def test_what_an_alarm_is_for_counts_one(event: Event) -> None:
    (line,) = told(event, message="because")
    assert measured(line) == {event.value: ("Count", 1)}


def test_an_event_without_numbers_is_a_line_without_metrics() -> None:
    (line,) = told(Event.PIPELINE_STARTED, version="1")
    assert "_aws" not in line


def test_a_batch_whose_freshness_is_not_known_tells_none() -> None:
    batch, *_ = told(Event.BATCH_COMMITTED, **{**LANDED, "freshness_seconds": None, "rejected": {}, "skipped": {}})
    assert "freshness_seconds" not in measured(batch)


def test_an_environment_has_a_namespace_of_its_own() -> None:
    events: list[Any] = []
    Reporter(events.append, "orders", "Orders", "r1", lambda: 1.0)(Event.BATCH_COMMITTED, **LANDED)
    for line in emf.lines(events[0], "Frazil/dev"):
        assert {one["Namespace"] for one in line["_aws"]["CloudWatchMetrics"]} == {"Frazil/dev"}


def test_metrics_of_a_group_have_its_name_as_a_dimension_too() -> None:
    events: list[Any] = []
    report = Reporter(events.append, "orders", "Orders", "r1", lambda: 1.0, "payments")
    report(Event.BATCH_COMMITTED, read=3, rejected={"no_key": 1})
    landed, rejected = emf.lines(events[0], "Frazil/dev")
    assert landed["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["group", "pipeline"]]
    assert rejected["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [
        ["group", "pipeline"],
        ["group", "pipeline", "reason"],
    ]
    assert (landed["group"], rejected["group"]) == ("payments", "payments")
