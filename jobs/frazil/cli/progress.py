"""The view of a run that a person watches: one line a pipeline, made of the same events that the log has."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table

from frazil.cli.screen import duration, number, table
from frazil.ingest.report import Event


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
                fresh = event["freshness_seconds"]
                line.newest = event["time"] - fresh if fresh is not None else line.newest
            case Event.IDLE:
                line.lag = event.get("lag", line.lag)
            case Event.PIPELINE_FINISHED:
                line.state, line.ended = "done", event["time"]
            case Event.FENCED:
                line.state, line.ended = "fenced by another driver", event["time"]
            case Event.DECISION_REQUIRED | Event.PIPELINE_FAILED | Event.SERVICE_UNAVAILABLE:
                line.state, line.ended = str(event.get("error", event["event"])), event["time"]
            case Event.SCHEMA_EVOLVED:
                self.notes += [f"{name}: {change}" for change in event["changes"]]
            case Event.BATCH_RETRIED:
                self.notes.append(f"{name}: a batch was done again: {event['message']}")
            case Event.SCHEMA_INCOMPATIBLE:
                self.notes.append(f"{name}: {event['message']}")
            case Event.DEAD_LETTERS_RECOVERED:
                self.notes.append(f"{name}: dead letters of an earlier decision were appended")

    def view(self) -> Table:
        """The table as it is now."""
        now = self._clock()
        numbers = ("records", "per second", "lag", "freshness", "rejected")
        shown = table("pipeline", *numbers, "", right=numbers, drop=("per second", "freshness"))
        with self._lock:
            for name, line in self._lines.items():
                shown.add_row(name, *_cells(line, now), line.state)
        return shown

    def __rich__(self) -> RenderableType:
        """What a live display draws."""
        return self.view()

    @contextmanager
    def live(self, console: Console) -> Iterator[None]:
        """Draw it while the block runs, and leave the last view standing."""
        with Live(self, console=console, refresh_per_second=4):
            yield


def _cells(line: Line, now: float) -> tuple[str, ...]:
    seconds = (line.ended or now) - line.began if line.began else 0.0
    rate = round(line.records / seconds) if seconds > 0 and line.records else None
    freshness = duration(max(now - line.newest, 0.0)) if line.newest is not None else "–"
    return number(line.records), number(rate), number(line.lag), freshness, number(line.rejected)
