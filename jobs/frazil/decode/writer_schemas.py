"""The writer schemas of a topic's values, or keys: which there are, what rows they make, how their records are decoded."""

from __future__ import annotations

import uuid
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from frazil.clients.registry.client import Registry
from frazil.clients.registry.subjects import several
from frazil.declaration.options import SubjectStrategy, Tombstones, ValueFormat
from frazil.declaration.topic import Topic
from frazil.decode import raw
from frazil.decode.decoding import DECODED, Decoding
from frazil.decode.met import MOST, Met
from frazil.decode.occurring import Occurring
from frazil.decode.recent import Recent
from frazil.decode.record_type import Written, avro_type, json_type, protobuf_type
from frazil.decode.spark_types import spark_struct
from frazil.decode.subjects import Ownership
from frazil.errors import UnreadableSchema
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.schemas.wire_format import (
    GUID_BYTES,
    GUID_MAGIC,
    KEY_HEADER,
    PREFIX_BYTES,
    VALUE_HEADER,
    FrameProblem,
    guid_header,
    is_padded,
    message_index,
    prefixed,
)

if TYPE_CHECKING:
    from frazil.schemas.protobuf import ProtobufSchema

UNFRAMED = {ValueFormat.JSON: Kind.STRING, ValueFormat.TEXT: Kind.STRING, ValueFormat.BYTES: Kind.BINARY}
_MAY_CHANGE = (Reason.UNKNOWN_SCHEMA, Reason.FOREIGN_SCHEMA)  # by what is registered later
_FIRST = (0,)


class TooMany(Exception):
    """A batch has more frames than are asked for, and only asking would tell what they are."""


class Writers:
    """All writer schemas of a topic's values that are known so far, oldest first; with `keys`, of its keys.

    A writer is a record type of a schema, and has a number: see `decode.schema_id_of`. A schema in Avro or JSON Schema has one
    type. Of a Protobuf file the declared message is known at once, or its first one; others when a record names them.

    The registry is asked by `refresh` and by `learn` alone. What it said of schemas of other subjects, and of ids that it does not
    have, is remembered of the newest few thousand, and of padded indexes the newest `MOST`. Others are unknown, and asked for.
    """

    def __init__(self, topic: Topic, registry: Registry | None, *, keys: bool = False) -> None:
        self._registry, self._is_key, self._owner = registry, keys, Ownership(topic, keys=keys)
        self._format = ValueFormat(topic.key_format.value) if keys else topic.value_format
        self._writers: dict[int, Written] = {}
        self._files: dict[int, ProtobufSchema] = {}
        self._padded: Recent[bytes, int] = Recent(MOST)  # of one path there may be thousands
        self._frames: ChainMap[bytes, int] = ChainMap({}, self._padded)
        self._guids: Recent[bytes, int] = Recent(10 * MOST)
        self._occurring = Occurring()
        self._refused: Recent[bytes, Reason] = Recent(4 * MOST)
        self._verdicts: dict[int, Reason | None] = {}  # by schema id; None: its records can be read
        self._strangers: Recent[int, Reason] = Recent(10 * MOST)  # by schema id, of what is not in our one subject
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
        return self._owner.may_begin_without

    @property
    def versions(self) -> tuple[tuple[int, Struct], ...]:
        """The row type of each writer, by its number; for a format without a registry, one."""
        if not self.is_framed:
            return ((0, Struct((Field("value", Primitive(UNFRAMED[self._format])),))),)
        return tuple((number, writer.row) for number, writer in self._writers.items())

    def is_single_value(self, number: int) -> bool:
        """Whether this writer's records are no objects of fields but one value each."""
        return not self.is_framed or self._writers[number].is_single_value

    def refresh(self) -> bool:
        """Ask the registry for the versions of the topic's subjects; returns whether there are new writers."""
        if self._registry is None or not self.is_framed:
            return False
        registry, known, subjects = self._registry, len(self._writers), self._owner.subjects(self._registry)
        listed = several(lambda subject: registry.versions(subject, deleted=True), subjects)
        found = [(version, subject) for subject, versions in zip(subjects, listed, strict=True) for version in versions]
        new = [(version, s) for version, s in found if (version.id, s) not in self._judged]
        new = [(version, s) for version, s in new if self._verdicts.get(version.id, _MAY_CHANGE[0]) in _MAY_CHANGE]
        registry.prefetch(version.id for version, _ in new)
        for version, subject in new:
            self._reconsider(version.id)
            self._add(version.id, {subject})
            if version.id in self._verdicts:
                self._name_first(version.id, version.guid)
        return len(self._writers) > known

    def learn(self, met: Met) -> bool:
        """Find out about frames that records have and that `decoding` left out; whether it is another one then.

        Which ids the topic has is asked first. Of an id that is not the topic's, the registry is asked whether it has it, for all
        at a time. Where there are too many, all but those of the topic are unknown to us without that question; where only that
        question would tell, this raises `TooMany`. Raises `RegistryUnavailable`, which is no verdict.
        """
        numbers = [self._frames[frame] for frame in met.waiting if frame in self._frames]
        self._occurring.meet(numbers)
        is_other = bool(numbers)
        if self._registry is None or (not met.unknown and met.is_all):
            return is_other
        is_other = self.refresh() or is_other
        if not met.is_all:
            if self._is_protobuf or met.has_guids or not self._owner.has_one_subject:
                raise TooMany
            return is_other
        before = {frame: self._refused.get(frame, Reason.UNKNOWN_SCHEMA) for frame in met.unknown}
        self._ask(met.unknown)
        self._occurring.meet(self._frames[frame] for frame in met.unknown if frame in self._frames)
        after = {frame: self._refused.get(frame, Reason.UNKNOWN_SCHEMA) for frame in met.unknown}
        return is_other or before != after or any(frame in self._frames for frame in met.unknown)

    def recall(self, schema_ids: Collection[int]) -> None:
        """Begin with what an earlier run decoded, see `Occurring.recall`."""
        self._occurring.recall(schema_ids, self._writers)

    def forget(self) -> bool:
        """Forget which writers were met, if they are more than a few; whether `decoding` has fewer then."""
        return self._occurring.forget()

    def decoding(self, target: Struct, unfit: Mapping[int, object], tombstones: Tombstones) -> Decoding:
        """How to decode into `target`; writers in `unfit`, by number, do not fit it and are refused."""
        ddl = spark_struct(Struct((*target.fields, Field(DECODED, Primitive(Kind.BOOLEAN))))).simpleString()
        column = "key" if self._is_key else "value"
        if not self.is_framed:
            name = target.fields[0].name
            made = {
                ValueFormat.TEXT: raw.text,
                ValueFormat.JSON: raw.json_text,
                ValueFormat.BYTES: raw.raw,
            }
            return Decoding(row_type=ddl, unframed=made[self._format](name), tombstones=tombstones, column=column)
        fitting = {number: writer for number, writer in self._writers.items() if number not in unfit}
        misfits = {f: Reason.INCOMPATIBLE_SCHEMA for f, number in self._frames.items() if number in unfit}
        decoded = self._occurring.of(list(fitting))
        fitting = {number: writer for number, writer in fitting.items() if number in decoded}
        batched = None
        if self._is_protobuf:
            from frazil.decode.protobuf import batch_of  # loads Arrow and Protobuf

            batched = batch_of({number: w.reading(target) for number, w in fitting.items() if w.reading}, target)
        return Decoding(
            row_type=ddl,
            frames={f: number for f, number in self._frames.items() if number in decoded},
            waiting={f for f, number in self._frames.items() if number not in decoded and number not in unfit},
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

    def _reconsider(self, schema_id: int) -> None:
        """Forget verdicts that a version which is registered now may change."""
        self._strangers.pop(schema_id, None)
        for frame in [f for f, reason in self._refused.items() if reason in _MAY_CHANGE]:
            del self._refused[frame]

    def _ask(self, frames: Iterable[bytes]) -> None:
        """Give each frame a writer or a verdict. All that is asked of the registry is asked a few at a time."""
        assert self._registry is not None
        registry, open_frames = self._registry, [f for f in frames if f not in self._frames]
        guids = [f[:GUID_BYTES] for f in open_frames if f[0] == GUID_MAGIC and f[:GUID_BYTES] not in self._guids]
        of_guid = several(lambda head: registry.id_of_guid(str(uuid.UUID(bytes=head[1:]))), dict.fromkeys(guids))
        named = dict(zip(dict.fromkeys(guids), of_guid, strict=True)) | self._guids
        ids = {f: named.get(f[:GUID_BYTES]) if f[0] == GUID_MAGIC else _id_in(f) for f in open_frames}
        wanted = dict.fromkeys(i for i in ids.values() if i is not None and self._is_open(i))
        for number, subjects in zip(wanted, several(registry.subjects_of, wanted), strict=True):
            self._meet(number, set(subjects))
        for frame, schema_id in ids.items():
            if schema_id is not None:
                self._name_as(frame, schema_id)

    def _is_open(self, schema_id: int) -> bool:
        """Whether only asking for an id tells whose it is."""
        if self._owner.has_one_subject:
            return schema_id not in self._verdicts and schema_id not in self._strangers
        return self._verdicts.get(schema_id, _MAY_CHANGE[0]) in _MAY_CHANGE

    def _meet(self, schema_id: int, subjects: set[str]) -> None:
        """Judge an id that a record names and no subject that we know of has, by the subjects that do."""
        if self._owner.has_one_subject or not subjects:
            self._strangers[schema_id] = Reason.FOREIGN_SCHEMA if subjects else Reason.UNKNOWN_SCHEMA
        elif any((schema_id, subject) not in self._judged for subject in subjects):
            self._reconsider(schema_id)
            self._add(schema_id, subjects)

    def _name_as(self, frame: bytes, schema_id: int) -> None:
        """Note what a frame names, by the verdict on its schema."""
        if schema_id not in self._verdicts:
            if self._strangers.get(schema_id) is Reason.FOREIGN_SCHEMA:
                self._refused[frame] = Reason.FOREIGN_SCHEMA
            return
        head = PREFIX_BYTES
        if frame[0] == GUID_MAGIC:
            head, self._guids[frame] = GUID_BYTES, schema_id
        self._name(frame, schema_id, message_index(frame, head) if self._is_protobuf else (_FIRST, head))

    def _add(self, schema_id: int, subjects: set[str]) -> None:
        """Read a schema; its types become writers as they are named. An outage leaves nothing behind."""
        assert self._registry is not None
        try:
            schema = self._registry.schema(schema_id)
            if schema is None:  # deleted between the two questions
                return
            references = self._registry.resolve_references(schema)
            if schema.type.value != _LANGUAGES[self._format]:
                raise UnreadableSchema(f"it is in {schema.type}, and the topic's format is {self._format}")
            if self._is_protobuf:
                from frazil.decode.protobuf_compiler import compile_proto  # loads Protobuf

                self._files[schema_id] = compile_proto(schema.text, references)
            else:
                made = avro_type if self._format is ValueFormat.AVRO else json_type
                written = made(schema.text, references)
                if not self._owner.is_ours(written.name, subjects):
                    self._verdicts[schema_id] = Reason.FOREIGN_SCHEMA
                else:
                    self._writers[schema_id], self._verdicts[schema_id] = written, None
            self._verdicts.setdefault(schema_id, None)
        except UnreadableSchema as problem:
            self._verdicts[schema_id], self.problems[schema_id] = Reason.UNREADABLE_SCHEMA, str(problem)
        self._judged |= {(schema_id, subject) for subject in subjects}

    def _name_first(self, schema_id: int, guid: str | None) -> None:
        """Note the frames of the schema's type that is known at once."""
        paths: Sequence[tuple[int, ...] | None] = [None]
        if schema_id in self._files:
            named = self._files[schema_id].indexes.items()
            paths = [path for path, name in named if name == self._owner.record_name or path == _FIRST][-1:]
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
            of_path = frame[GUID_BYTES if frame[0] == GUID_MAGIC else PREFIX_BYTES :]
            (self._padded if is_padded(of_path) else self._frames)[frame] = number

    def _type(self, schema_id: int, index: tuple[tuple[int, ...], int] | FrameProblem) -> int | Reason:
        """The number of the writer of a message type, which becomes one if it is not; or why it cannot."""
        file = self._files[schema_id]
        name = file.indexes.get(index[0]) if not isinstance(index, FrameProblem) else None
        if name is None:
            return Reason.BAD_MESSAGE_INDEX
        number = list(file.indexes.values()).index(name) << 32 | schema_id
        if number in self._writers:
            return number
        if self._owner.record_name not in (None, name):
            return Reason.FOREIGN_SCHEMA
        if self._owner.strategy is not SubjectStrategy.TOPIC and not self._owner.is_ours(
            name, self._subjects_of(schema_id)
        ):
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


def _id_in(frame: bytes) -> int:
    return int.from_bytes(frame[1:PREFIX_BYTES], "big")


_LANGUAGES = {ValueFormat.AVRO: "avro", ValueFormat.JSON_SCHEMA: "json", ValueFormat.PROTOBUF: "protobuf"}
