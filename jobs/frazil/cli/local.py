"""`frazil local`: broker, registry and lake as processes of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.options import AsJson
from frazil.cli.screen import err, is_watched, out, show_json, table

app = typer.Typer(
    help="The local parts: a Kafka broker, a schema registry and a lake, for this folder.", no_args_is_help=True
)


@app.command()
def up(
    object_store: Annotated[
        bool, typer.Option("--object-store", help="Also an S3 with an Iceberg REST catalog: the environment `rest`.")
    ] = False,
    aws: Annotated[
        bool, typer.Option("--aws", help="Also an S3 with Glue, in memory only: the environment `glue`.")
    ] = False,
    compatibility: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="The level by which the registry checks new schemas, like BACKWARD."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start what does not run yet, and write the environment `local`.

    For example: frazil local up

    The data is in .frazil/ of this folder, and stays when the parts are stopped. Exit codes: 0 up,
    3 a part did not start.
    """
    from frazil.local.world import USUAL, Part
    from frazil.local.world import up as start

    parts = (*USUAL, *([Part.OBJECT_STORE] if object_store else ()), *([Part.AWS] if aws else ()))
    if is_watched():
        with err().status("starting the local parts"):
            started = start(Path.cwd(), parts=parts, compatibility=compatibility)
    else:
        started = start(Path.cwd(), parts=parts, compatibility=compatibility)
    if as_json:
        show_json({"home": str(started.home), "parts": {name: dict(at) for name, at in started.addresses.items()}})
        return
    shown = table("part", "reached by")
    for part, address in started.addresses.items():
        shown.add_row(part, "  ".join(address.values()))
    shown.add_row("environment", str(started.environment_file))
    out().print(shown)


@app.command()
def down(
    data: Annotated[bool, typer.Option("--data", help="Remove what they held too: topics, schemas, tables.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop the local parts of this folder. Fine when nothing runs.

    For example: frazil local down --data

    Exit codes: 0 nothing runs any more, 3 a part did not stop.
    """
    from frazil.local.world import down as stop

    stop(Path.cwd(), data=data)
    if as_json:
        show_json({"home": str(Path.cwd() / ".frazil"), "parts": {}})
