"""`frazil query` and `frazil history`: rows of a SQL statement, and SQL over a changelog."""

from __future__ import annotations

import json
import re
import sys
from typing import Annotated, Any

from rich.text import Text

from frazil.cli.console import out, plain, say, show_json, table
from frazil.cli.known_pipelines import with_tables
from frazil.cli.local_spark import local_job
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineName, PipelinesFile, argument, command_secrets, flag
from frazil.cli.pipelines.run import Master, Memory
from frazil.errors import InvalidInput
from frazil.lake.read.stored_tables import Lake
from frazil.lake.sql.sql_engine import SqlEngine
from frazil.project import declaration_file, environments

NULL = "NULL"


def query(
    question: Annotated[str, argument("SQL|PIPELINE", "A SELECT, or the name of a pipeline.")],
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    limit: Annotated[int | None, flag("--limit", "Most rows to print (default 100).", min=1, max=1_000_000)] = None,
    as_csv: Annotated[bool, flag("--csv", "Print CSV to stdout.")] = False,
    as_json: AsJson = False,
) -> None:
    """Query the tables with DuckDB, read-only.

    For example: frazil query "select count(*) from shop.orders"

    Names of tables: shop.orders, or the pipeline: orders.
    Dead letters: orders__dead_letters.
    PIPELINE alone prints its first 20 rows.

    Exit codes: 0 printed; 2 invalid input, or wrong SQL; 3 the catalog or its files are unavailable
    """
    from frazil.local.query.answer import answer

    if as_csv and as_json:
        raise InvalidInput("--csv and --json exclude each other", do="Give one of them")
    declared = with_tables(file, env)
    found = answer(question, declared, Lake(environments.environment(env), command_secrets().read), limit=limit)
    names = [column.name for column in found.columns]
    if as_json:
        columns = [{"name": column.name, "type": column.type} for column in found.columns]
        show_json({"columns": columns, "rows": [list(row) for row in found.rows], "has_more": found.has_more})
        return
    more = f"… more rows: --limit prints more than {len(found.rows)}"
    if as_csv:
        for cells in (names, *found.rows):
            sys.stdout.write(",".join(map(_csv, cells)) + "\n")
        if found.has_more:
            sys.stderr.write(f"{more}\n")
        return
    shown = table(*map(plain, names), right=[plain(one.name) for one in found.columns if one.is_number])
    for row in found.rows:
        shown.add_row(*(Text(NULL, style="dim") if cell is None else Text(plain(_text(cell))) for cell in row))
    out().print(shown)
    if found.has_more:
        say(more, "dim")


def _csv(value: Any) -> str:
    """Return a value of CSV: nothing for null, two quotes for an empty text. Only a terminal gets no control characters."""
    if value is None:
        return ""
    text = plain(_text(value)) if sys.stdout.isatty() else _text(value)
    return '"{}"'.format(text.replace('"', '""')) if not text or set(text) & set('",\r\n') else text


def _text(value: Any) -> str:
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


_PLACE = re.compile(r"(\d+):(\d+)")


def history(
    name: PipelineName,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    engine: Annotated[SqlEngine, flag("--engine", "SQL of which engine.")] = SqlEngine.SPARK,
    table: Annotated[str, flag("--table", "Name of the table in that engine.", "SQL")] = "",
    at: Annotated[str | None, flag("--at", "Query the state before these offsets, by partition.", "P:OFFSET,…")] = None,
    at_order: Annotated[
        list[str] | None, flag("--at-order", "Query the state at this order; repeat for each column.", "VALUE")
    ] = None,
    create: Annotated[bool, flag("--create", "Create the views in the catalog, with Spark.")] = False,
    master: Master = "local[*]",
    memory: Memory = "2g",
) -> None:
    """Print a changelog's views, or its past state, as SQL.

    For example: frazil history orders --engine trino

    TABLE__history adds valid_from and valid_to to each row.
    TABLE__state has the last row of each key.
    Run again after columns were added.

    Exit codes: 0 printed, or created; 2 invalid input, or no changelog; 3 the catalog is unavailable
    """
    if create and (engine is not SqlEngine.SPARK or table or at is not None or at_order):
        what = "--create takes no --engine, --table, --at or --at-order"
        raise InvalidInput(what, do="Leave them out, or leave out --create")
    offsets = _offsets(at) if at is not None else None
    (pipeline,) = declaration_file.chosen(with_tables(file, env), [name])
    place = environments.environment(env)
    secrets = command_secrets()
    if not pipeline.write.keeps_changes:
        what = f"the pipeline declares write={pipeline.write.kind}, whose table has no history"
        do = "Name a pipeline with write=Changelog(); a second one on the same topic keeps every change"
        raise InvalidInput(what, where=f"pipeline {pipeline.name}", do=do)
    from frazil.lake.sql import changelog_views
    from frazil.lake.sql.changelog_sql import ChangelogTable
    from frazil.lake.sql.order_values import order_values

    if create:
        changelog_views.check_catalog(place)
    identifier, catalog = pipeline.table.identifier, place.catalog.name
    stored = Lake(place, secrets.read).table(identifier)
    if stored is None:
        what = "the table does not exist yet"
        raise InvalidInput(what, where=f"table {identifier}", do=f"Run `frazil run {pipeline.name}`")
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
