"""`frazil show`: print the status of a pipeline."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from itertools import islice
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from frazil.cli.console import duration, number, out, plain, show_json, table
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineName, PipelinesFile, command_in, in_environment
from frazil.clients.secrets import Secrets
from frazil.project import declaration_file, environments
from frazil.status.pipeline_status import Commit, PipelineStatus, pipeline_status

SECONDS = 5.0
"""How long Kafka may take. Without it, only the lag is unknown."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Hosts that are this machine."""

PARTITIONS = 8
"""Partitions whose offsets are shown for a snapshot; `--json` has all."""

SNAPSHOT_DROP = ("offsets by partition", "snapshot", "read")
"""Columns of snapshots that a narrow screen leaves out, the first one first."""


def show(
    context: typer.Context,
    name: PipelineName,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    snapshots: Annotated[int, typer.Option(min=0, metavar="N", help="Number of last snapshots to show.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show a pipeline's offsets, lag, freshness, schema and last snapshots.

    For example: frazil show orders

    \b
    Reads the table's metadata and Kafka's offsets, without a JVM.
    Without Kafka, only the lag is missing.

    \b
    Exit codes:
      0 shown, also before the first run
      2 invalid input
      3 the catalog is unavailable
    """
    from frazil.clients.kafka import Kafka
    from frazil.lake.read.stored_tables import Lake

    (pipeline,) = declaration_file.chosen(declaration_file.declared(file), [name])
    place = environments.environment(env)
    secrets: Secrets = context.find_root().obj
    stopped = stopped_broker(place.kafka.bootstrap)
    kafka = Kafka(place.kafka, secrets, timeout_seconds=SECONDS) if not stopped else None
    found = pipeline_status(pipeline, Lake(place, secrets.read), kafka, commits=snapshots)
    if kafka is None:
        found = replace(found, why=stopped)
    elif found.location is None:
        from frazil.cli.missing_schema import missing_schema
        from frazil.clients.registry.client import Registry

        registry = Registry.of(place.registry, secrets) if place.registry else None
        found = replace(found, waiting=missing_schema(pipeline, registry, kafka))
    commands = tuple(command_in(one, env) for one in found.commands)
    found = replace(found, stopped=in_environment(found.stopped, env), commands=commands)
    now = time.time()
    if as_json:
        show_json(found.document(now=now))
    else:
        _print_status(found, out(), now=now)


def stopped_broker(bootstrap: str) -> str:
    """Return a sentence if the broker is on this machine and does not run; else nothing.

    A port without a process refuses at once. Kafka's client would retry it until its timeout.
    """
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if host not in LOOPBACK:
            return ""
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS).close()
            return ""
        except OSError:
            continue
    return f"The local broker {bootstrap} does not run"


def _print_status(found: PipelineStatus, console: Console, *, now: float) -> None:
    head = table("", "")
    head.show_header = False
    head.add_row("topic", found.topic)
    head.add_row("table", f"{found.table}" + (f", {number(found.rows)} rows" if found.rows is not None else ""))
    if found.deleted_by_others:
        head.add_row("deleted", f"{number(found.deleted_by_others)} rows, by other engines")
    head.add_row("location", found.location or "none yet; the first run creates the table")
    head.add_row("lag", f"{number(found.lag)} records" if found.lag is not None else "–")
    if found.newest_record_at is not None:
        age = duration(now - found.newest_record_at)
        head.add_row("freshness", f"{age} since the newest landed record, of the partition that is furthest behind")
    console.print(head)
    if found.stopped:
        console.print(plain(f"Stopped. {found.stopped}"), style="red", markup=False, soft_wrap=True)
    if found.why:
        console.print(f"The lag is unknown. {found.why}", style="yellow", markup=False, soft_wrap=True)
    if found.foreign_commits:
        note = foreign_note(found.pipeline, found.foreign_commits)
        console.print(note, style="yellow", markup=False, soft_wrap=True)
    for note in found.stale:
        console.print(note, style="yellow", markup=False, soft_wrap=True)
    if found.waiting:
        console.print(plain(found.waiting), style="yellow", markup=False, soft_wrap=True)
    _print_partitions(found, console)
    if found.columns:
        shown = table("column", "type")
        for column, kind in found.columns:
            shown.add_row(column, kind)
        console.print()
        console.print(shown)
    if found.commits:
        console.print()
        console.print(snapshot_table(found.commits))


def foreign_note(pipeline: str, commits: int) -> str:
    """Return the sentence about `commits` of other engines, and the command that counts rows."""
    return (
        f"Other engines changed rows in {number(commits)} commits, so the number of rows may differ; "
        f"`frazil verify {pipeline}` counts"
    )


def _print_partitions(found: PipelineStatus, console: Console) -> None:
    numbers = ("partition", "committed offset", "end offset", "lag")
    shown = table(*numbers, right=numbers)
    for one in found.partitions:
        shown.add_row(*map(number, (one.partition, one.held, one.stable, one.lag)))
    if found.partitions:
        console.print()
        console.print(shown)


def snapshot_table(commits: tuple[Commit, ...], *, title: str | None = None) -> Table:
    """Return snapshots, newest first, with the offsets that each landed."""
    numbers = ("read", "landed", "rejected")
    shown = table(
        "snapshot", "committed (UTC)", *numbers, "offsets by partition", right=numbers, drop=SNAPSHOT_DROP, title=title
    )
    for column in shown.columns[:2]:
        column.no_wrap = True
    for commit in commits:
        counts = commit.counts
        cells = (counts.read, counts.written, sum(counts.rejected.values())) if counts else (None, None, None)
        ranges = "\n".join(f"{p}: {start}–{end}" for p, (start, end) in islice(commit.offsets.items(), PARTITIONS))
        if len(commit.offsets) > PARTITIONS:
            ranges += f"\n… {len(commit.offsets) - PARTITIONS} more"
        what = ranges or ("offsets as before" if commit.is_ours else f"{commit.operation}, not by Frazil")
        shown.add_row(str(commit.snapshot_id), f"{commit.at:%Y-%m-%d %H:%M:%S}", *map(number, cells), what)
    return shown
