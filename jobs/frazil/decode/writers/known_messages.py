"""What the registry said of a topic's Protobuf schemas: the message types of their files, as records name them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from frazil.clients.registry.client import Registry
from frazil.clients.registry.schemas import RegisteredSchema
from frazil.declaration.options import SubjectStrategy, ValueFormat
from frazil.decode.writers.known_writers import FIRST, KnownWriters, Recent
from frazil.decode.writers.record_type import UNREADABLE, protobuf_type, why
from frazil.decode.writers.seen_frames import MOST
from frazil.decode.writers.subjects import Ownership
from frazil.schemas.reasons import Reason
from frazil.schemas.wire_format import (
    GUID_BYTES,
    GUID_MAGIC,
    PREFIX_BYTES,
    FrameProblem,
    is_padded,
    message_index,
)

if TYPE_CHECKING:
    from frazil.schemas.protobuf import ProtobufSchema


class KnownMessages(KnownWriters):
    """The message types of the files that the registry has.

    With `of_one_type`, records are of one message type: the declared one, or the one that is known first. Of padded indexes the
    newest `MOST` are remembered.
    """

    def __init__(self, owner: Ownership, registry: Registry | None, *, of_one_type: bool) -> None:
        super().__init__("protobuf", ValueFormat.PROTOBUF, owner, registry)
        self._of_one_type = of_one_type
        self._files: dict[int, ProtobufSchema] = {}
        self._padded: Recent[bytes, int] = Recent(MOST)  # of one path there may be thousands
        self.frames = ChainMap({}, self._padded)

    @property
    def may_begin_without(self) -> bool:
        """Whether no message type that is known at once can be read, and records may name another one of its file."""
        has_others = any(len(file.indexes) > 1 for file in self._files.values())
        return not self.writers and self._owner.record_name is None and has_others

    def _read(self, schema: RegisteredSchema, references: Mapping[str, str], subjects: set[str]) -> Reason | None:
        from frazil.decode.protobuf.compiler import compile_proto  # loads Protobuf

        self._files[schema.id] = compile_proto(schema.text, references)
        return None

    def _paths(self, schema_id: int) -> Sequence[tuple[int, ...] | None]:
        if schema_id not in self._files:
            return [None]
        named = self._files[schema_id].indexes.items()
        return [path for path, name in named if name == self._owner.record_name or path == FIRST][-1:]

    def _writer(self, frame: bytes, schema_id: int) -> int | Reason:
        head = GUID_BYTES if frame[0] == GUID_MAGIC else PREFIX_BYTES
        index = message_index(frame, head)
        return Reason.BAD_MESSAGE_INDEX if isinstance(index, FrameProblem) else self._type(schema_id, index[0])

    def _type(self, schema_id: int, path: tuple[int, ...]) -> int | Reason:
        """Return the number of the writer of a message type, added if it is new; or the reason why it cannot be one."""
        file = self._files[schema_id]
        name = file.indexes.get(path)
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

    def _note(self, frame: bytes, number: int) -> None:
        of_path = frame[GUID_BYTES if frame[0] == GUID_MAGIC else PREFIX_BYTES :]
        (self._padded if is_padded(of_path) else self.frames)[frame] = number
