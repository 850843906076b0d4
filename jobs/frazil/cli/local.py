"""`frazil local`: broker, registry and lake as processes on this machine, and records for them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from rich.table import Table

from frazil.cli.console import err, is_watched, note, number, out, say, show_json, table
from frazil.cli.options import AsJson, PipelinesFile, argument, declared_if_any, flag
from frazil.errors import InvalidInput
from frazil.project import declaration_file
from frazil.project.project_file import project_folder, state_folder


def up(
    object_store: Annotated[
        bool, flag("--object-store", "Add the environment `rest`: S3 and an Iceberg REST catalog.")
    ] = False,
    postgres: Annotated[bool, flag("--postgres", "Add PostgreSQL, and a Connect worker with Debezium.")] = False,
    compatibility: Annotated[
        str | None, flag("--compatibility", "Compatibility level of the registry, like BACKWARD.", "LEVEL")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the local services, and write the environment `local`.

    For example: frazil local up

    Running services stay as they are.
    Each start of this folder uses the same ports.
    Data is in .frazil/, and survives a stop.
    With --postgres, prints the database's URI and the worker's URL.

    Exit codes: 0 running; 3 a service did not start
    """
    from frazil.local.services import CHANGE_DATA, USUAL, Part, fetch_jars_of
    from frazil.local.services import up as start

    parts = (*USUAL, *([Part.OBJECT_STORE] if object_store else ()))
    parts += CHANGE_DATA if postgres else ()
    fetch_jars_of(parts)
    with err().status("starting the local services") if is_watched() else nullcontext():
        started = start(project_folder(), parts=parts, compatibility=compatibility)
    for one in started.moved:
        note(str(one), "yellow")
    if as_json:
        addresses = {name: dict(at) for name, at in started.addresses.items()}
        moved = {"moved": [asdict(one) for one in started.moved]} if started.moved else {}
        show_json({"home": str(started.home), "parts": addresses, **moved})
        return
    shown = _addresses(started.addresses)
    shown.add_row("environment", str(started.environment_file))
    out().print(shown)


def status(as_json: AsJson = False) -> None:
    """Show the local services that run, and their addresses.

    For example: frazil local status

    Exit codes: 0 shown, also if nothing runs
    """
    from frazil.local.services import running

    found = running(project_folder())
    if as_json:
        show_json({"home": str(found.home), "parts": {name: dict(at) for name, at in found.addresses.items()}})
    elif found.addresses:
        out().print(_addresses(found.addresses))
    else:
        say("no local service of this folder runs; start them: frazil local up")


def _addresses(parts: Mapping[str, Mapping[str, str]]) -> Table:
    shown = table("service", "address")
    for part, address in parts.items():
        shown.add_row(part, "  ".join(address.values()))
    return shown


def jars(
    out_folder: Annotated[
        Path | None, flag("--out", "Copy the jars into this folder, for FRAZIL_JARS.", "FOLDER")
    ] = None,
    spark: Annotated[bool, flag("--spark", "Leave out the jars of the local services.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch the jars of Spark and of the local services.

    For example: frazil local jars --out jars

    Every file is compared with its locked hash.
    FRAZIL_MAVEN_MIRROR names a Maven mirror.
    FRAZIL_JARS names a folder to use instead of a network.

    Exit codes: 0 fetched, all hashes equal; 1 a jar has another hash; 3 a jar is not available
    """
    from frazil.local.toolchain.jars import copied, purposes
    from frazil.local.toolchain.jars import jars as fetched

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
    data: Annotated[bool, flag("--data", "Delete their data too: topics, schemas, tables.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop the local services, and their job runs.

    For example: frazil local down --data

    Exit codes: 0 nothing runs; 3 a service did not stop
    """
    from frazil.local.services import down as stop
    from frazil.local.services import running

    stopped = [str(part) for part in running(project_folder()).addresses]
    stop(project_folder(), data=data)
    if as_json:
        show_json({"home": str(state_folder().resolve()), "parts": {}, "stopped": stopped})
        return
    kept = "data deleted" if data else f"data kept in {state_folder()}"
    say(f"stopped {', '.join(stopped)}; {kept}" if stopped else f"nothing ran; {kept}")


def produce(
    topic: Annotated[str, argument("TOPIC", "Topic of the local broker.")],
    records: Annotated[str, argument("FILE", "JSON lines, or - for stdin.")],
    value_format: Annotated[str | None, flag("--format", "json, json_schema, avro or protobuf.", "FORMAT")] = None,
    schema: Annotated[Path | None, flag("--schema", "Schema: .avsc, .json or .proto.", "FILE")] = None,
    key: Annotated[str | None, flag("--key", "Field that is the record's key.", "FIELD")] = None,
    partitions: Annotated[int, flag("--partitions", "Partitions of a new topic.", min=1, max=1000)] = 1,
    file: PipelinesFile = declaration_file.USUAL,
    as_json: AsJson = False,
) -> None:
    """Produce a file to a topic of the local broker.

    For example: frazil local produce orders orders.jsonl --format avro --key id

    Creates the topic, and registers the schema.
    Default format: that of the declared topic, else json.
    Without --schema, Avro and JSON Schema are inferred.
    With one wrong record, produces nothing.

    Exit codes: 0 produced; 2 invalid input, or a wrong record; 3 a local service does not run
    """
    from frazil.inference.record_file import read_records
    from frazil.local.produce.produce import Wanted
    from frazil.local.produce.produce import produce as send
    from frazil.local.services import running

    declared = declared_if_any(file).topic(topic)
    wanted = Wanted(topic=topic, declared=declared, format=value_format, schema=schema, key=key, partitions=partitions)
    services = running(project_folder())
    lines = read_records(records, sys.stdin.buffer if sys.stdin is not None else None)
    made = send(wanted, lines, bootstrap=services.bootstrap, registry_url=lambda: services.registry_url)
    if as_json:
        show_json({**asdict(made), "records": len(lines)})
        return
    places = ", ".join(f"{number(count)} in partition {partition}" for partition, count in made.partitions.items())
    what = "1 record" if len(lines) == 1 else f"{number(len(lines))} records"
    say(f"produced {what} to the {'new ' * made.created}topic {topic}, format {made.format}: {places}")
    for subject, schema_id in made.schemas.items():
        say(f"schema {schema_id} in subject {subject}")
