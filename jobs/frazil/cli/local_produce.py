"""`frazil local produce`: print what a file's records became in a local topic."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.console import number, out, plain, show_json
from frazil.cli.options import AsJson, LocalEnvironment, PipelinesFile, check_local, declared_if_any
from frazil.declaration.options import ValueFormat
from frazil.errors import InvalidInput
from frazil.project import declaration_file
from frazil.project.project_file import project_folder

ENVIRONMENTS = ("local",)


def produce(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic of the local broker.")],
    records: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines, CSV, or - for stdin.")],
    value_format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="Format: json, json_schema, avro or protobuf.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", metavar="FILE", help="Schema: .avsc, .json or .proto.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="FIELD", help="Field that is the record's key.")] = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", min=1, max=1000, help="Partitions of a new topic (default 1).")
    ] = None,
    file: PipelinesFile = declaration_file.USUAL,
    option: LocalEnvironment = None,
    as_json: AsJson = False,
) -> None:
    """Produce a file to a topic of the local broker.

    For example: frazil local produce orders orders.jsonl --format avro --key id

    \b
    Creates the topic, and registers the schema.
    Default format: that of the declared topic, else json.
    Without --schema, Avro and JSON Schema are inferred.
    With one wrong record, produces nothing.

    \b
    Exit codes:
      0 produced
      2 invalid input, or a wrong record
      3 a local service does not run
    """
    from frazil.inference.record_file import read_records
    from frazil.local.produce.produce import FORMATS, Wanted
    from frazil.local.produce.produce import produce as send
    from frazil.local.services import running

    check_local(option, ENVIRONMENTS)
    if value_format is not None and value_format not in FORMATS:
        raise InvalidInput(
            f"there is no format {value_format}", where="--format", do=f"Name one of {', '.join(FORMATS)}"
        )
    declared = next((one.topic for one in declared_if_any(context, file) if one.topic.name == topic), None)
    wanted = Wanted(
        topic=topic,
        declared=declared,
        format=ValueFormat(value_format) if value_format is not None else None,
        schema=schema,
        key=key,
        partitions=partitions,
    )
    services = running(project_folder())
    bootstrap = services.bootstrap
    lines = read_records(records, sys.stdin.buffer if sys.stdin is not None else None)
    made = send(wanted, lines, bootstrap=bootstrap, registry_url=lambda: services.registry_url)
    if as_json:
        show_json(
            {
                "topic": topic,
                "created": made.created,
                "format": str(made.format),
                "records": made.records,
                "partitions": {str(partition): count for partition, count in made.partitions.items()},
                "schemas": dict(made.schemas),
            }
        )
        return
    places = ", ".join(f"{number(count)} in partition {partition}" for partition, count in made.partitions.items())
    what = "1 record" if made.records == 1 else f"{number(made.records)} records"
    new = "new topic" if made.created else "topic"
    out().print(
        plain(f"produced {what} to the {new} {topic}, format {made.format}: {places}"),
        markup=False,
        soft_wrap=True,
    )
    for subject, schema_id in made.schemas.items():
        out().print(plain(f"schema {schema_id} in subject {subject}"), markup=False, soft_wrap=True)
