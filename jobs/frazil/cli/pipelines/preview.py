"""`frazil preview`: records of a topic as the rows that they would become, before any table exists."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console

from frazil.cli.console import err, is_watched, number, out, plain, say, show_json, table
from frazil.cli.known_pipelines import shared_by, with_topics
from frazil.cli.local_spark import local_job
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineName, PipelinesFile, command_secrets, flag
from frazil.cli.pipelines.check import rows_of
from frazil.cli.pipelines.run import Master, Memory
from frazil.declaration import Environment, ErrorMode, Pipeline
from frazil.declaration.catalogs import LocalCatalog
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.ingest.preview.preview import Preview


LONGEST = 60
"""Characters of a value in the table; `--json` has all."""


def preview(
    name: PipelineName,
    records: Annotated[int, flag("--records", "Number of records to decode.", "N", min=1, max=1000)] = 20,
    from_start: Annotated[bool, flag("--from-start", "Take the first records, not the newest.")] = False,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    master: Master = "local[1]",
    memory: Memory = "1g",
    as_json: AsJson = False,
) -> None:
    """Show records as the rows of their table.

    For example: frazil preview orders

    Decodes as a run does, with its reasons for rejection.
    Writes nothing: no table, no offsets, no consumer group.

    Exit codes: 0 shown; 1 an operator must decide about the table; 2; 3
    """
    of_file = declaration_file.found(file)
    (pipeline,) = declaration_file.chosen(with_topics(of_file, env), [name])
    place = environments.environment(env)
    chosen = [one for one in of_file.examples if one.pipeline in (pipeline, shared_by(pipeline, of_file.every_pattern))]
    declaration_file.refuse_misfits(chosen, place)
    rows_of(chosen)  # refuses what a run would, before Spark starts
    secrets = command_secrets()
    if is_watched():
        err().print("starting Spark", style="dim")
    with _unwritten(place) as reading, local_job(reading, secrets, master=master, memory=memory) as job:
        from frazil.clients.registry.client import Registry
        from frazil.ingest.preview.preview import preview as previewed

        registry = Registry.of(place.registry, secrets) if place.registry else None
        found = previewed(pipeline, job, registry, count=records, from_start=from_start)
    if as_json:
        columns = [{"name": name, "type": kind, "is_key": name in found.key} for name, kind in found.columns]
        names = {"pipeline": pipeline.name, "topic": pipeline.topic.name, "table": pipeline.table.identifier}
        show_json({**names, **asdict(found), "columns": columns})
    else:
        _print_preview(pipeline, found, out())


@contextmanager
def _unwritten(environment: Environment) -> Iterator[Environment]:
    """Give the environment; with a temporary catalog if its own is a file that does not exist, as a session would create it."""
    if not isinstance(environment.catalog, LocalCatalog) or Path(environment.catalog.path).exists():
        yield environment
        return
    with tempfile.TemporaryDirectory(prefix="frazil-preview-") as folder:
        catalog = replace(environment.catalog, path=f"{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
        yield replace(environment, catalog=catalog)


def _print_preview(pipeline: Pipeline, found: Preview, console: Console) -> None:
    note: dict[str, Any] = {"style": "yellow", "markup": False, "soft_wrap": True}
    what = "exists" if found.table_exists else "does not exist yet"
    say(f"topic {pipeline.topic.name}, table {pipeline.table.identifier} {what}", to=console)
    if found.waiting:
        console.print(plain(found.waiting), **note)
        return
    shown = table("column", "type", "")
    for name, kind in found.columns:
        shown.add_row(plain(name), plain(kind), "key" if name in found.key else "")
    console.print()
    console.print(shown)
    for text in found.changes:
        console.print(plain(f"A run would change the table: {text}"), **note)
    for text in found.notes:
        console.print(plain(text), **note)
    if not found.rows and not found.rejected:
        console.print("The topic has no records", **note)
    _print_rows(found, console)
    _print_rejected(pipeline, found, console)


def _print_rows(found: Preview, console: Console) -> None:
    if not found.rows:
        return
    numbers, has_operation = ("partition", "offset"), any(row.operation for row in found.rows)
    names = [name for name, _ in found.columns]
    shown = table(*numbers, *(["operation"] if has_operation else []), *map(plain, names), right=numbers)
    for row in found.rows:
        values = ["(from the row)" if name in row.left_out else _text(row.values.get(name)) for name in names]
        shown.add_row(number(row.partition), number(row.offset), *([row.operation] if has_operation else []), *values)
    console.print()
    console.print(shown)


def _print_rejected(pipeline: Pipeline, found: Preview, console: Console) -> None:
    if not found.rejected:
        return
    numbers = ("partition", "offset")
    shown = table(*numbers, "reason", "message", right=numbers)
    for one in found.rejected:
        shown.add_row(
            number(one.partition),
            number(one.offset),
            one.reason,
            one.message + (" (skipped)" if one.is_skipped and one.reason != "where" else ""),
        )
    console.print()
    console.print(shown)
    effect = {
        ErrorMode.DEAD_LETTER: f"A run keeps rejected records in {pipeline.table.dead_letters}",
        ErrorMode.SKIP: "A run skips rejected records, as on_error=skip is declared",
        ErrorMode.SUSPEND: "A run stops at rejected records, as on_error is suspend",
    }
    if any(not one.is_skipped for one in found.rejected):
        say(effect[pipeline.on_error], "yellow", to=console)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else "null" if value is None else json.dumps(value, ensure_ascii=False)
    shown = plain(text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
