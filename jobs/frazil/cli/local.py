"""`frazil local`: broker, registry and lake as processes on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from frazil.cli.console import err, is_watched, out, show_json, table
from frazil.cli.options import AsJson, LocalEnvironment, check_local
from frazil.errors import InvalidInput
from frazil.project.project_file import project_folder, state_folder

ENVIRONMENTS = ("local",)  # `rest` is on the same services
"""The environments that `frazil local up` writes."""


def up(
    object_store: Annotated[
        bool, typer.Option("--object-store", help="Add the environment `rest`: S3 and an Iceberg REST catalog.")
    ] = False,
    postgres: Annotated[
        bool, typer.Option("--postgres", help="Add PostgreSQL, and a Connect worker with Debezium.")
    ] = False,
    compatibility: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="Compatibility level of the registry, like BACKWARD."),
    ] = None,
    option: LocalEnvironment = None,
    as_json: AsJson = False,
) -> None:
    """Start the local services, and write the environment `local`.

    For example: frazil local up

    \b
    Running services stay as they are.
    Each start of this folder uses the same ports.
    Data is in .frazil/, and survives a stop.
    With --postgres, prints the database's URI and the worker's URL.

    \b
    Exit codes:
      0 running
      3 a service did not start
    """
    from frazil.local.jar_purposes import fetch_jars_of
    from frazil.local.services import CHANGE_DATA, USUAL, Part
    from frazil.local.services import up as start

    check_local(option, ENVIRONMENTS)
    parts = (*USUAL, *([Part.OBJECT_STORE] if object_store else ()))
    parts += CHANGE_DATA if postgres else ()
    fetch_jars_of(parts)
    with err().status("starting the local services") if is_watched() else nullcontext():
        started = start(project_folder(), parts=parts, compatibility=compatibility)
    for one in started.moved:
        err().print(str(one), style="yellow", markup=False, soft_wrap=True)
    if as_json:
        addresses = {name: dict(at) for name, at in started.addresses.items()}
        moved = {"moved": [asdict(one) for one in started.moved]} if started.moved else {}
        show_json({"home": str(started.home), "parts": addresses, **moved})
        return
    shown = _addresses(started.addresses)
    shown.add_row("environment", str(started.environment_file))
    out().print(shown)


def status(option: LocalEnvironment = None, as_json: AsJson = False) -> None:
    """Show the local services that run, and their addresses.

    For example: frazil local status

    \b
    Exit codes:
      0 shown, also if nothing runs
    """
    from frazil.local.services import running

    check_local(option, ENVIRONMENTS)
    found = running(project_folder())
    if as_json:
        show_json({"home": str(found.home), "parts": {name: dict(at) for name, at in found.addresses.items()}})
    elif found.addresses:
        out().print(_addresses(found.addresses))
    else:
        out().print("no local service of this folder runs; start them: frazil local up", markup=False)


def _addresses(parts: Mapping[str, Mapping[str, str]]) -> Table:
    shown = table("service", "address")
    for part, address in parts.items():
        shown.add_row(part, "  ".join(address.values()))
    return shown


def jars(
    out_folder: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Copy the jars into this folder, for FRAZIL_JARS.")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Leave out the jars of the local services.")] = False,
    option: LocalEnvironment = None,
    as_json: AsJson = False,
) -> None:
    """Fetch the jars of Spark and of the local services.

    For example: frazil local jars --out jars

    \b
    Every file is compared with its locked hash.
    FRAZIL_MAVEN_MIRROR names a Maven mirror.
    FRAZIL_JARS names a folder to use instead of a network.

    \b
    Exit codes:
      0 fetched, all hashes equal
      1 a jar has another hash
      3 a jar is not available
    """
    from frazil.local.toolchain.jars import copied, purposes
    from frazil.local.toolchain.jars import jars as fetched

    check_local(option, ENVIRONMENTS)
    wanted = ("spark",) if spark else purposes()
    files = {purpose: fetched(purpose, recheck=True) for purpose in wanted}
    if out_folder is not None:
        try:
            files = {purpose: copied(of_purpose, out_folder) for purpose, of_purpose in files.items()}
        except OSError as error:
            raise InvalidInput.unwritable(out_folder, error) from error
    if as_json:
        show_json({"jars": {purpose: [str(file) for file in listed] for purpose, listed in files.items()}})
        return
    shown = table("jars of", "files", "MB", "folder", right=("files", "MB"))
    for purpose, listed in files.items():
        size = sum(file.stat().st_size for file in listed) / 1e6
        shown.add_row(purpose, str(len(listed)), f"{size:.1f}", str(out_folder or listed[0].parent.parent))
    out().print(shown)


def down(
    data: Annotated[bool, typer.Option("--data", help="Delete their data too: topics, schemas, tables.")] = False,
    option: LocalEnvironment = None,
    as_json: AsJson = False,
) -> None:
    """Stop the local services, and their job runs.

    For example: frazil local down --data

    \b
    Exit codes:
      0 nothing runs
      3 a service did not stop
    """
    from frazil.local.services import down as stop
    from frazil.local.services import running

    check_local(option, ENVIRONMENTS)
    stopped = [str(part) for part in running(project_folder()).addresses]
    stop(project_folder(), data=data)
    if as_json:
        show_json({"home": str(state_folder().resolve()), "parts": {}, "stopped": stopped})
        return
    kept = "data deleted" if data else f"data kept in {state_folder()}"
    out().print(f"stopped {', '.join(stopped)}; {kept}" if stopped else f"nothing ran; {kept}", markup=False)
