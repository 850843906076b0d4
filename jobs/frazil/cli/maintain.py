"""`frazil maintain`: upkeep of tables, here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli.console import log_lines, number, out, plain, show_json, table
from frazil.cli.local_spark import local_job
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineNames, PipelinesFile
from frazil.cli.run import Master, Memory
from frazil.clients.secrets import Secrets
from frazil.errors import InvalidInput
from frazil.exit_codes import Exit
from frazil.project import environments, pipelines

if TYPE_CHECKING:
    from frazil.maintain.result import Outcome


def maintain(
    context: typer.Context,
    names: PipelineNames = None,
    is_all: Annotated[bool, typer.Option("--all", help="Maintain every declared pipeline.")] = False,
    remove_orphans: Annotated[
        bool, typer.Option("--orphans", help="Delete orphans; the default only counts them.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the work to do, and do nothing.")] = False,
    file: PipelinesFile = pipelines.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    log: Annotated[bool, typer.Option("--log", help="Log each result as a JSON line on stderr.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compact files, expire snapshots, advance tags and find orphans.

    For example: frazil maintain flights --dry-run

    \b
    Pipelines may run meanwhile; no row and no offset changes.
    Spark's own log is .frazil/logs/spark.log.

    \b
    Exit codes:
      0 done, or left to another maintainer
      1 an operator must decide
      2 invalid input
      3 a service is unavailable
      6 an action failed
    """
    declared = pipelines.declared(file)
    if is_all == bool(names):
        what = "--all and names exclude each other" if is_all else "no pipeline is named"
        raise InvalidInput(what, do=f"Name some of {', '.join(p.name for p in declared)}, or give --all")
    wanted = declared if is_all else pipelines.chosen(declared, names or [])
    place = environments.environment(env)
    secrets: Secrets = context.find_root().obj
    from frazil.maintain.result import exit_code
    from frazil.maintain.run import maintain as maintained
    from frazil.maintain.run import prepare
    from frazil.maintain.target import Policy

    policy = Policy(dry_run=dry_run)
    with local_job(place, secrets, name="frazil-maintain", master=master, memory=memory, cancels=False) as job:
        sink = log_lines(secrets.redactor) if log else _silent
        outcomes = maintained(wanted, prepare(job, policy), sink, orphans=remove_orphans)
    if as_json:
        show_json({"pipelines": {name: [one.document() for one in done] for name, done in outcomes.items()}})
    else:
        _tell(outcomes)
    code = exit_code(one for done in outcomes.values() for one in done)
    if code is not Exit.SUCCESS:
        raise typer.Exit(code)


def _silent(event: Mapping[str, Any]) -> None:
    """For people the outcomes are told in the end."""


def _tell(outcomes: Mapping[str, Sequence[Outcome]]) -> None:
    numbers = ("snapshots", "files", "MB", "new files", "new MB", "seconds")
    shown = table("table", "action", "", *numbers, right=numbers, drop=("seconds", "new MB", "new files", "MB"))
    for one in (one for done in outcomes.values() for one in done):
        sizes = (number(one.files_removed), _mb(one.bytes_removed), number(one.files_added), _mb(one.bytes_added))
        shown.add_row(one.table, one.action, one.ended, number(one.snapshots), *sizes, f"{one.seconds:.1f}")
    out().print(shown)
    for one in (one for done in outcomes.values() for one in done):
        left = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in one.left.items())
        said = "; ".join(part for part in (one.why, f"left: {left}" if left else "") if part)
        if said:
            out().print(plain(f"{one.table}, {one.action}: {said}"), style="dim", markup=False)


def _mb(size: int) -> str:
    return f"{size / 1_000_000:,.1f}"
