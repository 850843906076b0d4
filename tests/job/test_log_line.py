"""Log lines are what log services expect."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.ingest.reporting.events import Event, Reporter
from frazil.job.entry_point import log_line
from frazil.metrics import emf

FACTS: dict[Event, dict[str, Any]] = {
    Event.BATCH_COMMITTED: {"read": 1004, "written": 1000, "rejected": {"undecodable": 4}, "skipped": {}},
    Event.JOB_STARTED: {"versions": {"frazil": "0.2.0", "python": "3.11.9"}},
    Event.SCHEMA_EVOLVED: {"changes": ["column a added, string"]},
    Event.TOPICS_MATCHED: {"topics": 2},
    Event.TYPES_MATCHED: {"types": 2, "types_of": "shop.*"},
}


def lines(event: Event, **facts: Any) -> list[dict[str, Any]]:
    events: list[Any] = []
    Reporter(events.append, "orders", "Orders", "r1", lambda: 1_700_000_000.5)(event, **facts)
    return [log_line(line) for one in events for line in emf.lines(one)]


@pytest.mark.parametrize("event", list(Event))
def test_every_line_has_time_level_event_and_message(event: Event) -> None:
    for line in lines(event, **FACTS.get(event, {})):
        assert list(line)[:4] == ["time", "level", "event", "message"]
        assert line["time"] == "2023-11-14T22:13:20.500Z"
        assert line["level"] in {"INFO", "WARN", "ERROR"}
        assert line["message"]
        assert line.get("_aws", {"Timestamp": 1_700_000_000_500})["Timestamp"] == 1_700_000_000_500


def test_a_batch_says_what_it_holds() -> None:
    batch, rejected = lines(Event.BATCH_COMMITTED, **FACTS[Event.BATCH_COMMITTED])
    assert (batch["level"], batch["message"]) == ("WARN", "1,004 records read, 1,000 landed, 4 rejected")
    assert (rejected["level"], rejected["message"]) == ("WARN", "4 records rejected: undecodable")


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (Event.DECISION_REQUIRED, "ERROR"),
        (Event.PIPELINE_FAILED, "ERROR"),
        (Event.SERVICE_UNAVAILABLE, "WARN"),
        (Event.FENCED, "INFO"),
        (Event.FOREIGN_COMMIT, "WARN"),
    ],
)
def test_an_error_keeps_its_own_words(event: Event, level: str) -> None:
    (line,) = lines(event, message="orders: a, do b")
    assert (line["level"], line["message"]) == (level, "orders: a, do b")


def test_the_first_line_says_the_versions() -> None:
    (line,) = lines(Event.JOB_STARTED, **FACTS[Event.JOB_STARTED])
    assert (line["level"], line["message"]) == ("INFO", "frazil 0.2.0, python 3.11.9")


def test_maintenance_lines_say_what_was_done() -> None:
    line = log_line(
        {"time": 0.0, "event": "maintained", "action": "compact", "table": "a.b", "ended": "failed", "why": "x"}
    )
    assert (line["level"], line["message"]) == ("ERROR", "compact of a.b: failed: x")
