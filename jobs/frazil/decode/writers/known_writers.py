"""What the registry said of a topic's schemas: which writers there are, and which frames name them."""

from __future__ import annotations

import uuid
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from frazil.clients.registry.client import Registry
from frazil.clients.registry.retry import several
from frazil.declaration.options import SubjectStrategy, ValueFormat
from frazil.decode.writers.recent import Recent
from frazil.decode.writers.record_type import UNREADABLE, RecordType, protobuf_type, why
from frazil.decode.writers.seen_frames import MOST
from frazil.decode.writers.subjects import Ownership
from frazil.errors import UnreadableSchema
from frazil.schemas.reasons import Reason
from frazil.schemas.wire_format import (
    GUID_BYTES,
    GUID_MAGIC,
    PREFIX_BYTES,
    FrameProblem,
    guid_header,
    is_padded,
    message_index,
    prefixed,
)

if TYPE_CHECKING:
    from frazil.clients.registry.schemas import SubjectVersion
    from frazil.schemas.protobuf import ProtobufSchema

_MAY_CHANGE = (Reason.UNKNOWN_SCHEMA, Reason.FOREIGN_SCHEMA)  # by what is registered later
_FIRST = (0,)


class KnownWriters:
    """What the registry said of a topic's schemas: writers, the frames that name them, and the verdict on all others.

    `made` returns the record type of a schema, unless it is Protobuf's: text and references. With `of_one_type`, records are of one
    message type of Protobuf: the declared one, or the one that is known first.

    Of schemas of other subjects, and of ids that the registry does not have, the newest few thousand are remembered, and of
    padded indexes the newest `MOST`. Others are unknown, and asked for.
    """

    def __init__(
        self,
        value_format: ValueFormat,
        owner: Ownership,
        registry: Registry | None,
        made: Callable[[str, Mapping[str, str]], RecordType],
        *,
        of_one_type: bool = False,
    ) -> None:
        self._of_one_type = of_one_type
        self._format, self._owner, self._registry, self._made = value_format, owner, registry, made
        self.writers: dict[int, RecordType] = {}
        self._files: dict[int, ProtobufSchema] = {}
        self._padded: Recent[bytes, int] = Recent(MOST)  # of one path there may be thousands
        self.frames: ChainMap[bytes, int] = ChainMap({}, self._padded)
        self.guids: Recent[bytes, int] = Recent(10 * MOST)
        self.refused: Recent[bytes, Reason] = Recent(4 * MOST)
        self._verdicts: dict[int, Reason | None] = {}  # by schema id; None: its records can be read
        self._strangers: Recent[int, Reason] = Recent(10 * MOST)  # by schema id, of what is not in our one subject
        self._judged: set[tuple[int, str]] = set()
        self.problems: dict[int, str] = {}

    @property
    def is_protobuf(self) -> bool:
        """Whether frames hold the path of a message type."""
        return self._format is ValueFormat.PROTOBUF

    @property
    def may_begin_without(self) -> bool:
        """Whether no message type that is known at once can be read, and records may name another one of its file."""
        return (
            not self.writers
            and self._owner.record_name is None
            and any(len(f.indexes) > 1 for f in self._files.values())
        )

    def is_undecided(self, schema_id: int, subject: str) -> bool:
        """Return whether a version of a subject is new, and may change the verdict on its schema."""
        is_judged = (schema_id, subject) in self._judged
        return not is_judged and self._verdicts.get(schema_id, _MAY_CHANGE[0]) in _MAY_CHANGE

    def add(self, version: SubjectVersion, subject: str) -> None:
        """Read the schema of a version that is new, and note the frames that name it."""
        self._reconsider(version.id)
        self._add(version.id, {subject})
        if version.id in self._verdicts:
            self._name_first(version.id, version.guid)

    def _reconsider(self, schema_id: int) -> None:
        """Forget verdicts that a version which is registered now may change."""
        self._strangers.pop(schema_id, None)
        for frame in [f for f, reason in self.refused.items() if reason in _MAY_CHANGE]:
            del self.refused[frame]

    def ask(self, frames: Iterable[bytes]) -> None:
        """Give each frame a writer or a verdict. All that is asked of the registry is asked a few at a time."""
        assert self._registry is not None
        registry, open_frames = self._registry, [f for f in frames if f not in self.frames]
        guids = [f[:GUID_BYTES] for f in open_frames if f[0] == GUID_MAGIC and f[:GUID_BYTES] not in self.guids]
        of_guid = several(lambda head: registry.id_of_guid(str(uuid.UUID(bytes=head[1:]))), dict.fromkeys(guids))
        named = dict(zip(dict.fromkeys(guids), of_guid, strict=True)) | self.guids
        ids = {f: named.get(f[:GUID_BYTES]) if f[0] == GUID_MAGIC else _id_in(f) for f in open_frames}
        wanted = dict.fromkeys(i for i in ids.values() if i is not None and self._is_unknown(i))
        for number, subjects in zip(wanted, several(registry.subjects_of, wanted), strict=True):
            self._meet(number, set(subjects))
        for frame, schema_id in ids.items():
            if schema_id is not None:
                self._name_as(frame, schema_id)

    def _is_unknown(self, schema_id: int) -> bool:
        """Return whether only the registry knows whose an id is."""
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
                self.refused[frame] = Reason.FOREIGN_SCHEMA
            return
        head = PREFIX_BYTES
        if frame[0] == GUID_MAGIC:
            head, self.guids[frame] = GUID_BYTES, schema_id
        self._name(frame, schema_id, message_index(frame, head) if self.is_protobuf else (_FIRST, head))

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
            if self.is_protobuf:
                from frazil.decode.protobuf.compiler import compile_proto  # loads Protobuf

                self._files[schema_id] = compile_proto(schema.text, references)
            else:
                written = self._made(schema.text, references)
                if not self._owner.owns(written.name, subjects):
                    self._verdicts[schema_id] = Reason.FOREIGN_SCHEMA
                else:
                    self.writers[schema_id], self._verdicts[schema_id] = written, None
            self._verdicts.setdefault(schema_id, None)
        except UNREADABLE as problem:
            self._verdicts[schema_id], self.problems[schema_id] = Reason.UNREADABLE_SCHEMA, why(problem)
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
                    self.guids[head] = schema_id

    def _name(self, frame: bytes, schema_id: int, index: tuple[tuple[int, ...], int] | FrameProblem) -> None:
        """Note which writer a frame names, or why it is refused."""
        verdict = self._verdicts[schema_id]
        if verdict is None and not self.is_protobuf:
            self.frames[frame] = schema_id
            return
        number = verdict if verdict is not None else self._type(schema_id, index)
        if isinstance(number, Reason):
            self.refused[frame] = number
        else:
            of_path = frame[GUID_BYTES if frame[0] == GUID_MAGIC else PREFIX_BYTES :]
            (self._padded if is_padded(of_path) else self.frames)[frame] = number

    def _type(self, schema_id: int, index: tuple[tuple[int, ...], int] | FrameProblem) -> int | Reason:
        """Return the number of the writer of a message type, added if it is new; or the reason why it cannot be one."""
        file = self._files[schema_id]
        name = file.indexes.get(index[0]) if not isinstance(index, FrameProblem) else None
        if name is None:
            return Reason.BAD_MESSAGE_INDEX
        number = list(file.indexes.values()).index(name) << 32 | schema_id
        if number in self.writers:
            return number
        wanted = self._owner.record_name
        if wanted is None and self._of_one_type and self.writers:
            wanted = next(iter(self.writers.values())).name
        if wanted not in (None, name):
            return Reason.FOREIGN_SCHEMA
        if self._owner.strategy is not SubjectStrategy.TOPIC and not self._owner.owns(
            name, self._subjects_of(schema_id)
        ):
            return Reason.FOREIGN_SCHEMA
        try:
            self.writers[number] = protobuf_type(file, name, is_key=self._owner.is_key)
        except UNREADABLE as problem:
            self.problems[schema_id] = why(problem)
            return Reason.UNREADABLE_SCHEMA
        return number

    def _subjects_of(self, schema_id: int) -> set[str]:
        assert self._registry is not None
        return set(self._registry.subjects_of(schema_id))


def _id_in(frame: bytes) -> int:
    return int.from_bytes(frame[1:PREFIX_BYTES], "big")


_LANGUAGES = {ValueFormat.AVRO: "avro", ValueFormat.JSON_SCHEMA: "json", ValueFormat.PROTOBUF: "protobuf"}
