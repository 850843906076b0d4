"""The writers of a topic whose Protobuf schemas are in the registry: the message types of their files, as records name them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from frazil.clients.registry.client import Registry
from frazil.clients.registry.schemas import RegisteredSchema
from frazil.declaration.options import SubjectStrategy
from frazil.declaration.topic import Topic
from frazil.decode.frames.framed import Registered
from frazil.decode.writers.record_type import UNREADABLE, protobuf_type, why
from frazil.decode.writers.registered_writers import FIRST, Recent, RegisteredWriters
from frazil.decode.writers.seen_frames import MOST
from frazil.envelopes.envelope import Envelope
from frazil.schemas.reasons import Reason
from frazil.schemas.wire_format import GUID_BYTES, GUID_MAGIC, PREFIX_BYTES, FrameProblem, is_padded, message_index

if TYPE_CHECKING:
    from frazil.schemas.protobuf import ProtobufSchema


class MessageWriters(RegisteredWriters):
    """The writers of message types. Of a file the declared one is known at once, or its first one; others when records name them.

    With `of_one_type`, records are of one message type: the declared one, or the one that is known first. Of padded indexes the
    newest `MOST` are remembered.
    """

    language = "protobuf"
    is_protobuf = True

    def __init__(
        self, topic: Topic, registry: Registry | None, envelope: Envelope, *, is_key: bool, of_one_type: bool
    ) -> None:
        super().__init__(topic, registry, envelope, is_key=is_key)
        self._of_one_type = of_one_type
        self._files: dict[int, ProtobufSchema] = {}
        self._padded: Recent[bytes, int] = Recent(MOST)  # of one path there may be thousands
        self._frames = ChainMap({}, self._padded)

    @property
    def may_begin_without(self) -> bool:
        """Return whether no subject, or no message type that can be read, is known before a record names one."""
        has_others = any(len(file.indexes) > 1 for file in self._files.values())
        is_open = not self.types and self._record_name is None and has_others
        return super().may_begin_without or is_open

    @property
    def problem(self) -> str:
        """Why no schema can be read, or that no file has the declared message."""
        has_it = any(self._record_name in file.indexes.values() for file in self._files.values())
        lacks_it = self._files and self._record_name is not None and not has_it
        return super().problem or (f"none has the message {self._record_name} (record_name)" if lacks_it else "")

    def _decoder(self, parts: dict[str, Any]) -> Registered:
        from frazil.decode.protobuf.protobuf_decoder import RegisteredProtobuf  # loads Arrow and Protobuf

        return RegisteredProtobuf(**parts)

    def _read(self, schema: RegisteredSchema, references: Mapping[str, str], subjects: set[str]) -> Reason | None:
        from frazil.decode.protobuf.compiler import compile_proto  # loads Protobuf

        self._files[schema.id] = compile_proto(schema.text, references)
        return None

    def _paths(self, schema_id: int) -> Sequence[tuple[int, ...] | None]:
        if schema_id not in self._files:
            return [None]
        named = self._files[schema_id].indexes.items()
        return [path for path, name in named if name == self._record_name or path == FIRST][-1:]

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
        if number in self.types:
            return number
        wanted = self._record_name
        if wanted is None and self._of_one_type and self.types:
            wanted = next(iter(self.types.values())).name
        if wanted not in (None, name) or (self.route is not None and self.route.is_others(name)):
            return Reason.FOREIGN_SCHEMA
        if self._strategy is not SubjectStrategy.TOPIC:
            assert self.registry is not None
            if not self._owns(name, set(self.registry.subjects_of(schema_id))):
                return Reason.FOREIGN_SCHEMA
        try:
            self.types[number] = protobuf_type(file, name, is_key=self.is_key)
        except UNREADABLE as problem:
            self.problems[schema_id] = why(problem)
            return Reason.UNREADABLE_SCHEMA
        return number

    def _named(self, frame: bytes, schema: RegisteredSchema, references: Mapping[str, str]) -> str | None:
        from frazil.decode.protobuf.compiler import compile_proto  # loads Protobuf

        index = message_index(frame, GUID_BYTES if frame[0] == GUID_MAGIC else PREFIX_BYTES)
        if isinstance(index, FrameProblem):
            return None
        file = self._files.get(schema.id) or compile_proto(schema.text, references)
        return file.indexes.get(index[0])

    def _note(self, frame: bytes, number: int) -> None:
        of_path = frame[GUID_BYTES if frame[0] == GUID_MAGIC else PREFIX_BYTES :]
        (self._padded if is_padded(of_path) else self._frames)[frame] = number
