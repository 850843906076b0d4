"""`frazil query`: print the rows of a SQL statement over the tables."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.text import Text

from frazil.cli.console import out, plain, show_json, table
from frazil.cli.options import AsJson, EnvironmentChoice, PipelinesFile
from frazil.errors import InvalidInput
from frazil.project import declaration_file, environments

NULL = "NULL"


def query(
    context: typer.Context,
    question: Annotated[str, typer.Argument(metavar="SQL|PIPELINE", help="A SELECT, or the name of a pipeline.")],
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, max=1_000_000, help="Most rows to print (default 100).")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV to stdout.")] = False,
    as_json: AsJson = False,
) -> None:
    """Query the tables with DuckDB, read-only.

    For example: frazil query "select count(*) from shop.orders"

    \b
    Names of tables: shop.orders, or the pipeline: orders.
    Dead letters: orders__dead_letters.
    PIPELINE alone prints its first 20 rows.

    \b
    Exit codes:
      0 printed
      2 invalid input, or wrong SQL
      3 the catalog or its files are unavailable
    """
    from frazil.lake.read.stored_tables import Lake
    from frazil.local.query.answer import answer

    if as_csv and as_json:
        raise InvalidInput("--csv and --json exclude each other", do="Give one of them")
    declared = declaration_file.declared(file)
    found = answer(question, declared, Lake(environments.environment(env), context.find_root().obj.read), limit=limit)
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
        shown.add_row(*map(_cell, row))
    out().print(shown)
    if found.has_more:
        out().print(more, style="dim", markup=False)


def _cell(value: Any) -> Text:
    """Return a value for people. A null is dim, so that it is not the text NULL."""
    return Text(NULL, style="dim") if value is None else Text(plain(_text(value)))


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
