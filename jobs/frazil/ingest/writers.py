"""The writer schemas of a topic: which versions there are, what rows they make, how their records are decoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frazil.clients.registry import Registry
from frazil.declaration.formats import KeyFormat, SubjectStrategy, Tombstones, ValueFormat
from frazil.declaration.topic import Topic
from frazil.errors import FrazilError, UnreadableSchema
from frazil.ingest import decode
from frazil.ingest.decode import Body, Decoding
from frazil.ingest.decode_json import decode_json
from frazil.ingest.spark_types import spark_struct
from frazil.schemas import avro, json_schema
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct

UNFRAMED = {ValueFormat.JSON: Kind.STRING, ValueFormat.TEXT: Kind.STRING, ValueFormat.BYTES: Kind.BINARY}


@dataclass(frozen=True, slots=True)
class Writer:
    """One version: its row type, and how to decode its records into a target."""

    id: int
    row: Struct
    body: Callable[[Struct], Body]


class Writers:
    """All writer schemas of a topic that are known so far, oldest first."""

    def __init__(self, topic: Topic, registry: Registry | None) -> None:
        if topic.value_format is ValueFormat.PROTOBUF or topic.key_format is not KeyFormat.BYTES:
            is_value = topic.value_format is ValueFormat.PROTOBUF
            raise FrazilError(
                f"{'values' if is_value else 'keys'} of format {topic.value_format if is_value else topic.key_format} "
                "cannot be landed yet",
                where=f"topic {topic.name}",
                do="Declare value_format=bytes" if is_value else "Declare key_format=bytes",
            )
        self._topic = topic
        self._registry = registry
        self._writers: dict[int, Writer] = {}
        self.refused: dict[int, Reason] = {}
        self.problems: dict[int, str] = {}

    @property
    def is_framed(self) -> bool:
        """Whether values begin with a schema id."""
        return self._topic.value_format not in UNFRAMED

    @property
    def versions(self) -> tuple[tuple[int, Struct], ...]:
        """The row type of each version that can be read; for a format without a registry, one."""
        if not self.is_framed:
            return ((0, Struct((Field("value", Primitive(UNFRAMED[self._topic.value_format])),))),)
        return tuple((w.id, w.row) for w in self._writers.values())

    def refresh(self) -> bool:
        """Ask the registry for the subject's versions; returns whether there are new ones."""
        if self._registry is None or not self.is_framed or self._topic.subject_strategy is not SubjectStrategy.TOPIC:
            return False
        new = [v.id for v in self._registry.versions(self.subject, deleted=True) if not self._knows(v.id)]
        for schema_id in new:
            self._add(schema_id)
        return bool(new)

    @property
    def subject(self) -> str:
        """The subject of the topic's values under the strategy `topic`."""
        return f"{self._topic.name}-value"

    def resolve(self, schema_id: int) -> None:
        """Find out about an id that a record names: afterwards it is a writer, or refused with a reason."""
        if self._knows(schema_id) or self._registry is None:
            return
        if self._topic.subject_strategy is SubjectStrategy.TOPIC:
            self.refresh()
            if not self._knows(schema_id):
                found = self._registry.schema(schema_id)
                self.refused[schema_id] = Reason.UNKNOWN_SCHEMA if found is None else Reason.FOREIGN_SCHEMA
            return
        subjects = set(self._registry.subjects_of(schema_id))
        if not subjects:
            self.refused[schema_id] = Reason.UNKNOWN_SCHEMA
        elif self._is_ours(subjects):
            self._add(schema_id)
        else:
            self.refused[schema_id] = Reason.FOREIGN_SCHEMA

    def decoding(self, target: Struct, unfit: Mapping[int, object], tombstones: Tombstones) -> Decoding:
        """How to decode the topic's values into `target`; versions in `unfit` do not fit it and are refused."""
        ddl = spark_struct(Struct((*target.fields, Field(decode.DECODED, Primitive(Kind.BOOLEAN))))).simpleString()
        match self._topic.value_format:
            case ValueFormat.TEXT:
                return Decoding(ddl, unframed=decode.text(), tombstones=tombstones)
            case ValueFormat.JSON:
                return Decoding(ddl, unframed=decode.json_text(), tombstones=tombstones)
            case ValueFormat.BYTES:
                return Decoding(ddl, unframed=decode.raw(), tombstones=tombstones)
        bodies = {w.id: w.body(target) for w in self._writers.values() if w.id not in unfit}
        refused = {**self.refused, **dict.fromkeys(unfit, Reason.INCOMPATIBLE_SCHEMA)}
        return Decoding(ddl, writers=bodies, refused=refused, tombstones=tombstones)

    def _knows(self, schema_id: int) -> bool:
        return schema_id in self._writers or schema_id in self.refused

    def _is_ours(self, subjects: set[str]) -> bool:
        prefix = f"{self._topic.name}-" if self._topic.subject_strategy is SubjectStrategy.TOPIC_RECORD else ""
        if self._topic.record_name is not None:
            return f"{prefix}{self._topic.record_name}" in subjects
        return any(subject.startswith(prefix) for subject in subjects)

    def _add(self, schema_id: int) -> None:
        assert self._registry is not None
        schema = self._registry.schema(schema_id)
        if schema is None:  # deleted between the two questions
            self.refused[schema_id] = Reason.UNKNOWN_SCHEMA
            return
        try:
            self._writers[schema_id] = self._writer(schema_id, schema.text, self._registry.resolve_references(schema))
        except UnreadableSchema as problem:
            self.refused[schema_id] = Reason.UNREADABLE_SCHEMA
            self.problems[schema_id] = str(problem)

    def _writer(self, schema_id: int, text: str, references: Mapping[str, str]) -> Writer:
        match self._topic.value_format:
            case ValueFormat.AVRO:
                parsed = avro.parse(text, references)
                return Writer(
                    schema_id, avro.row_type(parsed), lambda target: decode.avro(avro.reader(parsed, target), target)
                )
            case ValueFormat.JSON_SCHEMA:
                document = json_schema.parse(text, references)
                whole = json_schema.is_whole(document)
                return Writer(
                    schema_id,
                    json_schema.row_type(document),
                    lambda target: lambda body: decode_json(body, target, whole=whole),
                )
            case other:
                raise UnreadableSchema(f"values of format {other} cannot be read yet", where=f"schema {schema_id}")
