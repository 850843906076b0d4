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
from frazil.errors import InvalidInput
from frazil.lake.changelog_sql import SqlEngine
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
        str, typer.Option("--at", metavar="P:OFFSET,…", help="Query the state before these offsets, by partition.")
    ] = "",
    create: Annotated[bool, typer.Option("--create", help="Create the views in the catalog, with Spark.")] = False,
    master: Master = "local[*]",
    memory: Memory = "2g",
) -> None:
    """Print the SQL of a changelog's views: intervals and state.

    For example: frazil history orders --engine trino

    \b
    TABLE__history adds valid_from and valid_to to each row.
    TABLE__state has the last row of each key.
    Run again after columns were added.

    \b
    Exit codes:
      0 printed, or created
      2 invalid input, or a table of another write mode
      3 the catalog is unavailable
    """
    from frazil.lake import changelog_views
    from frazil.lake.changelog_sql import ChangelogTable
    from frazil.lake.read.stored_tables import Lake

    if create and (engine is not SqlEngine.SPARK or table or at):
        raise InvalidInput("--create takes no --engine, --table or --at", do="Leave them out, or leave out --create")
    (pipeline,) = declaration_file.chosen(declaration_file.declared(file), [name])
    place = environments.environment(env)
    if create:
        changelog_views.check_catalog(place)
    secrets: Secrets = context.find_root().obj
    identifier, catalog = pipeline.table.identifier, place.catalog.name
    stored = Lake(place, secrets.read).table(identifier)
    if stored is None:
        raise InvalidInput("the table does not exist yet", where=f"table {identifier}", do=f"Run `frazil run {name}`")
    changelog = ChangelogTable.of(identifier, stored.schema, stored.properties)
    if at:
        known = table or changelog_views.table_name(engine, catalog, identifier)
        sys.stdout.write(f"{changelog.state(engine, known, _offsets(at))};\n")
        return
    views = changelog_views.statements(changelog, engine, catalog, identifier, table=table)
    if not create:
        sys.stdout.write("\n\n".join(f"{statement};" for statement in views.values()) + "\n")
        return
    with local_job(place, secrets, name="frazil-history", master=master, memory=memory) as job:
        changelog_views.create(job.spark, views)
    sys.stdout.write("".join(f"created {view}\n" for view in views))


def _offsets(text: str) -> dict[int, int]:
    """Return partition -> offset, as `0:120,1:98`. Raises `InvalidInput`."""
    found = [_PLACE.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        raise InvalidInput(f"{text} is no list of partitions and offsets", where="--at", do="Write 0:120,1:98")
    return {int(place[1]): int(place[2]) for place in found if place is not None}
