"""The writers of a topic whose schemas are in the registry, and what the registry said of them."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from frazil.clients.registry.client import Registry
from frazil.clients.registry.http import several
from frazil.clients.registry.schemas import RegisteredSchema
from frazil.declaration.options import SubjectStrategy
from frazil.declaration.route import Route
from frazil.declaration.topic import Topic
from frazil.decode.avro.avro_decoder import RegisteredAvro
from frazil.decode.decoded_columns import schema_id_of
from frazil.decode.frames.framed import Registered
from frazil.decode.json.json_decoder import RegisteredJson, is_framed_null
from frazil.decode.writers.record_type import UNREADABLE, RecordType, avro_type, json_type, why
from frazil.decode.writers.seen_frames import MOST, SeenFrames
from frazil.decode.writers.writer_schemas import FEW, FramedWriters, TooMany
from frazil.envelopes.envelope import Envelope
from frazil.errors import IncompatibleSchema, UnreadableSchema
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct
from frazil.schemas.wire_format import GUID_BYTES, GUID_MAGIC, PREFIX_BYTES, guid_header, prefixed

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MAY_CHANGE = (Reason.UNKNOWN_SCHEMA, Reason.FOREIGN_SCHEMA)  # by what is registered later
FIRST = (0,)
"""The message index of a file's first message."""


class Recent(dict[K, V]):
    """A dict of at most `most` entries: those that were set last. Only `[]=` and `del` change it."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        while len(self) > self._most:
            del self[next(iter(self))]


class RegisteredWriters(FramedWriters):
    """The writers of a topic's values, or keys, the frames that name them, and the verdict on all other frames.

    Of schemas of other subjects, and of ids that the registry does not have, the newest few thousand are remembered. Others are
    unknown, and asked for. The registry is asked by `refresh` and by `learn` alone.
    """

    language: ClassVar[str]
    """The format's name in the registry."""
    record_type: ClassVar[Callable[..., RecordType]]
    """The function that makes the type of a schema, which has one."""

    def __init__(self, topic: Topic, registry: Registry | None, envelope: Envelope, *, is_key: bool) -> None:
        super().__init__(registry, envelope, is_key=is_key)
        self._topic, of = topic.name, topic.side(is_key=is_key)
        self._format, self._strategy, self._record_name = of.kind, of.subject_strategy, of.record_name
        self._prefix = f"{topic.name}-" if self._strategy is SubjectStrategy.TOPIC_RECORD else ""  # of a record's name
        self._guids: Recent[bytes, int] = Recent(10 * MOST)
        self._rejected = Recent(4 * MOST)
        self._verdicts: dict[int, Reason | None] = {}  # by schema id; None: its records can be read
        self._strangers: Recent[int, Reason] = Recent(10 * MOST)  # by schema id, of what is not in our one subject
        self._judged: set[tuple[int, str]] = set()
        self.route: Route | None = None
        """The route by record names, if one is declared."""

    @property
    def may_begin_without(self) -> bool:
        """Return whether no subject is known before a record names one."""
        return self._strategy is SubjectStrategy.RECORD and self._record_name is None

    @property
    def _has_one_subject(self) -> bool:
        """Return whether the topic has one subject, so that no schema without a version there is the topic's."""
        return self._strategy is SubjectStrategy.TOPIC or self._record_name is not None

    def subjects(self, registry: Registry) -> Sequence[str]:
        """Return the subjects that can be known before a record is seen. Raises `RegistryUnavailable`."""
        if self._strategy is SubjectStrategy.TOPIC:
            return (f"{self._topic}-{'key' if self.is_key else 'value'}",)
        if self._record_name is not None:
            return (f"{self._prefix}{self._record_name}",)
        if not self._prefix:
            return ()
        found = [subject for subject in registry.subjects() if subject.startswith(self._prefix)]
        return [s for s in found if self.route is None or not self.route.is_others(s.removeprefix(self._prefix))]

    def _others(self, registry: Registry) -> Sequence[str]:
        """Return the subjects that may have other tables' types."""
        if self.route is None or self._strategy is SubjectStrategy.TOPIC:
            return ()
        if not self._prefix:
            return self.route.others
        own = self.subjects(registry)
        return [s for s in registry.subjects() if s.startswith(self._prefix) and s not in own]

    def _owns(self, name: str, subjects: Collection[str]) -> bool:
        """Return whether a record of this name, whose schema is in these subjects, is one that the declaration means."""
        if self._strategy is SubjectStrategy.TOPIC:
            return True
        if self.route is not None and self.route.is_others(name):
            return False
        if self._record_name is not None and name and name != self._record_name:
            return False
        wanted = self._record_name or name
        # No serialiser registers a value without a name by `topic_record`: the subject is that of keys, or of another topic.
        return f"{self._prefix}{wanted}" in subjects if wanted else bool(subjects) and not self._prefix

    def refresh(self, *, deleted: bool = False) -> bool:
        """Ask the registry for the versions of the topic's subjects; returns whether there are new writers.

        A softly deleted version counts when a record names it; with `deleted`, or if a subject has no others, at once. Raises
        `InvalidInput` if there are versions and the envelope can unwrap none of them.
        """
        if self.registry is None:
            return False
        registry, known, subjects = self.registry, len(self.types), self.subjects(self.registry)
        listed = several(
            lambda subject: (not deleted and registry.versions(subject)) or registry.versions(subject, deleted=True),
            subjects,
        )
        found = [(version, subject) for subject, versions in zip(subjects, listed, strict=True) for version in versions]
        new = [(version, subject) for version, subject in found if self._is_undecided(version.id, subject)]
        registry.prefetch(version.id for version, _ in new)
        for version, subject in new:
            self._reconsider(version.id)
            self._add(version.id, {subject})
            if version.id in self._verdicts:
                self._name_first(version.id, version.guid)
        self._find_others()
        self._check_envelope()
        return len(self.types) > known

    def _find_others(self) -> None:
        """Note the frames of other tables' types, so that no batch is staged again when a record has one."""
        assert self.registry is not None
        listed = several(self.registry.versions, self._others(self.registry))
        versions = [version for versions in listed for version in versions]
        new = [one for one in versions if one.id not in self._verdicts and one.id not in self._strangers]
        self.registry.prefetch(version.id for version in new)
        for version in new:
            self._strangers[version.id] = Reason.FOREIGN_SCHEMA
            for head in self._heads(version.id, version.guid, None if not self.is_protobuf else FIRST):
                self._name_as(head, version.id)

    def learn(self, seen: SeenFrames) -> bool:
        """Find out about frames that records have and that `decoder` omitted; return whether `decoder` differs then.

        The ids that the topic has are asked for first. For the other ids the registry is asked whether it has them, for all at a
        time. Where there are too many, all but those of the topic count as unknown without that question; where only that
        question would decide, this raises `TooMany`. Raises `RegistryUnavailable`, which is no verdict.
        """
        is_other = self._occur(seen.waiting)
        if self.registry is None or (not seen.unknown and seen.is_all):
            return is_other
        before = {frame: self._rejected.get(frame, Reason.UNKNOWN_SCHEMA) for frame in seen.unknown}
        is_other = self.refresh(deleted=not seen.is_all) or is_other
        if not seen.is_all:
            if self.is_protobuf or seen.has_guids or not self._has_one_subject:
                raise TooMany
            return is_other
        self._ask(seen.unknown)
        after = {frame: self._rejected.get(frame, Reason.UNKNOWN_SCHEMA) for frame in seen.unknown}
        return self._occur(seen.unknown) or is_other or before != after

    def recall(self, schema_ids: Collection[int]) -> None:
        """Take the writers of these schemas, if they are few, for seen: an earlier run decoded them."""
        if len(schema_ids) <= FEW:
            self._seen |= {number for number in self.types if schema_id_of(number) in schema_ids}

    def decoder(
        self, target: Struct, unfit: Mapping[int, IncompatibleSchema], *, is_closed: bool = False
    ) -> Registered:
        """Return the decoder of records by the registry's schemas."""
        parts = self._parts(target, unfit.keys(), is_closed=is_closed)
        return self._decoder(parts | {"guids": dict(self._guids)})

    @abstractmethod
    def _decoder(self, parts: dict[str, Any]) -> Registered:
        """Return the decoder of the format."""

    def _is_undecided(self, schema_id: int, subject: str) -> bool:
        """Return whether a version of a subject is new, and may change the verdict on its schema."""
        is_judged = (schema_id, subject) in self._judged
        return not is_judged and self._verdicts.get(schema_id, _MAY_CHANGE[0]) in _MAY_CHANGE

    def _reconsider(self, schema_id: int) -> None:
        """Forget verdicts that a version which is registered now may change."""
        self._strangers.pop(schema_id, None)
        for frame in [f for f, reason in self._rejected.items() if reason in _MAY_CHANGE]:
            del self._rejected[frame]

    def _ask(self, frames: Iterable[bytes]) -> None:
        """Give each frame a writer or a verdict. All that is asked of the registry is asked a few at a time."""
        assert self.registry is not None
        registry, open_frames = self.registry, [f for f in frames if f not in self._frames]
        guids = [f[:GUID_BYTES] for f in open_frames if f[0] == GUID_MAGIC and f[:GUID_BYTES] not in self._guids]
        of_guid = several(lambda head: registry.id_of_guid(str(uuid.UUID(bytes=head[1:]))), dict.fromkeys(guids))
        named = dict(zip(dict.fromkeys(guids), of_guid, strict=True)) | self._guids
        ids = {
            f: named.get(f[:GUID_BYTES]) if f[0] == GUID_MAGIC else int.from_bytes(f[1:PREFIX_BYTES], "big")
            for f in open_frames
        }
        wanted = dict.fromkeys(i for i in ids.values() if i is not None and self._is_unknown(i))
        for number, subjects in zip(wanted, several(registry.subjects_of, wanted), strict=True):
            self._see(number, set(subjects))
        for frame, schema_id in ids.items():
            if schema_id is not None:
                self._name_as(frame, schema_id)

    def _is_unknown(self, schema_id: int) -> bool:
        """Return whether only the registry knows whose an id is."""
        if self._has_one_subject:
            return schema_id not in self._verdicts and schema_id not in self._strangers
        return self._verdicts.get(schema_id, _MAY_CHANGE[0]) in _MAY_CHANGE

    def _see(self, schema_id: int, subjects: set[str]) -> None:
        """Judge an id that a record names and no subject that we know of has, by the subjects that do."""
        own = (
            subjects.intersection(self.subjects(self.registry)) if self._has_one_subject and self.registry else subjects
        )
        if not own:
            self._strangers[schema_id] = Reason.FOREIGN_SCHEMA if subjects else Reason.UNKNOWN_SCHEMA
        elif any((schema_id, subject) not in self._judged for subject in own):
            self._reconsider(schema_id)
            self._add(schema_id, own)

    def _name_as(self, frame: bytes, schema_id: int) -> None:
        """Note what a frame names, by the verdict on its schema."""
        if schema_id not in self._verdicts:
            if self._strangers.get(schema_id) is Reason.FOREIGN_SCHEMA:
                self._rejected[frame] = self._foreign(frame, schema_id)
            return
        if frame[0] == GUID_MAGIC:
            self._guids[frame] = schema_id
        self._name(frame, schema_id)

    def _add(self, schema_id: int, subjects: set[str]) -> None:
        """Read a schema; its types become writers as they are named. An outage leaves nothing after."""
        assert self.registry is not None
        try:
            schema = self.registry.schema(schema_id)
            if schema is None:  # deleted between the two questions
                return
            references = self.registry.resolve_references(schema)
            if schema.type.value != self.language:
                raise UnreadableSchema(f"it is in {schema.type}, and the topic's format is {self._format}")
            self._verdicts[schema_id] = self._read(schema, references, subjects)
        except UNREADABLE as problem:
            self._verdicts[schema_id], self.problems[schema_id] = Reason.UNREADABLE_SCHEMA, why(problem)
        self._judged |= {(schema_id, subject) for subject in subjects}

    def _read(self, schema: RegisteredSchema, references: Mapping[str, str], subjects: set[str]) -> Reason | None:
        """Read a schema; return why its records cannot be read."""
        made = self.record_type(schema.text, references, connect_types=self.envelope.has_changes)
        if not self._owns(made.name, subjects):
            return Reason.FOREIGN_SCHEMA
        self.types[schema.id] = self._unwrapped(made)
        return None

    def _name_first(self, schema_id: int, guid: str | None) -> None:
        """Note the frames of the schema's type that is known at once."""
        for path in self._paths(schema_id):
            for head in self._heads(schema_id, guid, path):
                self._name(head, schema_id)
                if head[0] == GUID_MAGIC:
                    self._guids[head] = schema_id

    def _heads(self, schema_id: int, guid: str | None, path: tuple[int, ...] | None) -> list[bytes]:
        """Return the frames that name a type of a schema, by its message index if it is one of several."""
        heads = [prefixed(schema_id, b"", path), *([guid_header(guid, path)] if guid else [])]
        if path == FIRST:
            heads += [head[:-1] + b"\x02\x00" for head in heads]  # the long form
        return heads

    def _paths(self, schema_id: int) -> Sequence[tuple[int, ...] | None]:
        """Return the message index of the type that is known at once; None for a schema of one type."""
        return [None]

    def _name(self, frame: bytes, schema_id: int) -> None:
        """Note which writer a frame names, or why it is refused."""
        verdict = self._verdicts[schema_id]
        number = verdict if verdict is not None else self._writer(frame, schema_id)
        if number is Reason.FOREIGN_SCHEMA:
            self._rejected[frame] = self._foreign(frame, schema_id)
        elif isinstance(number, Reason):
            self._rejected[frame] = number
        else:
            self._note(frame, number)

    def _writer(self, frame: bytes, schema_id: int) -> int | Reason:
        """Return the number of the writer that a frame names, or why there is none."""
        return schema_id

    def _note(self, frame: bytes, number: int) -> None:
        self._frames[frame] = number

    def _foreign(self, frame: bytes, schema_id: int) -> Reason:
        """Return the verdict on a frame of a foreign schema: whether its type is another table's.

        A schema never changes, so no later answer of the registry gives its records to another table.
        """
        if self.route is None or self.registry is None:
            return Reason.FOREIGN_SCHEMA
        schema = self.registry.schema(schema_id)
        if schema is None:  # deleted between the two questions
            return Reason.UNKNOWN_SCHEMA
        try:
            references = self.registry.resolve_references(schema)
            name = self._named(frame, schema, references) if schema.type.value == self.language else None
        except UNREADABLE:
            name = None
        return Reason.ROUTE if self.route.is_elsewhere(name or None) else Reason.FOREIGN_SCHEMA

    def _named(self, frame: bytes, schema: RegisteredSchema, references: Mapping[str, str]) -> str | None:
        """Return the full name of the type that a frame names; None if it names none. Raises what reading a schema does."""
        return self.record_type(schema.text, references).name


class AvroWriters(RegisteredWriters):
    """The writers of Avro schemas."""

    language, record_type = "avro", staticmethod(avro_type)

    def _decoder(self, parts: dict[str, Any]) -> Registered:
        return RegisteredAvro(**parts)


class JsonWriters(RegisteredWriters):
    """The writers of JSON Schemas."""

    language, record_type = "json", staticmethod(json_type)

    def _decoder(self, parts: dict[str, Any]) -> Registered:
        is_key, frames = parts["side"].is_key, parts["frames"].items()
        nullable = {frame for frame, number in frames if self.types[number].has_no_value_at_null(is_key=is_key)}
        is_null = is_framed_null if parts["side"].has_changes else None
        return RegisteredJson(**parts, nullable=nullable, is_null=is_null)
