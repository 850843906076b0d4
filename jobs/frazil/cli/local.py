"""`frazil local`: broker, registry and lake as processes of this machine."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from frazil.cli.console import err, is_watched, out, show_json, table
from frazil.cli.options import AsJson

REGION = "us-east-1"
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
    cloud: Annotated[
        bool,
        typer.Option(
            "--cloud", help="Also all of AWS that a deployment needs, where LocalStack would be, and job runs."
        ),
    ] = False,
    compatibility: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="The level by which the registry checks new schemas, like BACKWARD."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start what does not run yet, and write the environment `local`.

    For example: frazil local up

    The data is in .frazil/ of this folder, and stays when the parts are stopped; AWS's is in memory, and goes. With --cloud it
    tells what a shell has to export. Exit codes: 0 up, 3 a part did not start.
    """
    from frazil.local.aws.endpoint import edge_port, exports
    from frazil.local.services import USUAL, Part
    from frazil.local.services import up as start
    from frazil.local.terraform import stand_in_settings

    parts = (*USUAL, *([Part.OBJECT_STORE] if object_store else ()), *([Part.AWS] if aws or cloud else ()))
    port = edge_port() if cloud else None
    with err().status("starting the local parts") if is_watched() else nullcontext():
        started = start(Path.cwd(), parts=parts, compatibility=compatibility, aws_port=port)
    exported: dict[str, str] = {}
    if cloud:
        exported = {**exports(started.address(Part.AWS)["endpoint"], region=REGION), **stand_in_settings(started)}
    if as_json:
        addresses = {name: dict(at) for name, at in started.addresses.items()}
        show_json({"home": str(started.home), "parts": addresses, **({"exports": dict(exported)} if cloud else {})})
        return
    shown = _addresses(started.addresses)
    shown.add_row("environment", str(started.environment_file))
    out().print(shown)
    for name, value in exported.items():
        out().print(f"export {name}={value}", markup=False, soft_wrap=True)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show which local parts of this folder run, and their addresses.

    For example: frazil local status

    Exit code 0, also when nothing runs.
    """
    from frazil.local.services import running

    found = running(Path.cwd())
    if as_json:
        show_json({"home": str(found.home), "parts": {name: dict(at) for name, at in found.addresses.items()}})
    elif found.addresses:
        out().print(_addresses(found.addresses))
    else:
        out().print("no local part of this folder runs; start them: frazil local up", markup=False)


def _addresses(parts: Mapping[str, Mapping[str, str]]) -> Table:
    shown = table("part", "reached by")
    for part, address in parts.items():
        shown.add_row(part, "  ".join(address.values()))
    return shown


@app.command()
def fire(
    schedule: Annotated[str, typer.Argument(metavar="SCHEDULE", help="A schedule's name, or GROUP/NAME.")],
    region: Annotated[
        str, typer.Option("--region", envvar="AWS_DEFAULT_REGION", help="The schedule's region.")
    ] = REGION,
    execution: Annotated[
        str | None, typer.Option("--execution", metavar="ID", help="The same execution again: it is the same run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Execute a schedule of the local cloud now. Nothing else does: the local cloud has no clock.

    For example: frazil local fire frazil-local-ingest --region eu-central-1

    Exit codes: 0 a run is started; 2 there is no such schedule, or it is disabled; 3 the local cloud is not up, or refuses.
    """
    from frazil.local.aws.scheduler import fire as fired
    from frazil.local.services import Part, running

    endpoint = running(Path.cwd()).address(Part.AWS)["endpoint"]
    told = fired(endpoint, schedule, region=region, execution=execution or str(uuid.uuid4()))
    if as_json:
        show_json({**asdict(told)})
    else:
        out().print(f"{told.schedule}: run {told.run}, execution {told.execution}", markup=False)


@app.command()
def down(
    data: Annotated[bool, typer.Option("--data", help="Remove what they held too: topics, schemas, tables.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop the local parts of this folder, job runs included. Fine when nothing runs.

    For example: frazil local down --data

    Exit codes: 0 nothing runs any more, 3 a part did not stop.
    """
    from frazil.local.services import down as stop

    stop(Path.cwd(), data=data)
    if as_json:
        show_json({"home": str(Path.cwd() / ".frazil"), "parts": {}})
