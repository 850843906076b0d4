"""Print what the demo does, and a summary at the end."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from frazil.cli.console import duration, number, table
from frazil.cli.status import snapshot_table
from frazil.status.pipeline_status import PipelineStatus

if TYPE_CHECKING:
    from frazil.cli.demo.land import Landed

NEXT = (
    ("frazil status flights --env demo", "offsets, schema, snapshots"),
    ("frazil dead-letters list flights --env demo", "rejected records, with reasons"),
    ("frazil verify flights --env demo --deep", "the proof again"),
    ("stacks/pipelines.py", "the declarations of these tables; add yours beside them"),
    ("README.md", "a pipeline on your own broker"),
)


def next_steps(command: str | None, python: Path) -> tuple[tuple[str, str], ...]:
    """Return what to look at next. If `frazil` is no command of the shell, first how to make it one."""
    if command is not None:
        return NEXT
    activate = python.parent / "activate"
    shown = activate.relative_to(Path.cwd()) if activate.is_relative_to(Path.cwd()) else activate
    return ((f"source {shown}", "puts frazil on the PATH"), *NEXT)


def heading(console: Console, place: str, what: str, aside: str = "") -> None:
    """Print the heading of a chapter."""
    console.print()
    console.print(f"[bold]{place}  {what}[/bold]" + (f"  [dim]{aside}[/dim]" if aside else ""))


def parts(console: Console, bootstrap: str, registry_url: str) -> None:
    """Print the addresses of the local services."""
    console.print(f"Kafka at {bootstrap}, registry at {registry_url}", markup=False)


def filled(console: Console, topic: str, records: int, seconds: float, what: str) -> None:
    """Print that the records of one version of a schema were sent."""
    change = f"; new in this version of the schema: {what}" if what else ""
    console.print(f"{topic}: {number(records)} records sent in {seconds:.1f} s{change}", markup=False)


def notes(console: Console, lines: Sequence[str]) -> None:
    """Print what happened to the tables meanwhile, such as changes of schemas."""
    for line in lines:
        console.print(line, style="dim", markup=False)


def captured(console: Console, database: str, records: int) -> None:
    """Print that a database's table is captured."""
    console.print(
        f"PostgreSQL at {database}; Debezium reads a snapshot of bookings: {number(records)} rows", markup=False
    )


def changed(console: Console, rows: Mapping[str, int]) -> None:
    """Print how many rows of the database were changed."""
    counts = ", ".join(f"{number(count)} {what}" for what, count in rows.items())
    console.print(f"bookings: {counts}", markup=False)


def compared(
    console: Console,
    columns: Sequence[str],
    source: Sequence[tuple[object, ...]],
    copy: Sequence[tuple[object, ...]],
    *,
    rows: int,
    is_equal: bool,
) -> None:
    """Print a query's answers by the database and by the table, and whether all rows are equal."""
    first, *others = columns
    shown = table(first, *(f"{name}, {of}" for of in ("PostgreSQL", "Iceberg") for name in others))
    for left, right in zip_longest(source, copy, fillvalue=("",) * len(columns)):
        cells = (left[0] or right[0], *left[1:], *right[1:])
        shown.add_row(*(number(cell) if isinstance(cell, int) else str(cell) for cell in cells))
    console.print(shown)
    equal = "equal" if is_equal else "NOT equal"
    console.print(f"airline.bookings: {number(rows)} rows in PostgreSQL, all rows {equal}", markup=False)


def answer(console: Console, columns: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    """Print the answer of a query."""
    shown = table(*columns, right=tuple(columns[1:]))
    for row in rows:
        shown.add_row(*(number(cell) if isinstance(cell, int) else str(cell) for cell in row))
    console.print(shown)


def summary(
    console: Console, landed: Sequence[Landed], statuses: Sequence[PipelineStatus], *, seconds: float, is_complete: bool
) -> None:
    """Print the counts of all records, and what to look at next."""
    console.rule("counts of all records", style="dim")
    numbers = ("produced", "landed", "dead-lettered", "lag")
    shown = table("topic", "table", *numbers, right=numbers)
    for one, status in zip(landed, statuses, strict=True):
        cells = (one.produced, one.rows, sum(one.dead.values()), status.lag)
        shown.add_row(one.pipeline.topic.name, one.pipeline.table.identifier, *map(number, cells))
    console.print(shown)
    console.print()
    by_reason = table("dead letters", "spoilt on purpose", "found", right=("spoilt on purpose", "found"))
    for one in landed:
        for reason in sorted({*one.spoilt, *one.dead}):
            spoilt, found = one.spoilt.get(reason, 0), one.dead.get(reason, 0)
            by_reason.add_row(f"{one.pipeline.topic.name}: {reason}", number(spoilt), number(found))
    console.print(by_reason)
    for status in statuses:
        console.print()
        console.print(snapshot_table(status.commits, title=f"snapshots of {status.table}"))
    console.print()
    shown = table("next", "")
    for where, what in next_steps(shutil.which("frazil"), Path(sys.executable)):
        shown.add_row(where, what)
    console.print(shown)
    console.print()
    for one in landed:
        equals = "=" if is_complete else "?"
        console.print(
            f"{one.pipeline.topic.name}: {number(one.produced)} produced {equals} {number(one.rows)} landed + "
            f"{number(sum(one.dead.values()))} dead-lettered",
            markup=False,
        )
    console.print(f"in {duration(seconds)}", markup=False)
    console.print("verified" if is_complete else "NOT verified", style="bold green" if is_complete else "bold red")
