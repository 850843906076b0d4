"""What the registry said of a topic's schemas: which writers there are, and which frames name them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping, Sequence
from typing import TypeVar

from frazil.clients.registry.client import Registry
from frazil.clients.registry.retry import several
from frazil.clients.registry.schemas import RegisteredSchema, SubjectVersion
from frazil.declaration.options import ValueFormat
from frazil.decode.writers.record_type import UNREADABLE, RecordType, why
from frazil.decode.writers.seen_frames import MOST
from frazil.decode.writers.subjects import Ownership
from frazil.errors import UnreadableSchema
from frazil.schemas.reasons import Reason
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


class KnownWriters:
    """What the registry said of a topic's schemas: writers, the frames that name them, and the verdict on all others.

    `made` returns the record type of a schema in this `language`: of its text and references.

    Of schemas of other subjects, and of ids that the registry does not have, the newest few thousand are remembered. Others are
    unknown, and asked for.
    """

    def __init__(
        self,
        language: str,
        value_format: ValueFormat,
        owner: Ownership,
        registry: Registry | None,
        made: Callable[[str, Mapping[str, str]], RecordType] | None = None,
    ) -> None:
        self._language, self._format, self._owner = language, value_format, owner
        self._registry, self._made = registry, made
        self.writers: dict[int, RecordType] = {}
        self.frames: MutableMapping[bytes, int] = {}
        self.guids: Recent[bytes, int] = Recent(10 * MOST)
        self.refused: Recent[bytes, Reason] = Recent(4 * MOST)
        self._verdicts: dict[int, Reason | None] = {}  # by schema id; None: its records can be read
        self._strangers: Recent[int, Reason] = Recent(10 * MOST)  # by schema id, of what is not in our one subject
        self._judged: set[tuple[int, str]] = set()
        self.problems: dict[int, str] = {}

    @property
    def may_begin_without(self) -> bool:
        """Whether no type that is known at once can be read, and records may name another one."""
        return False

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
        if frame[0] == GUID_MAGIC:
            self.guids[frame] = schema_id
        self._name(frame, schema_id)

    def _add(self, schema_id: int, subjects: set[str]) -> None:
        """Read a schema; its types become writers as they are named. An outage leaves nothing behind."""
        assert self._registry is not None
        try:
            schema = self._registry.schema(schema_id)
            if schema is None:  # deleted between the two questions
                return
            references = self._registry.resolve_references(schema)
            if schema.type.value != self._language:
                raise UnreadableSchema(f"it is in {schema.type}, and the topic's format is {self._format}")
            self._verdicts[schema_id] = self._read(schema, references, subjects)
        except UNREADABLE as problem:
            self._verdicts[schema_id], self.problems[schema_id] = Reason.UNREADABLE_SCHEMA, why(problem)
        self._judged |= {(schema_id, subject) for subject in subjects}

    def _read(self, schema: RegisteredSchema, references: Mapping[str, str], subjects: set[str]) -> Reason | None:
        """Read a schema; return why its records cannot be read."""
        assert self._made is not None
        written = self._made(schema.text, references)
        if not self._owner.owns(written.name, subjects):
            return Reason.FOREIGN_SCHEMA
        self.writers[schema.id] = written
        return None

    def _name_first(self, schema_id: int, guid: str | None) -> None:
        """Note the frames of the schema's type that is known at once."""
        for path in self._paths(schema_id):
            heads = [prefixed(schema_id, b"", path), *([guid_header(guid, path)] if guid else [])]
            if path == FIRST:
                heads += [head[:-1] + b"\x02\x00" for head in heads]  # the long form
            for head in heads:
                self._name(head, schema_id)
                if head[0] == GUID_MAGIC:
                    self.guids[head] = schema_id

    def _paths(self, schema_id: int) -> Sequence[tuple[int, ...] | None]:
        """Return the message index of the type that is known at once; None for a schema of one type."""
        return [None]

    def _name(self, frame: bytes, schema_id: int) -> None:
        """Note which writer a frame names, or why it is refused."""
        verdict = self._verdicts[schema_id]
        number = verdict if verdict is not None else self._writer(frame, schema_id)
        if isinstance(number, Reason):
            self.refused[frame] = number
        else:
            self._note(frame, number)

    def _writer(self, frame: bytes, schema_id: int) -> int | Reason:
        """Return the number of the writer that a frame names, or why there is none."""
        return schema_id

    def _note(self, frame: bytes, number: int) -> None:
        self.frames[frame] = number


def _id_in(frame: bytes) -> int:
    return int.from_bytes(frame[1:PREFIX_BYTES], "big")
