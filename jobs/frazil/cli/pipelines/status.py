"""`frazil status`: all pipelines at a glance, one row each, or one pipeline in full."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from frazil.cli.console import duration, number, out, plain, say, show_json, show_json_line, size, table
from frazil.cli.known_pipelines import with_topics
from frazil.cli.options import (
    AsJson,
    EnvironmentChoice,
    PipelineNames,
    PipelinesFile,
    command_secrets,
    flag,
)
from frazil.cli.pipelines.ui import facts_of, write_page
from frazil.errors import InvalidInput
from frazil.project import declaration_file, environments
from frazil.status.looking import Looking

if TYPE_CHECKING:
    from frazil.status.pipeline_status import Commit, PipelineStatus


PARTITIONS = 8
"""Partitions whose offsets are shown for a snapshot; `--json` has all."""

SNAPSHOT_DROP = ("offsets by partition", "snapshot", "read")
"""Columns of snapshots that a narrow screen omits, the first one first."""

NUMBERS = ("lag", "lag time", "newest record", "rejected, 24 h", "last commit", "rows", "size", "files")
DROP = ("files", "size", "last commit", "newest record", "rows", "rejected, 24 h", "lag time")
"""Columns that a narrow screen omits, the first one first."""
STYLES = {"stopped": "red", "unknown": "yellow", "waiting": "yellow", "behind": "cyan"}


def status(
    names: PipelineNames = None,
    snapshots: Annotated[int, flag("--snapshots", "Number of last snapshots of one PIPELINE.", "N", min=0)] = 5,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    watch: Annotated[bool, flag("--watch", "Look again and again, until stopped.")] = False,
    every: Annotated[
        float, flag("--every", "Interval between two looks of --watch.", "SECONDS", min=0.5, max=3600)
    ] = 5.0,
    html: Annotated[Path | None, flag("--html", "Write one page, to send, to this file.", "FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Show all pipelines at a glance, or one in full.

    For example: frazil status orders

    Reads tables' metadata and Kafka's offsets, without a JVM.
    Shows all declared pipelines by default, one row each.
    One PIPELINE: offsets, lag, columns and last snapshots, too.
    With --watch --json, prints one JSON object a line.
    --html writes what `frazil ui` shows, with PIPELINEs in full.

    Exit codes: 0 shown, whatever the states; 2; 3 one PIPELINE, and its catalog is unavailable
    """
    if watch and not as_json and not sys.stdout.isatty():
        raise InvalidInput("--watch draws on a terminal, and stdout is none", do="Give --json, for one line a look")
    if html is not None:
        if watch or as_json:
            raise InvalidInput("--html excludes --watch and --json", do="Leave one of them out")
        found = declaration_file.found(file)
        if names:
            declaration_file.chosen(with_topics(found, env), names)
        write_page(facts_of(lambda: found, env), html, names)
        say(f"{html} is written")
        return
    declared = with_topics(declaration_file.found(file), env)
    pipelines = declaration_file.chosen(declared, names) if names else declared
    looking = Looking(environments.environment(env), env, command_secrets(), commits=snapshots)
    if watch:
        try:
            _watched(lambda: looking.all(pipelines), every, as_json=as_json)
        except KeyboardInterrupt:  # the way in which it is ended
            return
    is_one = len(names or ()) == 1
    rows = [looking.one(*pipelines)] if is_one else looking.all(pipelines)
    if as_json:
        show_json(_document(rows, now=time.time(), is_full=is_one))
        return
    out().print(_table(rows))
    for text in _reasons(rows):
        say(text)
    for part in _parts(rows[0]) if is_one else ():
        out().print(part, soft_wrap=isinstance(part, Text))


def _watched(look: Callable[[], list[PipelineStatus]], every: float, *, as_json: bool) -> None:
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


def _table(rows: Sequence[PipelineStatus]) -> RenderableType:
    from frazil.status.all_pipelines import totals

    shown = table("pipeline", *NUMBERS, "state", right=NUMBERS, drop=DROP)
    for one in rows:
        state = Text(plain(one.text), style=STYLES.get(one.state.value, ""))
        shown.add_row(one.pipeline, *_cells(one), state)
    if len(rows) > 1:
        sums = totals(rows)
        cells = [number(sums["lag"]), "", "", number(sums["rejected_24h"]), "", number(sums["rows"])]
        files = number(sums["data_files"] + sums["delete_files"])
        shown.add_row("total", *cells, size(sums["bytes"]), files, f"{len(rows)} pipelines", style="bold")
    return Group(
        shown, *(Text(plain(f"{one.pipeline}: {text}"), style=style) for one in rows for text, style in _notes(one))
    )


def _notes(one: PipelineStatus) -> Iterator[tuple[str, str]]:
    """Yield what is printed below the row of a pipeline, each with a style."""
    from frazil.status.pipeline_status import DIFFERS

    yield from ((f"{DIFFERS}: {difference}", "yellow") for difference in one.differences)
    if one.filtered:
        yield f"{number(one.filtered)} records filtered as declared", "dim"
    if one.open_dead_letters or one.closed_dead_letters:
        closed = "".join(f", {number(count)} {outcome}" for outcome, count in sorted(one.closed_dead_letters.items()))
        yield f"dead letters: {number(one.open_dead_letters)} open{closed}", "dim"
    if one.deleted_by_others:
        yield f"{number(one.deleted_by_others)} rows deleted by other engines, as accepted", "dim"
    if one.foreign_commits:
        what = f"Other engines changed rows in {number(one.foreign_commits)} commits, so the number of rows may differ"
        yield f"{what}; `frazil verify {one.pipeline}` counts", "yellow"


def _reasons(rows: Sequence[PipelineStatus]) -> list[str]:
    """Return the reasons of states, each once, with the pipelines that have it."""
    names: dict[str, list[str]] = {}
    for one in rows:
        if one.why:
            names.setdefault(one.why.removeprefix(f"pipeline {one.pipeline}, "), []).append(one.pipeline)
    return [plain(f"{', '.join(of)}: {why}") for why, of in names.items()]


def _cells(one: PipelineStatus) -> list[str]:
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


def _document(rows: Sequence[PipelineStatus], *, now: float, is_full: bool = False) -> dict[str, Any]:
    from frazil.status.all_pipelines import states, totals

    return {
        "at": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds"),
        "pipelines": [one.document(is_full=is_full) for one in rows],
        "totals": totals(rows),
        "states": dict(states(rows)),
    }


def _parts(found: PipelineStatus) -> Iterator[RenderableType]:
    """Yield what is shown of one pipeline below its row."""
    head = table("", "")
    head.show_header = False
    head.add_row("topic", found.topic)
    head.add_row("table", found.table)
    head.add_row("location", found.location or "none yet; the first run creates the table")
    yield Text()
    yield head
    yield from (Text(plain(note), style="yellow") for note in found.stale)
    if found.partitions:
        numbers = ("partition", "committed offset", "end offset", "lag")
        shown = table(*numbers, right=numbers)
        for one in found.partitions:
            shown.add_row(*map(number, (one.partition, one.held, one.stable, one.lag)))
        yield Text()
        yield shown
    if found.columns:
        shown = table("column", "type")
        for column in found.columns:
            shown.add_row(*map(plain, column))
        yield Text()
        yield shown
    if found.commits:
        yield Text()
        yield _snapshots(found.commits)


def _snapshots(commits: tuple[Commit, ...]) -> Table:
    """Return snapshots, newest first, with the offsets that each landed."""
    numbers = ("read", "landed", "rejected")
    shown = table("snapshot", "committed (UTC)", *numbers, "offsets by partition", right=numbers, drop=SNAPSHOT_DROP)
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
