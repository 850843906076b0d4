"""The view of a run that a person watches: one line a pipeline, made of the same events that the log has."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table

from frazil.cli.console import duration, number, table
from frazil.ingest.reporting.events import Event

RECENT_SECONDS = 30.0
"""A batch takes about ten seconds: a shorter time would show none, or one, by turns."""
_LACKS = ("waiting for", "no schema of")


@dataclass(slots=True)
class Line:
    """What is known of one pipeline."""

    state: str = "waiting"
    began: float = 0.0
    ended: float | None = None
    records: int = 0
    rejected: int = 0
    skipped: int = 0
    batches: int = 0
    lag: int | None = None
    newest: float | None = None
    """The time of the newest committed record."""
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    """The batches of the last seconds: when they were committed, and their records."""


class Progress:
    """Takes events, from any thread, and draws them. `clock` is seconds since 1970, as in the events."""

    def __init__(self, pipelines: tuple[str, ...], *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lines = {name: Line() for name in pipelines}
        self._lock = threading.Lock()
        self.notes: list[str] = []

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Take one event."""
        with self._lock:
            self._take(self._lines.setdefault(event["pipeline"], Line()), event)

    def _take(self, line: Line, event: Mapping[str, Any]) -> None:
        name = event["pipeline"]
        match event["event"]:
            case Event.PIPELINE_STARTED:
                line.state, line.ended = "running", None
                line.began = line.began or event["time"]
            case Event.BATCH_COMMITTED:
                line.records += event["read"]
                line.rejected += sum(event["rejected"].values())
                line.skipped += sum(event["skipped"].values())
                line.batches += 1
                line.lag = event["lag"]
                line.state = "running"
                line.recent.append((event["time"], event["read"]))
                fresh = event["freshness_seconds"]
                line.newest = event["time"] - fresh if fresh is not None else line.newest
            case Event.IDLE:
                line.lag = event.get("lag", line.lag)
                if event.get("message"):
                    line.state = event["message"]
            case Event.PIPELINE_FINISHED:
                is_waiting = line.state.startswith(_LACKS) and not event.get("stopped")
                line.state = "stopped" if event.get("stopped") else line.state if is_waiting else "done"
                line.ended = event["time"]
            case Event.FENCED:
                line.state, line.ended = "fenced by another driver", event["time"]
            case Event.DECISION_REQUIRED | Event.PIPELINE_FAILED | Event.SERVICE_UNAVAILABLE | Event.PIPELINE_RETRIED:
                line.state = str(event.get("error", event["event"]))
                line.ended = None if "retry_in_seconds" in event else event["time"]
            case Event.SCHEMA_EVOLVED:
                self.notes += [f"{name}: {change}" for change in event["changes"]]
            case Event.BATCH_RETRIED:
                self.notes.append(f"{name}: a batch was staged again: {event['message']}")
            case Event.SCHEMA_LOOKED_UP:
                self.notes.append(f"{name}: {event['message']}")
            case (
                Event.SCHEMA_INCOMPATIBLE
                | Event.PROPERTIES_OMITTED
                | Event.FOREIGN_COMMIT
                | Event.TABLE_DIFFERS
                | Event.MANY_FILES
            ):
                self.notes.append(f"{name}: {event['message']}")
            case Event.DEAD_LETTERS_RECOVERED:
                self.notes.append(f"{name}: dead letters of an earlier decision were appended")

    def view(self) -> Table:
        """Return the table as it is now."""
        now = self._clock()
        numbers = ("records", "per second", "lag", "freshness", "rejected")
        shown = table("pipeline", *numbers, "", right=numbers, drop=("per second", "freshness"))
        with self._lock:
            for name, line in self._lines.items():
                shown.add_row(name, *_cells(line, now), _state(line, now))
            is_running = any(line.ended is None for line in self._lines.values())
        if is_running:
            shown.caption, shown.caption_justify, shown.caption_style = "Ctrl-C stops", "left", "dim"
        return shown

    def __rich__(self) -> RenderableType:
        """What a live display draws."""
        return self.view()

    @contextmanager
    def live(self, console: Console) -> Iterator[None]:
        """Draw the table while the block runs, and keep the last view."""
        with Live(self, console=console, refresh_per_second=4):
            yield


def _rate(line: Line, now: float) -> float | None:
    """Return records a second: of the last seconds while it runs, of the run when it has ended."""
    if not line.began or not line.records:
        return None
    if line.ended is not None:
        return line.records / (line.ended - line.began) if line.ended > line.began else None
    since = max(now - RECENT_SECONDS, line.began)
    while line.recent and line.recent[0][0] < since:
        line.recent.popleft()
    return sum(read for _, read in line.recent) / (now - since) if now > since else None


def _state(line: Line, now: float) -> str:
    """Return the state, with the time that is left while it runs."""
    rate = _rate(line, now)
    if line.state != "running" or not line.lag or not rate:
        return line.state
    return f"running, {duration(line.lag / rate)} left"


def _cells(line: Line, now: float) -> tuple[str, ...]:
    rate = _rate(line, now)
    freshness = "–" if line.newest is None else duration(0.0 if line.lag == 0 else max(now - line.newest, 0.0))
    return (
        number(line.records),
        number(None if rate is None else round(rate)),
        number(line.lag),
        freshness,
        number(line.rejected),
    )
