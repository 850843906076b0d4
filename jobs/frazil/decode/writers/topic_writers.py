"""The writer schemas of a topic: declared, in the records, in the registry, or none; and the row types that they make."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.clients.registry.client import Registry
from frazil.declaration.formats import Avro, Protobuf
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.route import RecordName, Route
from frazil.declaration.topic import Topic
from frazil.decode.raw import RAW, RawWriters
from frazil.decode.writers.declared_writers import declared_writers
from frazil.decode.writers.embedded_writers import EmbeddedWriters
from frazil.decode.writers.registered_messages import MessageWriters
from frazil.decode.writers.registered_writers import AvroWriters, JsonWriters, RegisteredWriters
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.envelopes.chosen_envelope import envelope as chosen_envelope
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope
from frazil.schema_files.declared_rows import omissions
from frazil.schemas.json_columns import with_variants
from frazil.schemas.key_fields import KEY_VERSION
from frazil.schemas.types import Struct


def writer_schemas(
    topic: Topic,
    registry: Registry | None,
    *,
    keys: bool = False,
    envelope: Envelope = NO_ENVELOPE,
    of_one_type: bool = False,
    route: Route | None = None,
) -> WriterSchemas:
    """Return the writer schemas of a topic's values; with `keys`, of its keys. `of_one_type` is that of `MessageWriters`.

    With a `route` by names they know which frames are of other tables' types.

    Raises `InvalidInput` as the envelope does for declared schemas, and `UnreadableSchema`.
    """
    found = _writers(topic, registry, envelope, keys=keys, of_one_type=of_one_type)
    found.of_topic = registry
    if route is not None and isinstance(route.by, RecordName) and isinstance(found, RegisteredWriters):
        found.route = route
    return found


def _writers(
    topic: Topic, registry: Registry | None, envelope: Envelope, *, keys: bool, of_one_type: bool
) -> WriterSchemas:
    of = topic.side(is_key=keys)
    if of.columns or of.schema:
        return declared_writers(of, envelope, is_key=keys)
    if of.has_schemas_inside:
        return EmbeddedWriters(envelope, is_key=keys)
    if of.kind in RAW:
        return RawWriters(of, envelope, is_key=keys)
    if isinstance(of, Protobuf):
        return MessageWriters(topic, registry, envelope, is_key=keys, of_one_type=of_one_type)
    made = AvroWriters if isinstance(of, Avro) else JsonWriters
    return made(topic, registry, envelope, is_key=keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRows:
    """The row types of a topic's values, oldest first, each with its schema id or number, for commands that land nothing.

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
    topic, around = pipeline.topic, chosen_envelope(pipeline.envelope)
    if topic.value.has_schemas_inside:
        return TopicRows(are_in_records=True)
    values = writer_schemas(topic, registry, envelope=around, route=pipeline.shape.route)
    values.refresh()
    versions, problems, omits = values.versions, _problems(values), [*_omits(values), *omissions(pipeline)]
    if pipeline.write.has_key and not pipeline.write.key and values.has_columns and versions:
        keys = writer_schemas(topic, registry, keys=True, envelope=around)  # their fields come before all others
        keys.refresh()
        of_records = ((KEY_VERSION, of.row) for of in keys.types.values() if not of.is_single_value)
        versions, problems = (*of_records, *versions), problems + _problems(keys)
        omits += [f"key: {one}" for one in _omits(keys)]
    if pipeline.table.has_variants:
        versions = tuple((number, with_variants(row)) for number, row in versions)
    subjects = tuple(values.subjects(registry)) if registry is not None else ()
    return TopicRows(versions=versions, subjects=subjects, problems=problems, omits=tuple(dict.fromkeys(omits)))


def _problems(writers: WriterSchemas) -> tuple[str, ...]:
    return tuple(f"schema {schema_id}: {problem}" for schema_id, problem in writers.problems.items())


def _omits(writers: WriterSchemas) -> list[str]:
    return [] if writers.registry is None else [one for _, omits in writers.omissions for one in omits]
