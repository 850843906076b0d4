"""`frazil check`: every problem of the declarations, without asking anybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.console import out, plain, print_error, say, show_json, table
from frazil.cli.options import ENV, AsJson, argument, command_secrets, flag
from frazil.clients.secrets import Secrets
from frazil.declaration import (
    InvalidDeclaration,
    Pipeline,
    Problem,
    Spark,
    TopicPattern,
    TypePattern,
    canonical,
    digest,
)
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.checks.cross_checks import Listed
from frazil.declaration.documents.document import document
from frazil.declaration.shape import KEY
from frazil.declaration.write_modes import gaps_of_state
from frazil.errors import CatalogUnavailable, FrazilError, InvalidInput
from frazil.exit_codes import Exit
from frazil.job.entry_point import read
from frazil.project import declaration_file, environments
from frazil.project.checked_project import checked_pipelines
from frazil.schema_files.declared_rows import declared_rows, omissions
from frazil.schemas.connect.connect_types import row_meaning
from frazil.schemas.declared_columns import declared_type, with_unknown
from frazil.schemas.evolution.merge import merge
from frazil.schemas.json_columns import with_variants
from frazil.schemas.key_fields import KEY_VERSION
from frazil.schemas.sources import source_problems
from frazil.schemas.types import Struct


def check(
    file: Annotated[
        Path | None, argument("[FILE]", "A Python file, or a JSON document.", envvar="FRAZIL_PIPELINES")
    ] = None,
    env: Annotated[str | None, flag(ENV, "Check them for this environment, too.", "NAME|FILE")] = None,
    write: Annotated[Path | None, flag("--write", "Write the JSON document that jobs read.", "FILE")] = None,
    connector: Annotated[
        list[Path] | None, flag("--connector", "Check a Debezium connector's JSON, too. Repeatable.", "FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check declarations, and print every problem with its place.

    For example: frazil check pipelines.py --connector shop.json

    Without FILE, checks the project file's environments, too.
    Compares declarations with the tables of a local catalog.
    Asks no service.

    Exit codes: 0 no problem; 2 problems
    """
    notes: tuple[Problem, ...] = ()
    is_project, file = file is None, file or declaration_file.usual()
    try:
        of_file = checked_pipelines(file, choice=env, with_project=is_project)
        listed = of_file.listed
        if connector:
            notes = _connector_notes(connector, of_file.pipelines)
        rows = rows_of(of_file.examples)[: len(listed)]
    except InvalidDeclaration as invalid:
        if as_json:
            show_json({"file": str(file), "problems": [asdict(problem) for problem in invalid.problems]})
        print_error(str(invalid))
        raise typer.Exit(Exit.INVALID_INPUT) from invalid
    found = [one.pipeline for one in listed]
    columns = [{field.name: str(field.type) for field in row.fields} if row is not None else {} for row in rows]
    if write is not None:
        try:
            write.write_bytes(canonical(document(found, of_file.patterns, of_file.types)))
        except OSError as error:
            raise InvalidInput.unwritable(write, error) from error
    compared, uncompared = _compared(found, env, command_secrets())
    if as_json:
        name = digest(canonical(document(found, of_file.patterns, of_file.types)))
        facts_of = [
            _facts(pipeline) | {"columns": shown, "differences": compared[pipeline.name]}
            for pipeline, shown in zip(found, columns, strict=True)
        ]
        advice = {"connector_notes": [asdict(note) for note in notes]} if connector else {}
        patterns: dict[str, Sequence[TopicPattern | TypePattern]]
        patterns = {"patterns": of_file.patterns, "types": of_file.types}
        of_patterns = {name: [_of_pattern(one) for one in some] for name, some in patterns.items() if some}
        show_json({"file": str(file), "digest": name, "pipelines": facts_of, **of_patterns, "problems": [], **advice})
        return
    shown = table("pipeline", "topic", "format", "table", "partitioned by")
    for pipeline in found:
        facts = _facts(pipeline)
        shown.add_row(
            *(str(facts[key]) for key in ("name", "topic", "format", "table")), ", ".join(facts["partitions"])
        )
    for one in of_file.every_pattern:
        kind, partitions = one.pipeline.topic.value.kind, ", ".join(one.pipeline.table.partition_by)
        source = one.match if isinstance(one, TopicPattern) else f"{one.topic}: {one.match}"
        shown.add_row("", plain(source), kind, plain(one.table), partitions)
    out().print(shown)
    for pipeline in found:
        for difference in compared[pipeline.name]:
            say(f"{pipeline.name}: {difference}", "yellow")
    if uncompared:
        say(f"note: {uncompared}")
    for pipeline, named in zip(found, columns, strict=True):
        if named:
            text = ", ".join(f"{name} {kind}" for name, kind in named.items())
            say(f"{pipeline.name}: columns {text}")
    for pipeline in found:
        for note in _notes(pipeline):
            say(f"{pipeline.name}: {note}")
    for advised in notes:
        say(f"note: {advised}")


def _compared(
    pipelines: Sequence[Pipeline], env: str | None, secrets: Secrets
) -> tuple[dict[str, tuple[str, ...]], str]:
    """Return how the tables of an environment differ from their declarations, and why they are not compared, if so.

    Only a local catalog is read: others are services.
    """
    nothing: dict[str, tuple[str, ...]] = {pipeline.name: () for pipeline in pipelines}
    if env is None and not environments.is_known("local"):
        return nothing, ""
    try:
        place = environments.environment(env or "local")
    except FrazilError as error:
        return nothing, f"tables are not compared: {error}"
    if not isinstance(place.catalog, LocalCatalog):
        return nothing, f"tables of {place.name} are not compared; `frazil status --env {env}` compares them"
    from frazil.ingest.setup.existing_table import said
    from frazil.lake.read.stored_tables import Lake  # loads PyIceberg

    lake = Lake(place, secrets.read)
    try:
        landed = [one for one in pipelines if isinstance(one.engine, Spark)]
        stored = {one.name: table for one in landed if (table := lake.table(one.table.identifier)) is not None}
    except CatalogUnavailable as error:
        return nothing, f"tables of {place.name} are not compared: {error}"
    return nothing | {one.name: said(one, stored[one.name].layout) for one in pipelines if one.name in stored}, ""


def _connector_notes(files: Sequence[Path], pipelines: Sequence[Pipeline]) -> tuple[Problem, ...]:
    """Return the notes on these connectors. Raises `InvalidDeclaration` with all of their problems."""
    from frazil.envelopes.connector import checked, connector  # no other command needs them

    connectors, problems = [], list[Problem]()
    for file in files:
        try:
            connectors.append(connector(read(file), str(file)))
        except InvalidDeclaration as invalid:
            problems += invalid.problems
    found, notes = checked(connectors, pipelines)
    if problems := [*problems, *found]:
        raise InvalidDeclaration(problems)
    return tuple(notes)


def rows_of(listed: Sequence[Listed]) -> list[Struct | None]:
    """Return `_row` of each pipeline. Raises `InvalidDeclaration` if a run would refuse its key, order, partitions or sorting."""
    rows, problems = [_row(one.pipeline) for one in listed], list[Problem]()
    for one, row in zip(listed, rows, strict=True):
        if row is not None and (known := _with_key(one.pipeline, row)) is not None:
            problems += (each.moved("", f"{one.path}.") for each in source_problems(one.pipeline.table, known))
        if row is not None and one.pipeline.write.has_key:
            problems += (each.moved("", f"{one.path}.") for each in _key_problems(one.pipeline, row))
            from frazil.ingest.schema import declared_state

            problems += (each.moved("", f"{one.path}.") for each in declared_state.problems(one.pipeline, row))
    if problems:
        raise InvalidDeclaration(problems)
    return rows


def _key_problems(pipeline: Pipeline, row: Struct) -> Iterator[Problem]:
    """Yield the column that the record's key has in another type than the value."""
    keys = pipeline.topic.key.columns if pipeline.write.key is None else None
    fields = row_meaning(declared_type(keys or ()))
    if problem := merge([(KEY_VERSION, fields), (0, row)]).incompatible.get(0):
        what = f"{problem.where} has another type than in the value: {problem.what}"
        yield Problem("topic.key.columns", what, "Declare it in one type, or give one of both another name")


def _with_key(pipeline: Pipeline, row: Struct) -> Struct | None:
    """Return the row with the fields of the record's key, as far as they are columns; None if these are not known."""
    topic = pipeline.topic
    if not pipeline.write.has_key or pipeline.write.key is not None:
        return row
    if topic.key.columns:
        return merge([(KEY_VERSION, row_meaning(declared_type(topic.key.columns))), (0, row)]).type
    return None if topic.key.has_schema or topic.key.has_schemas_inside else row


def _row(pipeline: Pipeline) -> Struct | None:
    """Return the row that a declaration gives a table; None if a registry does, or Spark by the types of expressions.

    Raises `InvalidInput` if the records that are declared have no envelope.
    """
    topic, of = pipeline.topic, None
    if not (topic.value.columns or topic.value.schema) or pipeline.shape.selected:
        return None
    if pipeline.is_change_data:
        from frazil.envelopes.chosen_envelope import envelope  # loads Spark

        of = envelope(pipeline.envelope)
    if topic.value.columns:
        declared = with_unknown(declared_type(topic.value.columns), keeps=topic.value.keeps_unknown)
        rows: tuple[Struct, ...] = (row_meaning(declared if of is None else of.record(declared)),)
    else:
        rows = declared_rows(topic, connect_types=of is not None)
    if of is not None:
        rows = tuple(of.unwrapped(row).row for row in rows)
    if pipeline.table.has_variants:
        rows = tuple(map(with_variants, rows))
    return merge(list(enumerate(rows))).type


def _facts(pipeline: Pipeline) -> dict[str, str | list[str]]:
    return {
        "name": pipeline.name,
        "topic": pipeline.topic.name,
        "format": pipeline.topic.value.kind,
        "table": pipeline.table.identifier,
        "partitions": list(pipeline.table.partition_by),
        "notes": _notes(pipeline),
    }


def _of_pattern(pattern: TopicPattern | TypePattern) -> dict[str, str | int | None]:
    own = {"exclude": pattern.exclude} if isinstance(pattern, TopicPattern) else {"topic": pattern.topic}
    return {
        "match": pattern.match,
        **own,
        "format": pattern.pipeline.topic.value.kind,
        "table": pattern.table,
        "most": pattern.most,
    }


def _notes(pipeline: Pipeline) -> list[str]:
    plain = "the record's key and headers land as they are: mask _kafka_key, too, if it has such values"
    of_key = [plain] if pipeline.shape.mask and KEY not in pipeline.shape.mask else []
    return [*gaps_of_state(pipeline), *of_key, *(f"lands in no column: {one}" for one in omissions(pipeline))]
