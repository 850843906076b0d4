"""`frazil run`: land topics, here, with a view for people who watch."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from frazil.cli.console import (
    duration,
    err,
    is_watched,
    log_lines,
    note,
    number,
    out,
    print_error,
    say,
    show_json,
    table,
)
from frazil.cli.known_pipelines import topics_of, with_topics
from frazil.cli.local_spark import local_job
from frazil.cli.options import (
    AsJson,
    EnvironmentChoice,
    PipelineNames,
    PipelinesFile,
    chosen_pipelines,
    command_secrets,
    flag,
)
from frazil.cli.pipelines.check import rows_of
from frazil.cli.pipelines.dead_letters import time_of
from frazil.cli.pipelines.measured_run import Outputs, measured
from frazil.errors import InvalidInput
from frazil.errors.operator_decisions import of_reasons
from frazil.exit_codes import Exit, exit_of_all
from frazil.ingest.reporting.events import Event
from frazil.metrics.otlp_export import ENDPOINT
from frazil.metrics.prometheus_export import Address
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.ingest.guard import Outcome
    from frazil.ingest.reporting.events import Sink, Total


RECENT_SECONDS = 30.0
"""A batch takes about ten seconds: a shorter time would show none, or one, by turns."""
_LACKS = ("waiting for", "no schema of")


@dataclass(slots=True)
class Line:
    """The progress of one pipeline."""

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
            if event["event"] == Event.TOPICS_MATCHED:
                self.notes.append(f"{event['topics']:,} topics match {event['topic']}")
            elif event["event"] == Event.TYPES_MATCHED:
                self.notes.append(f"{event['types']:,} types of {event['topic']} match {event['types_of']}")
            else:
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
                | Event.TOPIC_GONE
            ):
                self.notes.append(f"{name}: {event['message']}")
            case Event.DEAD_LETTERS_RECOVERED:
                self.notes.append(f"{name}: dead letters of an earlier decision were appended")

    def __rich__(self) -> Table:
        """Return the table as it is now: a live display draws it again and again."""
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


Master = Annotated[str, typer.Option(metavar="MASTER", help="Spark master; local[*] is all cores of this machine.")]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="Memory of Spark's JVM.")]


def run(
    names: PipelineNames = None,
    is_all: Annotated[bool, flag("--all", "Run every declared pipeline, as without names.")] = False,
    once: Annotated[bool, flag("--once", "Land what is there, then end (the default).")] = False,
    follow: Annotated[bool, flag("--follow", "Land new records until stopped.")] = False,
    until: Annotated[
        str | None, flag("--until", "Time (UTC), or offsets of one pipeline, to stop before.", "TIME|P:N,P:N…")
    ] = None,
    every: Annotated[
        float, flag("--every", "Interval between two looks of --follow.", "SECONDS", min=0.05, max=86_400)
    ] = 2.0,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    metrics: Annotated[str | None, flag("--metrics", "Serve metrics of --follow to Prometheus.", "HOST:PORT")] = None,
    metrics_file: Annotated[
        Path | None, flag("--metrics-file", "Write metrics for Prometheus's node exporter.", "FILE")
    ] = None,
    log: Annotated[bool, flag("--log", "Log JSON lines to stderr, also on a terminal.")] = False,
    as_json: AsJson = False,
) -> None:
    """Land topics as tables, on this machine.

    For example: frazil run orders

    Without names, run all declared pipelines.
    Print progress on a terminal, elsewhere JSON lines on stderr.
    Spark's own log is .frazil/logs/spark.log.
    Ctrl-C ends the run within seconds.
    Uncommitted batches are read again by the next run.
    --until 0:500,1:480 lands what is before these offsets, and nothing of other partitions.

    Exit codes: 0 all records landed, or another driver lands them; 1 an operator must decide; 2; 3; 6 a
    pipeline failed; 130 a run without --follow was interrupted
    """
    if metrics and not follow:
        raise InvalidInput("--metrics needs --follow", do="Add --follow, or give --metrics-file for a run that ends")
    outputs = Outputs(
        endpoint=Address.parse(metrics) if metrics else None,
        file=metrics_file,
        is_otlp=bool(os.environ.get(ENDPOINT)),
    )
    end = None if until is None else until_of(until, is_follow=follow)
    if once and follow:
        raise InvalidInput("--once and --follow exclude each other", do="Give one of them")
    found, place = declaration_file.found(file), environments.environment(env)
    if names and found.every_pattern:
        wanted = chosen_pipelines(with_topics(found, env), names, is_all=is_all)
    else:
        wanted = chosen_pipelines(found.pipelines, names or [], is_all=is_all or not names)
    if isinstance(end, dict) and (len(wanted) != 1 or (found.every_pattern and not names)):
        raise InvalidInput("--until has offsets of one topic", do="Name one pipeline, or give a time")
    chosen = [one for one in found.examples if one.of != "pipelines" or one.pipeline in wanted]
    declaration_file.refuse_misfits(chosen, place)
    rows_of(chosen)  # refuses what a run would, before Spark starts
    secrets = command_secrets()
    progress = Progress(tuple(pipeline.name for pipeline in wanted)) if is_watched() and not log else None
    if progress:
        err().print("starting Spark", style="dim")
    with local_job(
        place, secrets, master=master, memory=memory, failpoints=os.environ.get("FRAZIL_FAILPOINTS", "")
    ) as job:
        from frazil.clients.registry.client import Registry
        from frazil.ingest import runner

        registry = Registry.of(place.registry, secrets) if place.registry else None
        with progress.live(err()) if progress else nullcontext():
            shown: Sink = progress or log_lines(secrets.redactor)
            subjects = registry.subjects if registry is not None else None
            is_open = found.every_pattern and not names
            topics = topics_of(found, place, job.kafka.names, subjects) if is_open else None

            def say(event: Event, text: str) -> None:
                if progress:
                    note(text, "dim")
                else:
                    shown({"time": job.clock(), "event": event.value, "run": job.run, "message": text})

            with measured(shown, job, outputs, say) as sink:
                if follow:
                    outcomes = runner.follow(wanted, job, registry, sink, topics=topics, every_seconds=every)
                else:
                    outcomes = runner.drain(wanted, job, registry, sink, topics=topics, until=end)
    _print_result(outcomes, progress, as_json=as_json)
    for name, outcome in outcomes.items():
        _print_next(name, outcome)
    errors = [outcome.error for outcome in outcomes.values() if outcome.error]
    for text in dict.fromkeys(str(error) for error in errors):  # pipelines of one topic may have the same
        print_error(secrets.redactor.redact(text))
    if errors:
        raise typer.Exit(exit_of_all(errors))
    if not follow and any(outcome.total.stopped for outcome in outcomes.values()):
        raise typer.Exit(Exit.INTERRUPTED)


def until_of(text: str, *, is_follow: bool) -> dict[int, int] | int:
    """Return offsets by partition, or milliseconds since 1970. Raises `InvalidInput` for a text that is neither."""
    if is_follow:
        raise InvalidInput("--until and --follow exclude each other", do="Give one of them")
    if re.fullmatch(r"[0-9]{1,10}:[0-9]{1,19}(,[0-9]{1,10}:[0-9]{1,19})*", text, re.ASCII):
        places = [place.split(":") for place in text.split(",")]
        found = {int(partition): int(offset) for partition, offset in places}
        if len(found) == len(places):
            return found
    moment = time_of("--until", text)
    assert moment is not None
    return round(moment.timestamp() * 1000)


def _print_next(name: str, outcome: Outcome) -> None:
    """Print what a person should look at next, on stderr."""
    total = outcome.total
    if total.rejected:
        text = f"{name}: rejected {of_reasons(total.rejected)}: frazil dead-letters list {name}"
        note(text, "yellow")
    if total.waiting:
        note(f"{name}: {total.waiting}", "yellow")


def _print_result(outcomes: Mapping[str, Outcome], progress: Progress | None, *, as_json: bool) -> None:
    if as_json:
        show_json({"pipelines": {name: _facts(outcome) for name, outcome in outcomes.items()}})
        return
    if progress:
        for note in progress.notes:
            say(note)
        return
    kinds = ["rejected", "skipped", *(["filtered"] if any(one.total.filtered for one in outcomes.values()) else [])]
    numbers = ("read", "landed", *kinds, "batches")
    shown = table("pipeline", *numbers, "", right=numbers, drop=("batches", "skipped"))
    for name, outcome in outcomes.items():
        facts = _facts(outcome)
        reasons = (sum(facts[kind].values()) for kind in kinds)
        cells = (facts["read"], facts["written"], *reasons)
        shown.add_row(name, *map(number, (*cells, facts["batches"])), str(facts["ended"]))
    out().print(shown)


def _ended(total: Total) -> str:
    if total.fenced:
        return "fenced"
    if total.stopped:
        return "stopped"
    return "waiting" if total.waiting else "done"


def _facts(outcome: Outcome) -> dict[str, Any]:
    total, error = outcome.total, outcome.error
    return {
        "ended": type(error).__name__ if error else _ended(total),
        "read": total.read,
        "written": total.written,
        "rejected": dict(total.rejected),
        "skipped": dict(total.skipped),
        "filtered": dict(total.filtered),
        "batches": total.batches,
        "error": str(error) if error else None,
    }
