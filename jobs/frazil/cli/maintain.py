"""`frazil maintain`: maintain tables on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from frazil.cli.console import log_lines, number, out, plain, show_json, table
from frazil.cli.local_spark import local_job
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineNames, PipelinesFile, chosen_pipelines
from frazil.cli.run import Master, Memory
from frazil.clients.secrets import Secrets
from frazil.exit_codes import Exit
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.maintain.result import Outcome


ACTIONS = {
    "compact": "compact files",
    "merge": "merge deletes",
    "carry": "advance tag",
    "expire": "expire snapshots",
    "orphans": "delete orphans",
}
"""The actions, in words."""

PLANNED = ("dry_run",)
"""Results of an action that changed nothing because of --dry-run, or without --orphans."""

REASONS = {
    "open": "{} partitions received files recently",
    "deletes": "{} partitions with deletes of another engine",
    "metadata_files": "{} metadata files deleted too",
    "named_by_open_decision": "{} files of an open decision kept",
}
"""Why an action left partitions or files, or deleted others; `{}` is how many."""


def maintain(
    context: typer.Context,
    names: PipelineNames = None,
    is_all: Annotated[bool, typer.Option("--all", help="Maintain every declared pipeline.")] = False,
    remove_orphans: Annotated[
        bool, typer.Option("--orphans", help="Delete orphans; the default only counts them.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the work to do, and do nothing.")] = False,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    log: Annotated[bool, typer.Option("--log", help="Log each result as a JSON line on stderr.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compact files, expire snapshots, advance tags and find orphans.

    For example: frazil maintain orders --dry-run

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
    wanted = chosen_pipelines(declaration_file.declared(file), names or [], is_all=is_all)
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
        print_results((one for done in outcomes.values() for one in done), out())
    code = exit_code(one for done in outcomes.values() for one in done)
    if code is not Exit.SUCCESS:
        raise typer.Exit(code)


def _silent(event: Mapping[str, Any]) -> None:
    """Log nothing: the results are printed at the end."""


def print_results(outcomes: Iterable[Outcome], console: Console) -> None:
    """Print what was done, or is to do, as a table. A table of the lake without work is one line."""
    numbers = ("snapshots", "files", "MB", "new files", "new MB", "seconds")
    shown = table("table", "action", "result", *numbers, right=numbers, drop=("seconds", "new MB", "new files", "MB"))
    tables: dict[str, list[Outcome]] = {}
    for one in outcomes:
        tables.setdefault(one.table, []).append(one)
        if has_work(one):
            sizes = (number(one.files_removed), _mb(one.bytes_removed), number(one.files_added), _mb(one.bytes_added))
            cells = (number(one.snapshots), *sizes, f"{one.seconds:.1f}")
            shown.add_row(one.table, ACTIONS[one.action], result_of(one), *cells)
    if not tables:
        console.print("nothing to do: no table has a snapshot yet")
    if shown.row_count:
        console.print(shown)
    for name, done in tables.items():
        for one in done:
            if one.why:
                console.print(plain(f"{name}, {ACTIONS[one.action]}: {one.why}"), style="dim", markup=False)
        reasons = [_reason(code, count) for one in done for code, count in one.left.items()]
        if not any(map(has_work, done)):
            console.print(plain(": ".join([f"{name}: nothing to do", *reasons[:1]])), markup=False)
            reasons = reasons[1:]
        for reason in reasons:
            console.print(plain(f"{name}: {reason}"), style="dim", markup=False)


def has_work(one: Outcome) -> bool:
    """Return whether an action changed something, would change something, or did not end as planned."""
    return one.ended not in (*PLANNED, "done") or bool(one.snapshots or one.files_removed or one.files_added)


def result_of(one: Outcome) -> str:
    """Return the result of an action in words."""
    if one.ended in PLANNED:
        return "found" if one.action == "orphans" else "planned"
    return one.ended.replace("_", " ")


def _reason(code: str, count: int) -> str:
    reason = REASONS.get(code, "{} " + code.replace("_", " ")).format(number(count))
    return re.sub(r"^1 (partition|file|metadata file)s ", r"1 \1 ", reason)


def _mb(size: int) -> str:
    return f"{size / 1_000_000:,.1f}"
