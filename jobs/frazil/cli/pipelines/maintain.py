"""`frazil maintain` and `frazil accept`: upkeep of tables on this machine, and decisions of operators."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from frazil.cli.console import log_lines, number, out, say, show_json, table
from frazil.cli.known_pipelines import with_tables
from frazil.cli.local_spark import local_job
from frazil.cli.options import (
    AsJson,
    EnvironmentChoice,
    PipelineName,
    PipelineNames,
    PipelinesFile,
    argument,
    chosen_pipelines,
    command_secrets,
    flag,
)
from frazil.cli.pipelines.run import Master, Memory
from frazil.errors import EVENTS, InvalidInput
from frazil.exit_codes import Exit
from frazil.lake.ledger import entry as ledger
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.maintain.target import Outcome
    from frazil.recovery.decisions import Acceptance


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
    names: PipelineNames = None,
    is_all: Annotated[bool, flag("--all", "Maintain every declared pipeline.")] = False,
    remove_orphans: Annotated[bool, flag("--orphans", "Delete orphans; the default only counts them.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", "Print the work to do, and do nothing.")] = False,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    log: Annotated[bool, flag("--log", "Log each result as a JSON line on stderr.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compact files, expire snapshots, advance tags and find orphans.

    For example: frazil maintain orders --dry-run

    Pipelines may run meanwhile; no row and no offset changes.
    Spark's own log is .frazil/logs/spark.log.

    Exit codes: 0 done, or left to another maintainer; 1 an operator must decide; 2; 3; 6 an action failed
    """
    wanted = chosen_pipelines(with_tables(file, env), names or [], is_all=is_all)
    place = environments.environment(env)
    secrets = command_secrets()
    from frazil.maintain.run import maintain as maintained
    from frazil.maintain.run import prepare
    from frazil.maintain.target import Policy, exit_code

    policy = Policy(dry_run=dry_run)
    with local_job(place, secrets, name="frazil-maintain", master=master, memory=memory, cancels=False) as job:
        sink = log_lines(secrets.redactor) if log else lambda event: None  # the results are printed at the end
        outcomes = maintained(wanted, prepare(job, policy), sink, orphans=remove_orphans)
    if as_json:
        show_json({"pipelines": {name: [one.document() for one in done] for name, done in outcomes.items()}})
    else:
        print_results((one for done in outcomes.values() for one in done), out())
    code = exit_code(one for done in outcomes.values() for one in done)
    if code is not Exit.SUCCESS:
        raise typer.Exit(code)


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
                say(f"{name}, {ACTIONS[one.action]}: {one.why}", "dim", to=console)
        reasons = [_reason(code, count) for one in done for code, count in one.left.items()]
        if not any(map(has_work, done)):
            say(": ".join([f"{name}: nothing to do", *reasons[:1]]), to=console)
            reasons = reasons[1:]
        for reason in reasons:
            say(f"{name}: {reason}", "dim", to=console)


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


def accept(
    name: PipelineName,
    event: Annotated[
        str,
        argument(
            "EVENT", "Event, as named by the error that stopped the pipeline.", autocompletion=lambda: list(EVENTS)
        ),
    ],
    reason: Annotated[str, flag("--reason", "Reason; the table's ledger keeps it.")],
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    as_json: AsJson = False,
) -> None:
    """Record an operator's decision about a stopped pipeline.

    For example: frazil accept orders offsets-lost --reason "retention was too short, ticket 4711"

    The error that stopped the pipeline names the event.
    Decision and reason become a commit of the table.
    `frazil verify` shows every decision of a table.
    Changes offsets; rolled-back-replay also removes replayed dead letters.

    Exit codes: 0 recorded; 2 invalid input, or no decision is required; 3; 6 another driver committed meanwhile
    """
    if event not in EVENTS:
        raise InvalidInput(f"there is no event {event}", where="EVENT", do=f"Name one of {', '.join(EVENTS)}")
    if not reason.strip():
        raise InvalidInput("the reason is empty", where="--reason", do="Say why, for those who read the ledger later")
    (pipeline,) = declaration_file.chosen(with_tables(file, env), [name])
    secrets = command_secrets()
    environment, why = environments.environment(env), secrets.redactor.redact(reason)
    decided: Acceptance
    with local_job(environment, secrets, master=master, memory=memory) as job:
        from frazil.recovery import apply as accepting
        from frazil.recovery.decisions import Accepted

        if event in (ledger.RECOUNT, ledger.ROWS_DELETED):
            from frazil.lake.read.stored_tables import Lake
            from frazil.recovery.recount import recount, rows_deleted

            decide = recount if event == ledger.RECOUNT else rows_deleted
            decided = decide(pipeline, Lake(environment, secrets.read), why, job)
        else:
            decided = accepting.accept(pipeline, Accepted(event), why, job)
    lost, rows = dict(decided.lost), decided.rows
    if as_json:
        show_json(
            {
                "pipeline": pipeline.name,
                "event": event,
                "before": {str(p): o for p, o in decided.before.at.items()},
                "after": {str(p): o for p, o in decided.after.at.items()},
                "lost": {str(p): n for p, n in lost.items()},
                **({} if rows is None else {"rows": rows}),
            }
        )
        return
    say(f"{pipeline.name}: {event} is accepted and {EVENTS[event]}")
    if rows is not None:
        say(f"{number(rows)} rows were deleted", "dim")
    for partition, offset in decided.after.at.items():
        given_up = f", {number(lost[partition])} offsets given up" if lost.get(partition) else ""
        say(f"partition {partition} goes on at offset {number(offset)}{given_up}", "dim")
