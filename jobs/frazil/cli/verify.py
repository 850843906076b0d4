"""`frazil verify`: the proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from frazil.cli import environments, pipelines
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineName, PipelinesFile
from frazil.cli.screen import number, out, show_json, table
from frazil.clients.secrets import Secrets

if TYPE_CHECKING:
    from frazil.audit.verify import Verification

COLUMNS = ("read", "landed", "dead_lettered", "skipped", "explained", "pending")


def verify(
    context: typer.Context,
    name: PipelineName,
    file: PipelinesFile = pipelines.USUAL,
    env: EnvironmentChoice = "local",
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every data file, also where its manifest is proof.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Prove that each record that was read is landed, dead-lettered or accounted for, exactly once.

    For example: frazil verify flights --deep

    It reads the tables' metadata and files; Kafka is not asked, no JVM is started. Exit codes: 0 proven, 1 not proven,
    2 it could not be checked, or wrong input; 3 the catalog is not there.
    """
    from frazil.audit.verify import verify as verified
    from frazil.lake.reader import Lake

    (pipeline,) = pipelines.chosen(pipelines.declared(file), [name])
    secrets: Secrets = context.find_root().obj
    found = verified(pipeline, Lake(environments.environment(env), secrets.read), deep=deep)
    if as_json:
        show_json(found.document())
    else:
        tell(found, out())
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def tell(found: Verification, console: Console) -> None:
    """Print a verification: the equation by partition, what is wrong, how it was counted."""
    if found.partitions:
        console.print(accounts(found))
    for finding in found.findings:
        console.print(f"{finding.flaw}: {finding}", style="red", markup=False)
    for read in found.reads:
        console.print(
            f"{read.table}: {number(read.rows_by_manifest)} rows told by {read.files_by_manifest} manifest entries, "
            f"{number(read.rows_by_scan)} read in {read.files_by_scan} files",
            style="dim",
            markup=False,
        )
    for note in found.notes:
        console.print(note, style="dim", markup=False)
    words = {"proven": "proven", "not_proven": "not proven", "unchecked": "could not be checked"}
    how = ", every file read" if found.is_deep else ""
    style = "bold green" if found.outcome == "proven" else "bold red"
    console.print(f"{words[found.outcome]} in {found.seconds:.1f} s{how}", style=style, markup=False)


def accounts(found: Verification) -> object:
    """The equation, by partition and in sum."""
    names = [column for column in COLUMNS if column != "pending" or found.sum_of(column)]
    shown = table("partition", "offsets", *(name.replace("_", "-") for name in names), right=("partition",))
    for column in shown.columns[2:]:
        column.justify = "right"
    for one in found.partitions:
        cells = (number(getattr(one, name)) for name in names)
        shown.add_row(str(one.partition), f"{one.start}–{one.end}", *cells)
    shown.add_row("", "together", *(number(found.sum_of(name)) for name in names), style="bold")
    return shown
