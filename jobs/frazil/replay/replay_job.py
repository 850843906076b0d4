"""A replay as a job run of a deployment: its conditions as one argument, and its results as events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.ingest.guard import reporter
from frazil.ingest.reporting.events import Event, Sink
from frazil.job.context import JobContext
from frazil.replay.open_letters import Wanted
from frazil.replay.replay import Replayed, replay

ALL = "all"
"""The text of no condition."""


def replay_in_job(
    pipelines: Sequence[Pipeline], job: JobContext, registry: Registry | None, sink: Sink, wanted: Wanted
) -> None:
    """Replay the dead letters of the only pipeline, with an event for each batch. Raises what `replay` raises."""
    if len(pipelines) != 1:
        raise InvalidInput("a replay is of one pipeline", where="--replay", do="Name it with --pipeline")
    (pipeline,) = pipelines
    report = reporter(pipeline, job, sink)

    def progress(replayed: Replayed) -> None:
        report(Event.DEAD_LETTERS_REPLAYED, **_facts(replayed))

    done = replay(pipeline, job, registry, wanted, progress=progress)
    if not done.batches:
        progress(done)


def _facts(replayed: Replayed) -> dict[str, Any]:
    facts = replayed.document()
    return {name: facts[name] for name in ("tried", "outcomes", "failed", "left")}


def as_text(wanted: Wanted) -> str:
    """Return conditions as one argument without spaces, such as `reason=unknown_schema,partition=0`."""
    found = []
    for name in (field.name for field in fields(wanted)):
        value = getattr(wanted, name)
        if isinstance(value, tuple):
            value = "-".join(map(str, value))
        if value is not None:
            found.append(f"{name}={value.isoformat() if isinstance(value, datetime) else value}")
    return ",".join(found) or ALL


def parsed(text: str) -> Wanted:
    """Return the conditions that `as_text` wrote. Raises `ValueError` for another text."""
    found: dict[str, Any] = {}
    for part in text.split(",") if text != ALL else ():
        name, _, value = part.partition("=")
        match name:
            case "reason" if value:
                found[name] = value
            case "schema_id" | "partition":
                found[name] = int(value)
            case "offsets":
                first, last = value.split("-")
                found[name] = int(first), int(last)
            case "since" | "until":
                found[name] = datetime.fromisoformat(value)
            case _:
                raise ValueError(f"{part!r} is not a condition on dead letters")
    return Wanted(**found)
