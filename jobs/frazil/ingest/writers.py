"""The writer schemas of a topic's values, or keys: which there are, what rows they make, how their records are decoded."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from frazil.clients.registry import Registry
from frazil.declaration.formats import SubjectStrategy, Tombstones, ValueFormat
from frazil.declaration.topic import Topic
from frazil.errors import UnreadableSchema
from frazil.ingest import unframed
from frazil.ingest.decode import DECODED, Decoding
from frazil.ingest.spark_types import spark_struct
from frazil.ingest.written import Written, avro_type, json_type, protobuf_type
from frazil.schemas.frames import (
    GUID_BYTES,
    GUID_MAGIC,
    KEY_HEADER,
    PREFIX_BYTES,
    VALUE_HEADER,
    FrameProblem,
    guid_header,
    message_index,
    prefixed,
)
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct

if TYPE_CHECKING:
    from frazil.schemas.protobuf import ProtobufSchema

UNFRAMED = {ValueFormat.JSON: Kind.STRING, ValueFormat.TEXT: Kind.STRING, ValueFormat.BYTES: Kind.BINARY}
_MAY_CHANGE = (Reason.UNKNOWN_SCHEMA, Reason.FOREIGN_SCHEMA)  # by what is registered later
_FIRST = (0,)


class Writers:
    """All writer schemas of a topic's values that are known so far, oldest first; with `keys`, of its keys.

    A writer is a record type of a schema, and has a number: see `decode.schema_id_of`. A schema in Avro or JSON Schema has one
    type. Of a Protobuf file the declared message is known at once, or its first one; others when a record names them.
    """

    def __init__(self, topic: Topic, registry: Registry | None, *, keys: bool = False) -> None:
        self._topic, self._registry, self._is_key = topic, registry, keys
        self._format = ValueFormat(topic.key_format.value) if keys else topic.value_format
        self._strategy = SubjectStrategy.TOPIC if keys else topic.subject_strategy
        self._record_name = None if keys else topic.record_name
        self._writers: dict[int, Written] = {}
        self._files: dict[int, ProtobufSchema] = {}
        self._frames: dict[bytes, int] = {}
        self._guids: dict[bytes, int] = {}
        self._refused: dict[bytes, Reason] = {}
        self._verdicts: dict[int, Reason | None] = {}  # by schema id; None: its records can be read
        self._judged: set[tuple[int, str]] = set()
        self.problems: dict[int, str] = {}

    @property
    def registry(self) -> Registry | None:
        """Where the schemas are."""
        return self._registry

    @property
    def is_framed(self) -> bool:
        """Whether the bytes begin with a schema id, or a header names it."""
        return self._format not in UNFRAMED

    @property
    def may_begin_without(self) -> bool:
        """Whether no version is known before a record has it, so that a run begins without any."""
        return self._strategy is SubjectStrategy.RECORD and self._record_name is None

    @property
    def versions(self) -> tuple[tuple[int, Struct], ...]:
        """The row type of each writer, by its number; for a format without a registry, one."""
        if not self.is_framed:
            return ((0, Struct((Field("value", Primitive(UNFRAMED[self._format])),))),)
        return tuple((number, writer.row) for number, writer in self._writers.items())

    def is_whole(self, number: int) -> bool:
        """Whether this writer's records are no objects of fields but one value each."""
        return not self.is_framed or self._writers[number].is_whole

    def refresh(self) -> bool:
        """Ask the registry for the versions of the topic's subjects; returns whether there are new writers."""
        if self._registry is None or not self.is_framed:
            return False
        known = len(self._writers)
        for subject in self._subjects():
            for version in self._registry.versions(subject, deleted=True):
                is_new = (version.id, subject) not in self._judged
                if is_new and self._verdicts.get(version.id, Reason.UNKNOWN_SCHEMA) in _MAY_CHANGE:
                    self._judged.add((version.id, subject))
                    self._refused = {f: r for f, r in self._refused.items() if r not in _MAY_CHANGE}
                    self._add(version.id, {subject})
                    self._name_first(version.id, version.guid)
        return len(self._writers) > known

    def resolve(self, frame: bytes) -> None:
        """Find out about a frame that a record has: afterwards it names a writer, or is refused with a reason."""
        if self._registry is None or frame in self._frames or frame in self._refused:
            return
        head = GUID_BYTES if frame[0] == GUID_MAGIC else PREFIX_BYTES
        schema_id: int | None = int.from_bytes(frame[1:PREFIX_BYTES], "big")
        if frame[0] == GUID_MAGIC:
            schema_id = self._registry.id_of_guid(str(uuid.UUID(bytes=frame[1:GUID_BYTES])))
        if schema_id is None:
            self._refused[frame] = Reason.UNKNOWN_SCHEMA
            return
        if frame[0] == GUID_MAGIC:
            self._guids[frame] = schema_id
        if schema_id not in self._verdicts:
            self.refresh()
        if schema_id not in self._verdicts:
            self._meet(schema_id)
        self._name(frame, schema_id, message_index(frame, head) if self._is_protobuf else (_FIRST, head))

    def decoding(self, target: Struct, unfit: Mapping[int, object], tombstones: Tombstones) -> Decoding:
        """How to decode into `target`; writers in `unfit`, by number, do not fit it and are refused."""
        ddl = spark_struct(Struct((*target.fields, Field(DECODED, Primitive(Kind.BOOLEAN))))).simpleString()
        column = "key" if self._is_key else "value"
        if not self.is_framed:
            name = target.fields[0].name
            made = {
                ValueFormat.TEXT: unframed.text,
                ValueFormat.JSON: unframed.json_text,
                ValueFormat.BYTES: unframed.raw,
            }
            return Decoding(row_type=ddl, unframed=made[self._format](name), tombstones=tombstones, column=column)
        fitting = {number: writer for number, writer in self._writers.items() if number not in unfit}
        misfits = {f: Reason.INCOMPATIBLE_SCHEMA for f, number in self._frames.items() if number in unfit}
        batched = None
        if self._is_protobuf:
            from frazil.ingest.decode_protobuf import batch_of  # loads Arrow and Protobuf

            batched = batch_of({number: w.reading(target) for number, w in fitting.items() if w.reading}, target)
        return Decoding(
            row_type=ddl,
            frames={f: number for f, number in self._frames.items() if number not in unfit},
            guids=dict(self._guids),
            refused={**self._refused, **misfits},
            bodies={number: w.body(target) for number, w in fitting.items() if w.body},
            batched=batched,
            tombstones=tombstones,
            column=column,
            header=KEY_HEADER if self._is_key else VALUE_HEADER,
            is_protobuf=self._is_protobuf,
            unsure=target if self._format is ValueFormat.AVRO else Struct(()),
        )

    @property
    def _is_protobuf(self) -> bool:
        return self._format is ValueFormat.PROTOBUF

    @property
    def _prefix(self) -> str:
        """What stands before a record's name in its subject."""
        return f"{self._topic.name}-" if self._strategy is SubjectStrategy.TOPIC_RECORD else ""

    def _subjects(self) -> Iterable[str]:
        """The subjects that can be known before a record is met."""
        assert self._registry is not None
        if self._strategy is SubjectStrategy.TOPIC:
            return (f"{self._topic.name}-{'key' if self._is_key else 'value'}",)
        if self._record_name is not None:
            return (f"{self._prefix}{self._record_name}",)
        return [s for s in self._registry.subjects() if s.startswith(self._prefix)] if self._prefix else ()

    def _meet(self, schema_id: int) -> None:
        """Add the schema of an id that a record names and no subject of ours has so far."""
        assert self._registry is not None
        if self._strategy is SubjectStrategy.TOPIC:
            self._verdicts[schema_id] = Reason.FOREIGN_SCHEMA if self._exists(schema_id) else Reason.UNKNOWN_SCHEMA
            return
        subjects = set(self._registry.subjects_of(schema_id))
        if subjects:
            self._add(schema_id, subjects)
        else:
            self._verdicts[schema_id] = Reason.UNKNOWN_SCHEMA

    def _exists(self, schema_id: int) -> bool:
        assert self._registry is not None
        try:
            return self._registry.schema(schema_id) is not None
        except UnreadableSchema:  # in a language that we do not know
            return True

    def _add(self, schema_id: int, subjects: set[str]) -> None:
        """Read a schema; its types become writers as they are named."""
        assert self._registry is not None
        try:
            schema = self._registry.schema(schema_id)
            if schema is None:  # deleted between the two questions
                self._verdicts[schema_id] = Reason.UNKNOWN_SCHEMA
                return
            references = self._registry.resolve_references(schema)
            if schema.type.value != _LANGUAGES[self._format]:
                raise UnreadableSchema(f"it is in {schema.type}, and the topic's format is {self._format}")
            if self._is_protobuf:
                from frazil.ingest.proto_descriptors import compile_proto  # loads Protobuf

                self._files[schema_id] = compile_proto(schema.text, references)
            else:
                made = avro_type if self._format is ValueFormat.AVRO else json_type
                written = made(schema.text, references)
                if not self._is_ours(written.name, subjects):
                    self._verdicts[schema_id] = Reason.FOREIGN_SCHEMA
                    return
                self._writers[schema_id] = written
        except UnreadableSchema as problem:
            self._verdicts[schema_id], self.problems[schema_id] = Reason.UNREADABLE_SCHEMA, str(problem)
            return
        self._verdicts[schema_id] = None

    def _is_ours(self, name: str, subjects: set[str]) -> bool:
        """Whether a record of this name, in these subjects, is one that the declaration means."""
        if self._strategy is SubjectStrategy.TOPIC:
            return True
        if self._record_name is not None and name and name != self._record_name:
            return False
        wanted = self._record_name or name
        return f"{self._prefix}{wanted}" in subjects if wanted else any(s.startswith(self._prefix) for s in subjects)

    def _name_first(self, schema_id: int, guid: str | None) -> None:
        """Note the frames of the schema's type that is known at once."""
        paths: Sequence[tuple[int, ...] | None] = [None]
        if schema_id in self._files:
            named = self._files[schema_id].indexes.items()
            paths = [path for path, name in named if name == self._record_name or path == _FIRST][-1:]
        for path in paths:
            heads = [prefixed(schema_id, b"", path), *([guid_header(guid, path)] if guid else [])]
            if path == _FIRST:
                heads += [head[:-1] + b"\x02\x00" for head in heads]  # the long form
            for head in heads:
                self._name(head, schema_id, (path or _FIRST, len(head)))
                if head[0] == GUID_MAGIC:
                    self._guids[head] = schema_id

    def _name(self, frame: bytes, schema_id: int, index: tuple[tuple[int, ...], int] | FrameProblem) -> None:
        """Note which writer a frame names, or why it is refused."""
        verdict = self._verdicts[schema_id]
        if verdict is None and not self._is_protobuf:
            self._frames[frame] = schema_id
            return
        number = verdict if verdict is not None else self._type(schema_id, index)
        if isinstance(number, Reason):
            self._refused[frame] = number
        else:
            self._frames[frame] = number

    def _type(self, schema_id: int, index: tuple[tuple[int, ...], int] | FrameProblem) -> int | Reason:
        """The number of the writer of a message type, which becomes one if it is not; or why it cannot."""
        file = self._files[schema_id]
        name = file.indexes.get(index[0]) if not isinstance(index, FrameProblem) else None
        if name is None:
            return Reason.BAD_MESSAGE_INDEX
        number = list(file.indexes.values()).index(name) << 32 | schema_id
        if number in self._writers:
            return number
        if self._strategy is not SubjectStrategy.TOPIC and not self._is_ours(name, self._subjects_of(schema_id)):
            return Reason.FOREIGN_SCHEMA
        try:
            self._writers[number] = protobuf_type(file, name)
        except UnreadableSchema as problem:
            self.problems[schema_id] = str(problem)
            return Reason.UNREADABLE_SCHEMA
        return number

    def _subjects_of(self, schema_id: int) -> set[str]:
        assert self._registry is not None
        return set(self._registry.subjects_of(schema_id))


_LANGUAGES = {ValueFormat.AVRO: "avro", ValueFormat.JSON_SCHEMA: "json", ValueFormat.PROTOBUF: "protobuf"}
