"""`frazil run`: land topics, here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli.check import rows_of
from frazil.cli.console import err, is_watched, log_lines, number, out, plain, print_error, show_json, table
from frazil.cli.local_spark import local_job
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineNames, PipelinesFile, chosen_pipelines
from frazil.cli.progress import Progress
from frazil.clients.secrets import Secrets
from frazil.errors import InvalidInput
from frazil.errors.operator_decisions import of_reasons
from frazil.exit_codes import Exit, exit_of_all
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.ingest.guard import Outcome
    from frazil.ingest.reporting.events import Total

Master = Annotated[str, typer.Option(metavar="MASTER", help="Spark master; local[*] is all cores of this machine.")]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="Memory of Spark's JVM.")]


def run(
    context: typer.Context,
    names: PipelineNames = None,
    is_all: Annotated[bool, typer.Option("--all", help="Run every declared pipeline, as without names.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Land what is there, then end (the default).")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Land new records until stopped.")] = False,
    every: Annotated[
        float,
        typer.Option(
            "--every", metavar="SECONDS", min=0.05, max=86_400, help="Interval between two looks of --follow."
        ),
    ] = 2.0,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    schema_cache: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder that keeps writer schemas between runs.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Log JSON lines to stderr, also on a terminal.")] = False,
    as_json: AsJson = False,
) -> None:
    """Land topics as tables, on this machine.

    For example: frazil run orders

    \b
    Without names, run all declared pipelines.
    Print progress on a terminal, elsewhere JSON lines on stderr.
    Spark's own log is .frazil/logs/spark.log.
    Ctrl-C ends the run within seconds.
    Uncommitted batches are read again by the next run.

    \b
    Exit codes:
      0 all records landed, or another driver lands them
      1 an operator must decide
      2 invalid input
      3 a service is unavailable
      6 a pipeline failed
      130 a run without --follow was interrupted
    """
    if once and follow:
        raise InvalidInput("--once and --follow exclude each other", do="Give one of them")
    listed = declaration_file.found(file)
    wanted = chosen_pipelines([one.pipeline for one in listed], names or [], is_all=is_all or not names)
    place = environments.environment(env)
    chosen = [one for one in listed if one.pipeline in wanted]
    declaration_file.refuse_misfits(chosen, place)
    rows_of(chosen)  # refuses what a run would, before Spark starts
    secrets: Secrets = context.find_root().obj
    progress = Progress(tuple(pipeline.name for pipeline in wanted)) if is_watched() and not log else None
    if progress:
        err().print("starting Spark", style="dim")
    with local_job(
        place, secrets, master=master, memory=memory, failpoints=os.environ.get("FRAZIL_FAILPOINTS", "")
    ) as job:
        from frazil.clients.registry.client import Registry
        from frazil.ingest import runner

        registry = Registry.of(place.registry, secrets, cache=schema_cache) if place.registry else None
        with progress.live(err()) if progress else nullcontext():
            sink = progress or log_lines(secrets.redactor)
            if follow:
                outcomes = runner.follow(wanted, job, registry, sink, every_seconds=every)
            else:
                outcomes = runner.drain(wanted, job, registry, sink)
    _print_result(outcomes, progress, as_json=as_json)
    for name, outcome in outcomes.items():
        _print_next(name, outcome)
    errors = [outcome.error for outcome in outcomes.values() if outcome.error]
    for text in dict.fromkeys(str(error) for error in errors):  # pipelines of one topic may have the same
        print_error(secrets.redactor.redact(text))
    if errors:
        raise typer.Exit(exit_of_all(errors))
    if not follow and any(outcome.total.stopped for outcome in outcomes.values()):
        raise typer.Exit(Exit.INTERRUPTED)


def _print_next(name: str, outcome: Outcome) -> None:
    """Print what a person should look at next, on stderr."""
    total = outcome.total
    if total.rejected:
        text = f"{name}: rejected {of_reasons(total.rejected)}: frazil dead-letters list {name}"
        err().print(plain(text), style="yellow", markup=False, soft_wrap=True)
    if total.waiting:
        err().print(plain(f"{name}: {total.waiting}"), style="yellow", markup=False, soft_wrap=True)


def _print_result(outcomes: Mapping[str, Outcome], progress: Progress | None, *, as_json: bool) -> None:
    if as_json:
        show_json({"pipelines": {name: _facts(outcome) for name, outcome in outcomes.items()}})
        return
    if progress:
        for note in progress.notes:
            out().print(plain(note), markup=False)
        return
    numbers = ("read", "landed", "rejected", "skipped", "batches")
    shown = table("pipeline", *numbers, "", right=numbers, drop=("batches", "skipped"))
    for name, outcome in outcomes.items():
        facts = _facts(outcome)
        cells = (facts["read"], facts["written"], sum(facts["rejected"].values()), sum(facts["skipped"].values()))
        shown.add_row(name, *map(number, (*cells, facts["batches"])), str(facts["ended"]))
    out().print(shown)


def _ended(total: Total) -> str:
    if total.fenced:
        return "fenced"
    if total.stopped:
        return "stopped"
    return "waiting" if total.waiting else "done"


def _facts(outcome: Outcome) -> dict[str, Any]:
    total, error = outcome.total, outcome.error
    return {
        "ended": type(error).__name__ if error else _ended(total),
        "read": total.read,
        "written": total.written,
        "rejected": dict(total.rejected),
        "skipped": dict(total.skipped),
        "batches": total.batches,
        "error": str(error) if error else None,
    }
