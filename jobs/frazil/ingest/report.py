"""Report: what happened, as events. One event is one JSON line of the log; metrics are made of the same facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Sink = Callable[[Mapping[str, Any]], None]


class Event(StrEnum):
    """The events of a run, by the name in the log.

    `STARTED` and `ENDED` frame a pipeline's run. `LANDED`: a batch is in the table. `IDLE`: nothing to read.
    `EVOLVED`: the schema changed. `FINISHED`: dead letters of an earlier decision were appended. `AGAIN`: a batch was dropped
    and is done again, with the reason. `FENCED`: another driver won. `INCOMPATIBLE`: a writer schema's records cannot land.
    `REFUSED`: the pipeline waits for a person. `FAILED`: an error ended it. `WAITING`: a service does not answer.
    `TRIMMED`: old snapshots left the metadata.
    """

    STARTED = "started"
    ENDED = "ended"
    LANDED = "landed"
    IDLE = "idle"
    EVOLVED = "evolved"
    FINISHED = "finished"
    AGAIN = "again"
    FENCED = "fenced"
    INCOMPATIBLE = "incompatible"
    REFUSED = "refused"
    FAILED = "failed"
    WAITING = "waiting"
    TRIMMED = "trimmed"


@dataclass(slots=True)
class Total:
    """What one run of one pipeline did so far."""

    read: int = 0
    written: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    fenced: bool = False

    def add(self, read: int, written: int, rejected: Mapping[str, int], skipped: Mapping[str, int]) -> None:
        """Count one landed batch."""
        self.read += read
        self.written += written
        self.batches += 1
        for total, new in ((self.rejected, rejected), (self.skipped, skipped)):
            for reason, n in new.items():
                total[reason] = total.get(reason, 0) + n


@dataclass(frozen=True, slots=True)
class Reporter:
    """Says what happens to one pipeline: every event carries pipeline, topic and run."""

    sink: Sink
    pipeline: str
    topic: str
    run: str
    clock: Callable[[], float]

    def __call__(self, event: Event, **facts: Any) -> None:
        """Emit one event."""
        self.sink(
            {
                "time": round(self.clock(), 3),
                "event": event.value,
                "pipeline": self.pipeline,
                "topic": self.topic,
                "run": self.run,
                **facts,
            }
        )
