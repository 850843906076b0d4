"""`frazil dead-letters replay` and `discard`: land rejected records again, or give them up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from frazil.cli.console import is_watched, note, number, out, say, show_json, table
from frazil.cli.known_pipelines import with_tables
from frazil.cli.local_spark import local_job
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineName, PipelinesFile, command_secrets, flag
from frazil.cli.pipelines.dead_letters import Since, Until, reason_of, time_of
from frazil.cli.pipelines.run import Master, Memory
from frazil.declaration.checks.constraints import INT_MAX, LONG_MAX, shown
from frazil.errors import InvalidInput
from frazil.exit_codes import Exit
from frazil.project import declaration_file, environments
from frazil.schemas.reasons import Reason

if TYPE_CHECKING:
    from frazil.replay.open_letters import Wanted
    from frazil.replay.replay import Replayed

JOB_MINUTES = 720
"""The longest time of a job run that replays."""

ReasonCode = Annotated[
    str | None, flag("--reason", "Reason they were rejected for.", "CODE", autocompletion=lambda: list(Reason))
]
SchemaId = Annotated[int | None, flag("--schema", "Schema id of their frame.", "ID", min=0, max=INT_MAX)]
Offsets = Annotated[str | None, flag("--offsets", "Partition, or its first and last offset.", "P|P:N|P:FIRST-LAST")]


def replay(
    name: PipelineName,
    reason: ReasonCode = None,
    schema: SchemaId = None,
    offsets: Offsets = None,
    since: Since = None,
    until: Until = None,
    dry_run: Annotated[bool, flag("--dry-run", "Print what would land, and change nothing.")] = False,
    as_job: Annotated[bool, flag("--as-job", "Start a job run of the deployment, and end.")] = False,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    as_json: AsJson = False,
) -> None:
    """Land open dead letters, decoded by today's schemas and declaration.

    For example: frazil dead-letters replay orders --reason unknown_schema

    Rows keep partition and offset of their record.
    Needs no record in Kafka: the dead-letter table has the bytes.
    A pipeline may run meanwhile.
    In an upsert table, only the last record of a key changes the row.

    Exit codes: 0 replayed, also if some stay open; 1 an operator must decide; 2; 3; 6 other commits came first each
    time; 130 interrupted
    """
    wanted = _wanted(reason, schema, offsets, since, until)
    if as_job:
        if dry_run:
            raise InvalidInput("--as-job and --dry-run exclude each other", do="Give one of them")
        _start(name, env, wanted, as_json=as_json)
        return
    (pipeline,) = declaration_file.chosen(with_tables(file, env), [name])
    secrets, place = command_secrets(), environments.environment(env)

    def progress(replayed: Replayed) -> None:
        if is_watched() and replayed.left:
            note(f"{number(replayed.tried)} of {number(replayed.tried + replayed.left)} dead letters", "dim")

    with local_job(place, secrets, master=master, memory=memory) as job:
        from frazil.clients.registry.client import Registry
        from frazil.replay.replay import replay as replayed_by

        registry = Registry.of(place.registry, secrets) if place.registry else None
        found = replayed_by(pipeline, job, registry, wanted, is_dry=dry_run, progress=progress)
        is_stopped = job.stopping()
    if as_json:
        show_json({**found.document(), "dry_run": dry_run})
    else:
        _print(found, is_dry=dry_run)
    if is_stopped:
        raise typer.Exit(Exit.INTERRUPTED)


def _start(name: str, env: str, wanted: Wanted, *, as_json: bool) -> None:
    """Start a job run that replays the dead letters of a deployed pipeline."""
    import uuid

    from frazil.cli.jobs import aws
    from frazil.cli.jobs.reconcile import reconciler
    from frazil.replay.replay_job import as_text
    from frazil.rollout.group_jobs import job_of
    from frazil.rollout.one_off_run import one_off

    place, secrets = environments.environment(env), command_secrets()
    at_work = reconciler(place, secrets)
    job = job_of(aws.artifact_store(place, secrets), [name])
    arguments = ("--pipeline", name, "--replay", as_text(wanted))
    request = one_off(
        at_work.request(at_work.desired(job)), name=f"frazil-replay-{name}", arguments=arguments, minutes=JOB_MINUTES
    )
    run = at_work.emr.start(request, token=uuid.uuid4().hex)
    if as_json:
        show_json({"pipeline": name, "job": job, "run": run, "conditions": as_text(wanted)})
    else:
        say(f"{name}: job run {run} replays its dead letters; `frazil jobs logs {env} {run}` prints the results")


def discard(
    name: PipelineName,
    why: Annotated[str, flag("--why", "Reason of the discard; the dead letters keep it.", "TEXT")],
    reason: ReasonCode = None,
    schema: SchemaId = None,
    offsets: Offsets = None,
    since: Since = None,
    until: Until = None,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[*]",
    memory: Memory = "2g",
    as_json: AsJson = False,
) -> None:
    """Close open dead letters that shall never land.

    For example: frazil dead-letters discard orders --offsets 0:4711 --why "a test record, ticket 4711"

    They stay in their table, with the reason.
    Without conditions, all open ones are discarded.

    Exit codes: 0 discarded, also if there were none; 1 an operator must decide; 2; 3; 6 other commits came first each
    time
    """
    wanted = _wanted(reason, schema, offsets, since, until)
    (pipeline,) = declaration_file.chosen(with_tables(file, env), [name])
    secrets = command_secrets()
    with local_job(environments.environment(env), secrets, master=master, memory=memory) as job:
        from frazil.replay.discard import discard as discarded_by

        count = discarded_by(pipeline, job, wanted, secrets.redactor.redact(why))
    if as_json:
        show_json({"pipeline": pipeline.name, "discarded": count})
    else:
        say(f"{pipeline.name}: {number(count)} dead letters are discarded")


def _wanted(
    reason: str | None, schema: int | None, offsets: str | None, since: str | None, until: str | None
) -> Wanted:
    from frazil.replay.open_letters import Wanted

    partition, between = _offsets(offsets)
    return Wanted(
        reason=reason_of(reason),
        schema_id=schema,
        partition=partition,
        offsets=between,
        since=time_of("--since", since),
        until=time_of("--until", until),
    )


def _offsets(text: str | None) -> tuple[int | None, tuple[int, int] | None]:
    """Return the partition, and the first and the last offset, as far as they are given. Raises `InvalidInput`."""
    if text is None:
        return None, None
    match = re.fullmatch("([0-9]{1,10})(?::([0-9]{1,19})(?:-([0-9]{1,19}))?)?", text, re.ASCII)
    if match is not None:
        partition, first = int(match[1]), int(match[2] or 0)
        last = int(match[3]) if match[3] else first
        if partition <= INT_MAX and first <= last <= LONG_MAX:
            return partition, (first, last) if match[2] else None
    do = "Write a partition like 0, a place like 0:4711, or a range like 0:4711-4720"
    raise InvalidInput(f"{shown(text)} is not a range of offsets", where="--offsets", do=do)


def _print(found: Replayed, *, is_dry: bool) -> None:
    if not found.tried:
        say(f"{found.pipeline}: no open dead letters")
        return
    for outcome, count in sorted(found.outcomes.items()):
        would = "would land" if outcome == "recovered" else f"would be {outcome}"  # an order decides when it lands
        say(f"{number(count)} {would if is_dry else outcome}")
    if found.failed:
        shown_ = table("rejected for", "still rejected for", "records", right=("records",))
        for (before, now), count in sorted(found.failed.items()):
            shown_.add_row(before, now, number(count))
        out().print(shown_)
    if found.left:
        say(f"{number(found.left)} not tried")
