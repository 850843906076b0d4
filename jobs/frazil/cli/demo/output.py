"""The demo's words: what a person sees of it, up to the page at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from frazil.cli.console import duration, number, table
from frazil.cli.show import snapshot_table
from frazil.status.pipeline import PipelineStatus

if TYPE_CHECKING:
    from frazil.cli.demo.land import Landed

NEXT = (
    ("frazil show flights --env demo", "offsets held, schema, snapshots"),
    ("frazil dead-letters list flights --env demo", "what was rejected, and why"),
    ("frazil verify flights --env demo --deep", "the proof, once more"),
    ("stacks/pipelines.py", "the declaration that made the table; yours may stand beside it"),
    ("README.md", "a pipeline of your own, on your own broker"),
)


def heading(console: Console, place: str, what: str, aside: str = "") -> None:
    """Begin a chapter."""
    console.print()
    console.print(f"[bold]{place}  {what}[/bold]" + (f"  [dim]{aside}[/dim]" if aside else ""))


def parts(console: Console, bootstrap: str, registry_url: str) -> None:
    """The local parts are up."""
    console.print(f"Kafka at {bootstrap}, registry at {registry_url}", markup=False)


def filled(console: Console, topic: str, records: int, seconds: float, what: str) -> None:
    """A topic has another version's records."""
    change = f"; new in this version of the schema: {what}" if what else ""
    console.print(f"{topic}: {number(records)} records sent in {seconds:.1f} s{change}", markup=False)


def notes(console: Console, lines: Sequence[str]) -> None:
    """What happened to the tables meanwhile: each change of a schema, say."""
    for line in lines:
        console.print(line, style="dim", markup=False)


def answer(console: Console, columns: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    """A query's answer."""
    shown = table(*columns, right=tuple(columns[1:]))
    for row in rows:
        shown.add_row(*(number(cell) if isinstance(cell, int) else str(cell) for cell in row))
    console.print(shown)


def summary(
    console: Console, landed: Sequence[Landed], stands: Sequence[PipelineStatus], *, seconds: float, is_whole: bool
) -> None:
    """The page at the end: what became of each record, and where to look next."""
    console.rule("what became of each record", style="dim")
    numbers = ("produced", "landed", "dead-lettered", "lag")
    shown = table("topic", "table", *numbers, right=numbers)
    for one, stand in zip(landed, stands, strict=True):
        cells = (one.produced, one.rows, sum(one.dead.values()), stand.lag)
        shown.add_row(one.pipeline.topic.name, one.pipeline.table.identifier, *map(number, cells))
    console.print(shown)
    console.print()
    by_reason = table("dead letters", "spoilt on purpose", "found", right=("spoilt on purpose", "found"))
    for one in landed:
        for reason in sorted({*one.spoilt, *one.dead}):
            spoilt, found = one.spoilt.get(reason, 0), one.dead.get(reason, 0)
            by_reason.add_row(f"{one.pipeline.topic.name}: {reason}", number(spoilt), number(found))
    console.print(by_reason)
    for stand in stands:
        console.print()
        console.print(snapshot_table(stand.commits, title=f"snapshots of {stand.table}"))
    console.print()
    shown = table("where to look next", "")
    for where, what in NEXT:
        shown.add_row(where, what)
    console.print(shown)
    console.print()
    for one in landed:
        equals = "=" if is_whole else "?"
        console.print(
            f"{one.pipeline.topic.name}: {number(one.produced)} produced {equals} {number(one.rows)} landed + "
            f"{number(sum(one.dead.values()))} dead-lettered",
            markup=False,
        )
    console.print(f"in {duration(seconds)}", markup=False)
    console.print("verified" if is_whole else "NOT verified", style="bold green" if is_whole else "bold red")
