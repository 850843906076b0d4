"""A Kafka topic, as a pipeline reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Annotated

from frazil.declaration.checks.column_notation import column
from frazil.declaration.checks.constraints import ALONE, NOT_EMPTY, matching, notation
from frazil.declaration.checks.declared import Chosen, declared, default, required
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.topic_problems import topic_problems
from frazil.declaration.options import Framing, KeyFormat, SubjectStrategy, UnknownFields, ValueFormat
from frazil.declaration.schema_file import SchemaFiles

_TOPIC_NAME = matching(
    r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}",
    "a name that Kafka allows for a topic",
    "Use 1 to 249 of a-z, A-Z, 0-9, . _ and -, and not . or .. alone",
)


@declared
class Topic:
    """A topic and how its records are to be understood: facts about it, which its producers decided."""

    name: Annotated[str, "The topic's name in Kafka.", _TOPIC_NAME] = field(kw_only=False)
    value_format: Annotated[Chosen[ValueFormat], "The format of values."] = required()
    key_format: Annotated[Chosen[KeyFormat], "The format of keys."] = default(KeyFormat.BYTES)
    columns: Annotated[
        tuple[Annotated[str, notation(column)], ...] | None,
        "With the formats json and connect_json: the columns of values, each a name and a type, like id long, or id long "
        "required. Default: those of connect_json are what the schema in each record says, and json lands as its text.",
    ] = None
    key_columns: Annotated[
        tuple[Annotated[str, notation(column)], ...] | None,
        "With the key formats json and connect_json: the fields of keys, each a name and a type. Default: as for columns.",
    ] = None
    schema: Annotated[
        SchemaFiles,
        "The schema of values without a registry: the path of an Avro, JSON Schema or Protobuf descriptor file; or several, see "
        "framing.",
        ALONE,
    ] = default(None)
    key_schema: Annotated[SchemaFiles, "The schema of keys without a registry, like schema.", ALONE] = default(None)
    framing: Annotated[
        Chosen[Framing | None],
        "With an Avro schema: how a value names the one that wrote it. Default: not at all, it is the body alone.",
    ] = default(None)
    key_framing: Annotated[Chosen[Framing | None], "With an Avro key_schema: the same of keys."] = default(None)
    unknown_fields: Annotated[
        Chosen[UnknownFields | None],
        "With declared columns, or a JSON Schema file: keep the fields of a record that are no column, as JSON text in the column "
        "_unknown. Default: they are left out.",
    ] = default(None)
    subject_strategy: Annotated[Chosen[SubjectStrategy], "The naming strategy of the producers' subjects."] = default(
        SubjectStrategy.TOPIC
    )
    record_name: Annotated[
        str | None,
        "With the strategies record and topic_record: the full name of the records to land. Records with other names are "
        "rejected. Default: all records land, their types are merged, and a version is unknown until a record has it. "
        "With a Protobuf schema: the full name of the values' message.",
        NOT_EMPTY,
    ] = None
    key_record_name: Annotated[
        str | None,
        "With Protobuf keys: the full name of their message. Keys of other messages are rejected. Default, if a registry has the "
        "schema: any message, and in a table whose rows have a key the first one of the file.",
        NOT_EMPTY,
    ] = None
    transactional: Annotated[
        bool, "Producers use transactions. Their markers and aborted records leave gaps between the offsets."
    ] = False

    @property
    def needs_registry(self) -> bool:
        """Whether a registry describes the values."""
        return self.value_format.has_schema and self.schema is None

    @property
    def needs_key_registry(self) -> bool:
        """Whether a registry describes the keys."""
        return self.key_format.has_schema and self.key_schema is None

    @property
    def has_columns(self) -> bool:
        """Whether values have columns without a registry: declared ones, or those that the schema in each record says."""
        return self.columns is not None or self.value_format is ValueFormat.CONNECT_JSON

    @property
    def has_key_columns(self) -> bool:
        """Whether keys have columns without a registry, as values may."""
        return self.key_columns is not None or self.key_format is KeyFormat.CONNECT_JSON

    @property
    def has_schemas_inside(self) -> bool:
        """Whether the schema of values is in each record, and not declared."""
        return self.value_format is ValueFormat.CONNECT_JSON and self.columns is None

    @property
    def has_key_schemas_inside(self) -> bool:
        """Whether the schema of keys is in each record, and not declared."""
        return self.key_format is KeyFormat.CONNECT_JSON and self.key_columns is None

    @property
    def keeps_unknown(self) -> bool:
        """Whether the fields of values that are no column are kept."""
        return self.unknown_fields is UnknownFields.KEEP

    def _contradictions(self) -> Iterator[Problem]:
        return topic_problems(self)
