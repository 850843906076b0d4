"""The row types of a topic's values, or keys, for commands that land nothing."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.clients.registry.client import Registry
from frazil.declaration.pipeline import Pipeline
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.envelopes.chosen_envelope import envelope
from frazil.schema_files.declared_rows import omissions
from frazil.schemas.json_columns import with_variants
from frazil.schemas.key_fields import KEY_VERSION
from frazil.schemas.types import Struct


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
    topic, of = pipeline.topic, envelope(pipeline.envelope)
    if topic.has_schemas_inside:
        return TopicRows(are_in_records=True)
    values = writer_schemas(topic, registry, envelope=of)
    values.refresh()
    versions, problems, omits = values.versions, _problems(values), [*_omits(values), *omissions(pipeline)]
    if pipeline.write.has_key and not pipeline.write.key and values.has_columns and versions:
        keys = writer_schemas(topic, registry, keys=True, envelope=of)  # their fields come before all others
        keys.refresh()
        records = [(number, row) for number, row in keys.versions if not keys.is_single_value(number)]
        versions, problems = (*((KEY_VERSION, row) for _, row in records), *versions), problems + _problems(keys)
        omits += [f"key: {one}" for one in _omits(keys)]
    if pipeline.table.has_variants:
        versions = tuple((number, with_variants(row)) for number, row in versions)
    subjects = tuple(values.subjects(registry)) if registry is not None else ()
    return TopicRows(versions=versions, subjects=subjects, problems=problems, omits=tuple(dict.fromkeys(omits)))


def _problems(writers: WriterSchemas) -> tuple[str, ...]:
    return tuple(f"schema {schema_id}: {problem}" for schema_id, problem in writers.problems.items())


def _omits(writers: WriterSchemas) -> list[str]:
    """Return what the registry's schemas describe and no column has."""
    return [] if writers.registry is None else [one for _, omits in writers.omissions for one in omits]
