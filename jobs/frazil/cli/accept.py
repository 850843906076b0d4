"""`frazil accept`: record an operator's decision about a pipeline that stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from frazil.cli.console import number, out, show_json
from frazil.cli.local_spark import local_job
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineName, PipelinesFile
from frazil.cli.run import Master, Memory
from frazil.clients.secrets import Secrets
from frazil.errors import EVENTS, InvalidInput
from frazil.lake.ledger import entry as ledger
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.recovery.decisions import Acceptance
    from frazil.recovery.recount import Recount
    from frazil.recovery.rows_deleted import RowsDeleted


def accept(
    context: typer.Context,
    name: PipelineName,
    event: Annotated[
        str,
        typer.Argument(
            metavar="EVENT",
            help="Event, as named by the error that stopped the pipeline.",
            autocompletion=lambda: list(EVENTS),
        ),
    ],
    reason: Annotated[str, typer.Option("--reason", help="Reason; the table's ledger keeps it.")],
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    as_json: AsJson = False,
) -> None:
    """Record an operator's decision, so that a stopped pipeline continues.

    For example: frazil accept orders offsets-lost --reason "retention was too short, ticket 4711"

    \b
    The error that stopped the pipeline names the event.
    Decision and reason become a commit of the table.
    `frazil verify` shows every decision of a table.
    Changes offsets; rolled-back-replay also removes replayed dead letters.

    \b
    Exit codes:
      0 recorded
      2 invalid input, or no decision is required
      3 a service is unavailable
      6 another driver committed meanwhile
    """
    if event not in EVENTS:
        raise InvalidInput(f"there is no event {event}", where="EVENT", do=f"Name one of {', '.join(EVENTS)}")
    if not reason.strip():
        raise InvalidInput("the reason is empty", where="--reason", do="Say why, for those who read the ledger later")
    (pipeline,) = declaration_file.chosen(declaration_file.declared(file), [name])
    secrets: Secrets = context.find_root().obj
    environment, why = environments.environment(env), secrets.redactor.redact(reason)
    decided: Acceptance | Recount | RowsDeleted
    with local_job(environment, secrets, master=master, memory=memory) as job:
        from frazil.recovery import apply as accepting
        from frazil.recovery.decisions import Accepted

        if event in (ledger.RECOUNT, ledger.ROWS_DELETED):
            from frazil.lake.read.stored_tables import Lake
            from frazil.recovery.recount import recount
            from frazil.recovery.rows_deleted import rows_deleted

            decide = recount if event == ledger.RECOUNT else rows_deleted
            decided = decide(pipeline, Lake(environment, secrets.read), why, job)
        else:
            decided = accepting.accept(pipeline, Accepted(event), why, job)
    lost, rows = dict(decided.lost), getattr(decided, "rows", None)
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
    out().print(f"{pipeline.name}: {event} is accepted and {EVENTS[event]}", markup=False)
    if rows is not None:
        out().print(f"{number(rows)} rows were deleted", style="dim", markup=False)
    for partition, offset in decided.after.at.items():
        given_up = f", {number(lost[partition])} offsets given up" if lost.get(partition) else ""
        out().print(f"partition {partition} goes on at offset {number(offset)}{given_up}", style="dim", markup=False)
