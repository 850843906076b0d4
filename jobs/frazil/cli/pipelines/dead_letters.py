"""`frazil dead-letters`: list and show rejected records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from frazil.cli.console import note, number, out, plain, say, show_json, table
from frazil.cli.known_pipelines import with_tables
from frazil.cli.options import (
    AsJson,
    EnvironmentChoice,
    PipelineName,
    PipelinesFile,
    argument,
    command_secrets,
    flag,
)
from frazil.dead_letters.shown_bytes import header_text, key_text
from frazil.declaration import Pipeline
from frazil.declaration.checks.constraints import INT_MAX, LONG_MAX, shown
from frazil.errors import InvalidInput
from frazil.project import declaration_file, environments
from frazil.schemas.reasons import Reason
from frazil.status.looking import in_environment

if TYPE_CHECKING:
    from frazil.dead_letters.listing import Listing
    from frazil.dead_letters.show import DeadLetterView, Part
    from frazil.lake.read.stored_tables import Lake


Since = Annotated[str | None, typer.Option(metavar="TIME", help="Earliest time of rejection (UTC), like 2026-01-31.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Time of rejection (UTC) to stop before.")]


def list_(
    name: PipelineName,
    reason: Annotated[
        str | None, flag("--reason", "Reason to list.", "CODE", autocompletion=lambda: list(Reason))
    ] = None,
    partition: Annotated[int | None, flag("--partition", "Partition to list.", "N", min=0, max=INT_MAX)] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, flag("--limit", "Number to list; all are counted.", "N", min=0)] = 20,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    as_json: AsJson = False,
) -> None:
    """List open dead letters, newest first, and count them by reason.

    For example: frazil dead-letters list orders --reason undecodable

    Exit codes: 0 listed, also if there are none; 2; 3 the catalog is unavailable
    """
    from frazil.dead_letters.listing import listing
    from frazil.lake.read.scan import Where
    from frazil.lake.read.stored_tables import Lake

    (pipeline,) = declaration_file.chosen(with_tables(file, env), [name])
    lake = Lake(environments.environment(env), command_secrets().read)
    conditions = [
        Where(column="reason", equal=reason_of(reason)),
        Where(column="partition", equal=partition),
        Where(column="rejected_at", at_least=time_of("--since", since), below=time_of("--until", until)),
    ]
    found = listing(pipeline, lake, conditions, limit=limit)
    stop = _stop(pipeline, lake, env)
    if as_json:
        show_json({**found.document(), "stopped": stop})
    else:
        _print_list(found, out())
        _print_stop(stop)


def show(
    name: PipelineName,
    place: Annotated[str, argument("PARTITION:OFFSET", "The record's place, as listed.")],
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    as_json: AsJson = False,
) -> None:
    """Show a dead letter's bytes, and where decoding fails.

    For example: frazil dead-letters show orders 0:4711

    Exit codes: 0 shown; 2 invalid input, or no such dead letter; 3 the catalog is unavailable
    """
    from frazil.clients.registry.client import Registry
    from frazil.dead_letters.show import show as shown
    from frazil.lake.read.stored_tables import Lake

    partition, offset = place_of(place)
    (pipeline,) = declaration_file.chosen(with_tables(file, env), [name])
    where = environments.environment(env)
    secrets = command_secrets()
    registry = Registry.of(where.registry, secrets) if where.registry else None
    lake = Lake(where, secrets.read)
    found = shown(pipeline, lake, partition=partition, offset=offset, schemas=registry)
    stop = _stop(pipeline, lake, env)
    if found is None:
        raise InvalidInput(
            f"there is no dead letter of partition {partition}, offset {offset}",
            where=f"table {pipeline.table.dead_letters}",
            do=stop or f"Run `frazil dead-letters list {name}` to see the places",
        )
    if as_json:
        show_json({**found.document(), "stopped": stop})
    else:
        _print_stop(stop)
        for line in _lines(found):
            say(line)


def _stop(pipeline: Pipeline, lake: Lake, env: str) -> str | None:
    """Return why the pipeline is stopped; None if it is not. The record of a stop is in Kafka, and no dead letter."""
    from frazil.status.pipeline_status import noted_stop

    table = lake.table(pipeline.table.identifier)
    if table is None or not table.layout.is_ours:
        return None
    stop = noted_stop(table, pipeline.name, table.newest(pipeline.name))
    return None if stop is None else f"The pipeline is stopped. {in_environment(stop.message, env)}"


def _print_stop(stop: str | None) -> None:
    if stop is not None:
        note(stop, "red")


def _print_list(found: Listing, console: Console) -> None:
    closed = ", ".join(f"{number(count)} {outcome}" for outcome, count in found.closed.items())
    if not found.total:
        what = f"no open dead letters; {closed}" if closed else "no dead letters"
        say(f"{found.table}: {what}", to=console)
        return
    counts = table("reason", "records", right=("records",))
    for reason, count in found.counts.items():
        counts.add_row(reason, number(count))
    console.print(counts)
    if not found.letters:
        return
    drop = ("schema", "key", "rejected (UTC)", "message")
    shown = table("place", "rejected (UTC)", "reason", "schema", "key", "message", right=("schema",), drop=drop)
    for letter in found.letters:
        at = f"{letter.rejected_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if letter.rejected_at else "–"
        schema = "–" if letter.schema_id is None else str(letter.schema_id)
        key = key_text(letter.key)
        place = f"{letter.partition}:{letter.offset}"
        shown.add_row(place, at, letter.reason, schema, key, plain(letter.message or ""))
    console.print()
    console.print(shown)
    if found.total > len(found.letters):
        say(f"… and {number(found.total - len(found.letters))} more", "dim", to=console)
    if closed:
        say(f"not open any more: {closed}", "dim", to=console)


def _lines(found: DeadLetterView) -> Iterator[str]:
    letter = found.letter
    yield f"{found.topic}, partition {letter.partition}, offset {letter.offset}"
    if found.earlier:
        yield f"{found.earlier} earlier ones have this place, of a log before: query {found.table} to read them"
    yield f"{letter.reason}: {letter.message or ''}"
    if letter.outcome is not None or letter.attempts:
        why = f": {letter.outcome_reason}" if letter.outcome_reason else ""
        tried = f"replayed {number(letter.attempts)} times" if letter.attempts else "never replayed"
        yield f"{letter.outcome or 'open'}{why}; {tried}"
    is_odd = letter.timestamp is None and letter.timestamp_ms is not None
    time = f"{letter.timestamp_ms} ms after 1970" if is_odd else letter.timestamp
    yield f"rejected {letter.rejected_at}, by run {letter.run}; the record's time is {time}"
    for name, value in found.headers:
        yield f"header {name}: {header_text(value)}"
    if found.masked is not None:
        yield f"decoded, with masks: {found.masked}"
    if found.is_masked:
        yield "no key, value and headers are kept, as the pipeline masks values"
        return
    yield from _part("key", found.key)
    yield from _part("value", found.value)


def _part(name: str, part: Part) -> Iterator[str]:
    yield f"{name}, {len(part.data)} bytes" if part.data is not None else f"no {name}"
    if part.writer:
        subjects = f" of {', '.join(part.writer.subjects)}" if part.writer.subjects else ""
        problem = f": {part.writer.problem}" if part.writer.problem else ""
        yield f"schema {part.writer.id if part.writer.id is not None else '–'}{subjects}{problem}"
    if part.attempt:
        at = f" at byte {part.body_at + part.attempt.at}" if part.attempt.at is not None else ""
        path = f", field {part.attempt.path}" if part.attempt.path else ""
        value = f": {part.attempt.value}" if part.attempt.value else ""
        yield f"decoded once more: {part.attempt.what}{at}{path}{value}"
        if part.attempt.decoded:
            yield part.attempt.decoded
    yield from part.view()


def reason_of(text: str | None) -> str | None:
    """Return the reason that was named. Raises `InvalidInput` with the nearest name for one that does not exist."""
    if text is None or text in list(Reason):
        return text
    near = get_close_matches(text, list(Reason), n=1)
    guess = f"Did you mean {near[0]}? " if near else ""
    raise InvalidInput(f"there is no reason {text!r}", where="--reason", do=f"{guess}Name one of {', '.join(Reason)}")


def time_of(option: str, text: str | None) -> datetime | None:
    """Return a time in UTC, also if it has no zone. Raises `InvalidInput` for a text that is none."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        do = "Write it like 2026-01-31 or 2026-01-31T12:30:00"
        raise InvalidInput(f"{text!r} is not a time", where=option, do=do) from None


def place_of(text: str) -> tuple[int, int]:
    """Return the partition and the offset of a text like `0:4711`. Raises `InvalidInput` for another one."""
    match = re.fullmatch("([0-9]{1,10}):([0-9]{1,19})", text, re.ASCII)
    partition, offset = (int(match[1]), int(match[2])) if match else (-1, -1)
    if match is None or partition > INT_MAX or offset > LONG_MAX:
        raise InvalidInput(f"{shown(text)} is no place of a record", do="Write PARTITION:OFFSET, like 0:4711")
    return partition, offset
