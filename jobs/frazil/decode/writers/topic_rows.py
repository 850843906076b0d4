"""The row types of a topic's values, or keys, as its declaration or the registry describes them, without Spark.

`WriterSchemas` makes decoders of the same schemas; this knows their types alone, for commands that land nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frazil.clients.registry.client import Registry
from frazil.clients.registry.retry import several
from frazil.clients.registry.schemas import RegisteredSchema
from frazil.declaration import Pipeline
from frazil.declaration.options import KeyFormat, ValueFormat
from frazil.declaration.write_modes import declared_key, is_keyed
from frazil.decode.writers.subjects import Ownership
from frazil.errors import UnreadableSchema
from frazil.schema_files.declared_rows import declared_rows, is_single_value, omissions
from frazil.schemas import avro, protobuf
from frazil.schemas.connect.connect_types import row_meaning
from frazil.schemas.declared_columns import declared_type
from frazil.schemas.json import json_schema
from frazil.schemas.json.unknown_fields import with_unknown
from frazil.schemas.json_columns import with_variants
from frazil.schemas.key_fields import KEY_VERSION
from frazil.schemas.types import Field, Kind, Primitive, Struct

_KINDS = {ValueFormat.JSON: Kind.STRING, ValueFormat.TEXT: Kind.STRING, ValueFormat.BYTES: Kind.BINARY}
_FIRST = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRows:
    """The row types, oldest first, each with its schema id or number.

    `subjects` are those of the registry that were asked for, none if no registry describes the records. `problems` say which
    schemas cannot be read, `omits` which properties the values' schemas describe that land in no column. `are_in_records` says that
    only records have the schemas.
    """

    versions: tuple[tuple[int, Struct], ...] = ()
    subjects: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    omits: tuple[str, ...] = ()
    are_in_records: bool = False


def topic_rows(pipeline: Pipeline, registry: Registry | None) -> TopicRows:
    """Return the row types of a pipeline's values, unwrapped if it has an envelope; of a keyed table with the fields of its key.

    Raises `RegistryUnavailable`, and `InvalidInput` if no version is one of the envelope's.
    """
    topic, has_envelope = pipeline.topic, pipeline.envelope is not None
    if topic.has_schemas_inside:
        return TopicRows(are_in_records=True)
    if topic.columns:
        found = TopicRows(versions=((0, with_unknown(declared_type(topic.columns), keeps=topic.keeps_unknown)),))
    elif topic.schema:
        rows = tuple(enumerate(declared_rows(topic, connect_types=has_envelope)))
        found = TopicRows(versions=rows, omits=omissions(pipeline))
    elif not topic.value_format.has_schema:
        return TopicRows(versions=((0, Struct((Field("value", Primitive(_KINDS[topic.value_format])),))),))
    else:
        found = _registered(Ownership(topic), topic.value_format, registry, connect_types=has_envelope)
    if has_envelope:
        found = _unwrapped(pipeline, found)
    elif topic.columns:
        found = TopicRows(versions=tuple((number, row_meaning(row)) for number, row in found.versions))
    found = _with_key(pipeline, registry, found)
    if pipeline.table.has_variants:
        found = replace(found, versions=tuple((number, with_variants(row)) for number, row in found.versions))
    return found


def _unwrapped(pipeline: Pipeline, found: TopicRows) -> TopicRows:
    from frazil.envelopes.chosen_envelope import envelope  # loads Spark's Python, and no JVM

    unwrapping = envelope(pipeline.envelope)
    assert unwrapping is not None
    if pipeline.topic.columns:
        records = [(number, row_meaning(unwrapping.record(row))) for number, row in found.versions]
    else:
        records = list(found.versions)
    rows = tuple((number, unwrapping.unwrapped(row).row) for number, row in records)
    return replace(found, versions=rows)


def _with_key(pipeline: Pipeline, registry: Registry | None, found: TopicRows) -> TopicRows:
    """Add the fields of the record's key, which come before all others, if they are columns of the table."""
    topic = pipeline.topic
    if not is_keyed(pipeline.write) or declared_key(pipeline.write) or not found.versions:
        return found
    rows: Sequence[Struct] = ()
    problems: tuple[str, ...] = ()
    if topic.key_columns:
        rows = (row_meaning(declared_type(topic.key_columns)),)
    elif topic.key_schema:
        if not any(map(is_single_value, topic.key_schema)):
            rows = declared_rows(topic, keys=True, connect_types=pipeline.envelope is not None)
    elif topic.key_format is not KeyFormat.BYTES and topic.key_format.has_schema:
        connect_types = pipeline.envelope is not None
        owner, of = Ownership(topic, keys=True), ValueFormat(topic.key_format.value)
        of_keys = _registered(owner, of, registry, connect_types=connect_types, records_only=True)
        rows, problems = [row for _, row in of_keys.versions], of_keys.problems
        found = replace(found, omits=(*found.omits, *(f"key: {one}" for one in of_keys.omits)))
    versions = (*((KEY_VERSION, row) for row in rows), *found.versions)
    return replace(found, versions=versions, problems=(*found.problems, *problems))


def _registered(
    owner: Ownership, of: ValueFormat, registry: Registry | None, *, connect_types: bool, records_only: bool = False
) -> TopicRows:
    """Return the row types of all versions of a topic's subjects; with `records_only` without those of single values."""
    if registry is None:
        return TopicRows()
    subjects = tuple(owner.subjects(registry))
    listed = several(lambda subject: registry.versions(subject, deleted=True), subjects)
    ids = dict.fromkeys(version.id for versions in listed for version in versions)
    registry.prefetch(ids)
    versions: list[tuple[int, Struct]] = []
    problems: list[str] = []
    omits: dict[str, None] = {}
    for schema_id in ids:
        try:
            schema = registry.schema(schema_id)
            if schema is not None:
                row, is_record, omitted = _row(schema, of, registry, owner, connect_types=connect_types)
                omits |= dict.fromkeys(omitted)
                versions += [(schema_id, row)] if is_record or not records_only else []
        except UnreadableSchema as problem:
            problems.append(f"schema {schema_id}: {problem}")
    return TopicRows(versions=tuple(versions), subjects=subjects, problems=tuple(problems), omits=tuple(omits))


def _row(
    schema: RegisteredSchema, of: ValueFormat, registry: Registry, owner: Ownership, *, connect_types: bool
) -> tuple[Struct, bool, tuple[str, ...]]:
    """Return the row type of a schema, whether its values are records, and what it omits.

    Raises `UnreadableSchema`, also for a schema of another language than the topic's.
    """
    references = registry.resolve_references(schema)
    match schema.type.value, of:
        case "avro", ValueFormat.AVRO:
            read = avro.parse(schema.text, references, connect_types=connect_types)
            return avro.row_type(read), not read.is_single_value, ()
        case "json", ValueFormat.JSON_SCHEMA:
            parsed = json_schema.parse(schema.text, references)
            row = row_meaning(json_schema.row_type(parsed, connect_types=connect_types))
            omits = json_schema.omitted(parsed, connect_types=connect_types)
            return row, not json_schema.is_single_value(parsed, connect_types=connect_types), omits
        case "protobuf", ValueFormat.PROTOBUF:
            from frazil.decode.protobuf.compiler import compile_proto  # loads Protobuf

            compiled = compile_proto(schema.text, references)
            named = [n for path, n in compiled.indexes.items() if n == owner.record_name or path == _FIRST]
            return protobuf.row_type(compiled, named[-1], is_key=owner.is_key), True, ()
        case _:
            raise UnreadableSchema(f"it is in {schema.type}, and the topic's format is {of}")
