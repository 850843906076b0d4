"""`frazil status`: all pipelines at a glance, one row each."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from frazil.cli.console import duration, number, out, plain, show_json, show_json_line, size, table
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineNames, PipelinesFile, command_in, in_environment
from frazil.cli.show import SECONDS, foreign_note, stopped_broker
from frazil.clients.secrets import Secrets
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.status.overview import Row

NUMBERS = ("lag", "lag time", "newest record", "rejected, 24 h", "last commit", "rows", "size", "files")
DROP = ("files", "size", "last commit", "newest record", "rows", "rejected, 24 h", "lag time")
"""Columns that a narrow screen leaves out, the first one first."""
STYLES = {"stopped": "red", "unknown": "yellow", "waiting": "yellow", "behind": "cyan"}


def status(
    context: typer.Context,
    names: PipelineNames = None,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until stopped.")] = False,
    every: Annotated[
        float,
        typer.Option("--every", metavar="SECONDS", min=0.5, max=3600, help="Interval between two looks of --watch."),
    ] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Show all pipelines at a glance, one row each.

    For example: frazil status --watch

    \b
    Reads tables' metadata and Kafka's offsets, without a JVM.
    Shows all declared pipelines by default.
    With --watch --json, prints one JSON object a line.

    \b
    Exit codes:
      0 shown, whatever the states
      2 invalid input
    """
    if watch and not as_json and not sys.stdout.isatty():
        raise InvalidInput("--watch draws on a terminal, and stdout is none", do="Give --json, for one line a look")
    declared = declaration_file.declared(file)
    pipelines = declaration_file.chosen(declared, names) if names else declared
    secrets: Secrets = context.find_root().obj
    look = _looks(pipelines, env, secrets)
    if not watch:
        rows = look()
        if as_json:
            show_json(_document(rows, now=time.time()))
            return
        out().print(_table(rows))
        for text in _reasons(rows):
            out().print(text, markup=False, soft_wrap=True)
        return
    try:
        _watched(look, every, as_json=as_json)
    except KeyboardInterrupt:  # the way in which it is ended
        return


def _looks(pipelines: Sequence[Pipeline], env: str, secrets: Secrets) -> Callable[[], list[Row]]:
    """Return how one look is made; clients are made once, and tables are read each time."""
    from frazil.clients.daemon_threads import DaemonThreads
    from frazil.clients.kafka_topics import KafkaTopics
    from frazil.clients.registry.client import Registry
    from frazil.clients.registry.retry import RetryPolicy
    from frazil.lake.read.stored_tables import Lake
    from frazil.status.all_pipelines import PARALLEL, Services, all_pipelines

    place, mask = environments.environment(env), secrets.redactor.redact
    retry, threads = RetryPolicy(total_seconds=SECONDS), DaemonThreads(PARALLEL, name="status")

    @cache
    def kafka() -> KafkaTopics:
        return KafkaTopics(place.kafka, secrets, timeout_seconds=SECONDS)

    @cache
    def registry() -> Registry | None:
        return Registry.of(place.registry, secrets, retry=retry) if place.registry else None

    def look() -> list[Row]:
        stopped = stopped_broker(place.kafka.bootstrap)
        asked = Services(
            lake=Lake(place, secrets.read), kafka=None if stopped else kafka, registry=registry, stopped=stopped
        )
        rows = all_pipelines(pipelines, asked, threads, now=time.time)
        return [
            replace(
                row,
                why=mask(in_environment(row.why, env)),
                commands=tuple(command_in(one, env) for one in row.commands),
            )
            for row in rows
        ]

    return look


def _watched(look: Callable[[], list[Row]], every: float, *, as_json: bool) -> None:
    """Look until interrupted: one line a look, or the screen drawn again."""
    with nullcontext() if as_json else Live(console=out(), screen=True, auto_refresh=False) as live:
        while True:
            began, rows = time.monotonic(), look()
            if live is None:
                show_json_line(_document(rows, now=time.time()))
            else:
                shown = Group(_table(rows), *_reasons(rows), Text(f"\nevery {every:g} s; Ctrl-C ends", style="dim"))
                live.update(shown, refresh=True)
            time.sleep(max(every - (time.monotonic() - began), 0.0))  # the interval that the user asked for


def _table(rows: Sequence[Row]) -> RenderableType:
    from frazil.status.overview import totals

    shown = table("pipeline", *NUMBERS, "state", right=NUMBERS, drop=DROP)
    for one in rows:
        state = Text(plain(one.text), style=STYLES.get(one.state.value, ""))
        shown.add_row(one.pipeline, *_cells(one), state)
    if len(rows) > 1:
        sums = totals(rows)
        cells = [number(sums["lag"]), "", "", number(sums["rejected_24h"]), "", number(sums["rows"])]
        files = number(sums["data_files"] + sums["delete_files"])
        shown.add_row("total", *cells, size(sums["bytes"]), files, f"{len(rows)} pipelines", style="bold")
    notes = [Text(plain(f"{one.pipeline}: {note}"), style="yellow") for one in rows for note in one.differences]
    notes += [
        Text(f"{one.pipeline}: {number(one.deleted_by_others)} rows deleted by other engines, as accepted", style="dim")
        for one in rows
        if one.deleted_by_others
    ]
    notes += [
        Text(plain(f"{one.pipeline}: {foreign_note(one.pipeline, one.foreign_commits)}"), style="yellow")
        for one in rows
        if one.foreign_commits
    ]
    return Group(shown, *notes) if notes else shown


def _reasons(rows: Sequence[Row]) -> list[str]:
    """Return the reasons of states, each once, with the pipelines that have it."""
    names: dict[str, list[str]] = {}
    for one in rows:
        if one.why:
            names.setdefault(one.why.removeprefix(f"pipeline {one.pipeline}, "), []).append(one.pipeline)
    return [plain(f"{', '.join(of)}: {why}") for why, of in names.items()]


def _cells(one: Row) -> list[str]:
    """Return the numbers of a row; `≥` before a count that the table does not have in full."""
    rejected = number(one.rejected_24h)
    files = None if one.data_files is None else one.data_files + (one.delete_files or 0)
    return [
        number(one.lag),
        duration(one.lag_seconds),
        duration(one.freshness_seconds),
        rejected if one.is_all_rejected else f"≥ {rejected}",
        duration(one.last_commit_seconds),
        number(one.rows),
        "–" if one.bytes is None else size(one.bytes),
        number(files),
    ]


def _document(rows: Sequence[Row], *, now: float) -> dict[str, Any]:
    from frazil.status.overview import document, states, totals

    at = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
    return {
        "at": at,
        "pipelines": [document(one) for one in rows],
        "totals": totals(rows),
        "states": dict(states(rows)),
    }
