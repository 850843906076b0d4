"""`frazil history`: SQL over a changelog."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from frazil.cli.local_spark import local_job
from frazil.cli.options import EnvironmentChoice, PipelineName, PipelinesFile
from frazil.cli.run import Master, Memory
from frazil.clients.secrets import Secrets
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.lake.read.stored_tables import Lake, StoredTable
from frazil.lake.sql.sql_engine import SqlEngine
from frazil.project import declaration_file, environments

_PLACE = re.compile(r"(\d+):(\d+)")


def history(
    context: typer.Context,
    name: PipelineName,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    engine: Annotated[SqlEngine, typer.Option(help="SQL of which engine.")] = SqlEngine.SPARK,
    table: Annotated[str, typer.Option("--table", metavar="SQL", help="Name of the table in that engine.")] = "",
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="P:OFFSET,…", help="Query the state before these offsets, by partition."),
    ] = None,
    at_order: Annotated[
        list[str] | None,
        typer.Option("--at-order", metavar="VALUE", help="Query the state at this order; repeat for each column."),
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create the views in the catalog, with Spark.")] = False,
    master: Master = "local[*]",
    memory: Memory = "2g",
) -> None:
    """Print a changelog's views, or its past state, as SQL.

    For example: frazil history orders --engine trino

    \b
    TABLE__history adds valid_from and valid_to to each row.
    TABLE__state has the last row of each key.
    Run again after columns were added.

    \b
    Exit codes:
      0 printed, or created
      2 invalid input, or no changelog
      3 the catalog is unavailable
    """
    if create and (engine is not SqlEngine.SPARK or table or at is not None or at_order):
        raise InvalidInput(
            "--create takes no --engine, --table, --at or --at-order", do="Leave them out, or leave out --create"
        )
    offsets = _offsets(at) if at is not None else None
    (pipeline,) = declaration_file.chosen(declaration_file.declared(file), [name])
    place = environments.environment(env)
    secrets: Secrets = context.find_root().obj
    if not pipeline.write.keeps_changes:
        raise InvalidInput(
            f"the pipeline declares write={pipeline.write.kind}, whose table has no history",
            where=f"pipeline {pipeline.name}",
            do="Name a pipeline with write=Changelog(); a second one on the same topic keeps every change",
        )
    from frazil.lake.sql import changelog_views
    from frazil.lake.sql.changelog_sql import ChangelogTable
    from frazil.lake.sql.order_values import order_values

    if create:
        changelog_views.check_catalog(place)
    identifier, catalog = pipeline.table.identifier, place.catalog.name
    stored = _stored(Lake(place, secrets.read), pipeline)
    changelog = ChangelogTable.of(identifier, stored.schema, stored.properties)
    if offsets is not None or at_order:
        known = table or changelog_views.table_name(engine, catalog, identifier)
        until = order_values(at_order, changelog.order, identifier) if at_order else ()
        sys.stdout.write(f"{changelog.state(engine, known, offsets, until)};\n")
        return
    views = changelog_views.statements(changelog, engine, catalog, identifier, table=table)
    if not create:
        sys.stdout.write("\n\n".join(f"{statement};" for statement in views.values()) + "\n")
        return
    with local_job(place, secrets, name="frazil-history", master=master, memory=memory) as job:
        changelog_views.create(job.spark, views)
    sys.stdout.write("".join(f"created {view}\n" for view in views))


def _stored(lake: Lake, pipeline: Pipeline) -> StoredTable:
    stored = lake.table(pipeline.table.identifier)
    if stored is None:
        raise InvalidInput(
            "the table does not exist yet",
            where=f"table {pipeline.table.identifier}",
            do=f"Run `frazil run {pipeline.name}`",
        )
    return stored


def _offsets(text: str) -> dict[int, int]:
    """Return partition -> offset, as `0:120,1:98`. Raises `InvalidInput`."""
    found = [_PLACE.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        what = f"{text or 'an empty text'} is no list of partitions and offsets"
        raise InvalidInput(what, where="--at", do="Write 0:120,1:98")
    offsets: dict[int, int] = {}
    for place in found:
        assert place is not None
        partition = int(place[1])
        if partition in offsets:
            raise InvalidInput(f"{text} names partition {partition} twice", where="--at", do="Name each partition once")
        offsets[partition] = int(place[2])
    return offsets
