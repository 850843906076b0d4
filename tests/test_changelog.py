"""The changelog lists each event and metric of 0.1.0 with its new name, for owners of alarms."""

from __future__ import annotations

import re
from pathlib import Path

from frazil.ingest.events import Event
from frazil.ingest.metrics import COUNTED, UNITS

EVENTS_OF_010 = {
    *("started", "ended", "landed", "idle", "evolved", "finished", "again", "fenced"),
    *("incompatible", "refused", "failed", "waiting", "trimmed"),
}
METRICS_OF_010 = {
    *("read", "written", "bytes", "seconds", "stage_seconds", "freshness_seconds", "lag", "rejected", "skipped"),
    *("fenced", "refused", "waiting", "again", "incompatible"),
}


def entries(root: Path) -> tuple[str, str]:
    """Return the changelog's entries about events and about metrics."""
    page = (root / "CHANGELOG.md").read_text()
    events = page.partition("- Log events have standard names")[2].partition("- Members of events")[0]
    metrics = page.partition("- Members of events and metrics")[2].partition("\n- ")[0]
    return events, metrics


def names(text: str, *, column: int) -> set[str]:
    """Return the names in backticks of one column of all rows."""
    rows = [line.split("|") for line in text.splitlines() if line.lstrip().startswith("|")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row[column])}


def test_the_changelog_lists_each_event_of_010(root: Path) -> None:
    events, _ = entries(root)
    assert names(events, column=1) == EVENTS_OF_010


def test_each_event_of_today_is_in_the_changelog(root: Path) -> None:
    events, _ = entries(root)
    new = set(re.findall(r"`(\w+)`", events.partition("New events:")[2]))
    kept = EVENTS_OF_010 & set(Event)
    assert names(events, column=2) | new | kept == {event.value for event in Event}
    assert kept == {"idle", "fenced"}


def test_the_changelog_lists_each_metric_of_010(root: Path) -> None:
    _, metrics = entries(root)
    kept = set(re.findall(r"`(\w+)`", metrics.partition("The metrics ")[2]))
    members = {"why", "again_in_seconds"}
    assert names(metrics, column=1) - members | kept == METRICS_OF_010
    assert kept <= {*UNITS, *COUNTED.values(), "rejected", "skipped"}
