"""The row types of declared schemas, by the same mapping as those of a registry, and what cannot be declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frazil.declaration import Avro, JsonSchema, Pipeline, SchemaFile, Topic
from frazil.declaration.checks.problems import Problem
from frazil.errors import FrazilError, UnreadableSchema
from frazil.schemas import avro, protobuf
from frazil.schemas.connect.connect_types import row_meaning
from frazil.schemas.declared_columns import UNKNOWN, with_unknown
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.merge import merge
from frazil.schemas.json import json_schema
from frazil.schemas.types import Struct


def declared_rows(topic: Topic, *, keys: bool = False, connect_types: bool = False) -> tuple[Struct, ...]:
    """Return the row type of each declared schema of a topic's values, or keys, in their order.

    `connect_types` is that of `avro.parse`. Raises `UnreadableSchema`, which names the file.
    """
    of = topic.side(is_key=keys)
    rows = (row_of(file, of.record_name, connect_types=connect_types, is_key=keys) for file in of.schema or ())
    return tuple(with_unknown(row, keeps=of.keeps_unknown) for row in rows)


def omissions(pipeline: Pipeline) -> tuple[str, ...]:
    """Return which properties the declared schemas of a pipeline's values and keys describe that land in no column."""
    found = []
    for of in (pipeline.topic.value, pipeline.topic.key):
        for file in of.schema or ():
            if file.format == JsonSchema.kind:
                parsed = json_schema.parse(file.content, {})
                types = pipeline.is_change_data
                omitted = json_schema.omitted(parsed, connect_types=types, keeps_unknown=of.keeps_unknown)
                found += [f"{file.file}: {one}" for one in omitted]
    return tuple(found)


def row_of(file: SchemaFile, message: str | None, *, connect_types: bool = False, is_key: bool = False) -> Struct:
    """Return the row type of a file; `message` is the one of a descriptor set, `is_key` that of `protobuf.row_type`."""
    try:
        match file.format:
            case Avro.kind:
                return avro.row_type(avro.parse(file.content, connect_types=connect_types))
            case JsonSchema.kind:
                parsed = json_schema.parse(file.content, {})
                return row_meaning(json_schema.row_type(parsed, connect_types=connect_types))
            case _:
                return _message(file, message or "", is_key=is_key)
    except UnreadableSchema as problem:
        raise named(file, problem) from None


def is_single_value(file: SchemaFile) -> bool:
    """Return whether the records of a file are one value each, in the column `value`, no objects of fields.

    Raises `UnreadableSchema`, which names the file.
    """
    try:
        match file.format:
            case Avro.kind:
                return avro.parse(file.content).is_single_value
            case JsonSchema.kind:
                return json_schema.is_single_value(json_schema.parse(file.content, {}))
            case _:
                return False
    except UnreadableSchema as problem:
        raise named(file, problem) from None


def named(file: SchemaFile, problem: UnreadableSchema) -> UnreadableSchema:
    """Return the problem of a schema with the file's name as its place."""
    where = f"{file.file}: {problem.where}" if problem.where else file.file
    do = problem.do or "Change the schema, or land the topic as bytes"
    if "$ref" in problem.what:
        do = "Put what it refers to into the file, below $defs"
    return UnreadableSchema(problem.what, where=where, do=do)


def _message(file: SchemaFile, message: str, *, is_key: bool) -> Struct:
    from frazil.schema_files.descriptors import message_schema  # loads Protobuf, which most declarations do not need

    return protobuf.row_type(message_schema(file.data, message), message, is_key=is_key)


def file_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what is wrong with the content of a pipeline's schema files, with paths below the pipeline."""
    connect_types = pipeline.is_change_data
    for side, of in (("value", pipeline.topic.value), ("key", pipeline.topic.key)):
        path, files = f"topic.{side}.schema", of.schema or ()
        rows: list[tuple[int, Struct]] = []
        for index, file in enumerate(files):
            try:
                rows.append((index, row_of(file, of.record_name, connect_types=connect_types)))
            except FrazilError as problem:
                what = f"{problem.where}: {problem.what}" if problem.where else problem.what
                yield Problem(f"{path}[{index}]", what, problem.do)
        for index, misfit in merge(rows).incompatible.items():
            what = f"{files[index].file}: {misfit.where}: {misfit.what}"
            yield Problem(f"{path}[{index}]", what, "Give the field another name")
        if of.keeps_unknown:
            yield from _unknown_fields(rows, files)
        if len(files) > 1:
            yield from _same_fingerprints(path, files)


def _unknown_fields(rows: Sequence[tuple[int, Struct]], files: Sequence[SchemaFile]) -> Iterator[Problem]:
    """Yield why the schemas of values leave no place for the column of unknown fields."""
    for index, row in rows:
        if is_single_value(files[index]):
            yield Problem(
                "topic.value.unknown_fields", f"{files[index].file}: records are no objects of fields", "Remove it"
            )
        elif any(folded(field.source) == UNKNOWN for field in row.fields):
            what = f"{files[index].file}: {UNKNOWN} is the column of unknown fields"
            yield Problem(f"topic.value.schema[{index}]", what, "Remove the property: it becomes one of them")


def _same_fingerprints(path: str, files: Sequence[SchemaFile]) -> Iterator[Problem]:
    known: dict[bytes, SchemaFile] = {}
    for index, file in enumerate(files):
        try:
            avro.parse(file.content)
        except UnreadableSchema:
            continue  # it is refused by itself
        other = known.setdefault(avro.fingerprint(file.content), file)
        if other is not file:
            what = f"{file.file} has the fingerprint of {other.file}: both describe the same bytes"
            yield Problem(f"{path}[{index}]", what, "Remove the older one")
