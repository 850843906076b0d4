"""`frazil trace`: from a row to its record in Kafka, and from an offset to the row of its record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli.console import note, number, out, plain, say, show_json, table
from frazil.cli.known_pipelines import with_tables
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineName, PipelinesFile, command_secrets, flag
from frazil.cli.pipelines.dead_letters import place_of
from frazil.errors import InvalidInput
from frazil.exit_codes import Exit
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.trace.trace import Trace

SHOWN = 60
"""Characters of a value that are shown."""


def trace(
    name: PipelineName,
    where: Annotated[str | None, flag("--where", "Condition on the table's columns.", "CONDITION")] = None,
    offset: Annotated[str | None, flag("--offset", "Place of a record.", "PARTITION:OFFSET")] = None,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    as_json: AsJson = False,
) -> None:
    """Lead from a row to its Kafka record, or from an offset to its row.

    For example: frazil trace orders --where "order_id = 7"

    The record is read again, decoded by another library and compared with the row.
    With --offset: is the record a row, a dead letter, filtered, or superseded?
    Needs no JVM.

    Exit codes: 0 traced; 1 a row differs from its record; 2 invalid input, or no row; 3
    """
    if (where is None) == (offset is None):
        raise InvalidInput("give one of --where and --offset", do='Like --where "order_id = 7" or --offset 0:4711')
    from frazil.clients.kafka import Kafka
    from frazil.clients.registry.client import Registry
    from frazil.lake.read.stored_tables import Lake
    from frazil.trace.trace import Tracer

    (pipeline,) = declaration_file.chosen(with_tables(file, env), [name])
    place, secrets = environments.environment(env), command_secrets()
    registry = Registry.of(place.registry, secrets) if place.registry else None
    tracer = Tracer(pipeline, Lake(place, secrets.read), Kafka(place.kafka, secrets), registry)
    if offset is not None:
        found, count = [tracer.of_offset(*place_of(offset))], 1
    else:
        found, count = tracer.of_rows(where or "")
    if not found:
        raise InvalidInput(
            "no row meets the condition", where=f"table {pipeline.table.identifier}", do="Try another one"
        )
    if as_json:
        show_json({"pipeline": pipeline.name, "rows": count, "traces": [_document(one) for one in found]})
    else:
        for one in found:
            _print(one)
        if count > len(found):
            note(f"{number(count)} rows meet the condition; {number(len(found))} are traced")
    if any(one.differs for one in found):
        raise typer.Exit(Exit.DECISION_REQUIRED)


def _document(found: Trace) -> dict[str, Any]:
    def text(value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): text(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [text(one) for one in value]
        return value if isinstance(value, str | int | float | bool | None) else str(value)

    made: dict[str, Any] = text(found.document())
    return made


def _print(found: Trace) -> None:
    for line in _lines(found):
        say(line)
    if found.compared:
        shown = table("column", "in the table", "in the record", "")
        for one in found.compared:
            shown.add_row(plain(one.column), _short(one.in_table), _short(one.in_record), one.verdict.value)
        out().print(shown)


def _lines(found: Trace) -> Iterator[str]:
    yield f"{found.topic}, partition {found.partition}, offset {found.offset}: {found.fate.value.replace('_', ' ')}"
    if found.schema_id is not None:
        yield f"schema {found.schema_id}"
    if found.snapshot_id is not None and found.committed_at is not None:
        yield f"snapshot {found.snapshot_id}, committed {found.committed_at:%Y-%m-%d %H:%M:%S} UTC"
    yield from map(plain, found.notes)


def _short(value: Any) -> str:
    text = plain(str(value)) if value is not None else "–"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
