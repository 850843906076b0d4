"""The writers of a topic whose schemas are in the registry."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from frazil.clients.registry.client import Registry
from frazil.clients.registry.retry import several
from frazil.declaration.options import ValueFormat
from frazil.declaration.topic import Topic
from frazil.decode.avro.avro_decoder import RegisteredAvro
from frazil.decode.frames.registered import Registered
from frazil.decode.json.json_decoder import RegisteredJson, is_framed_null
from frazil.decode.writers.known_messages import KnownMessages
from frazil.decode.writers.known_writers import KnownWriters
from frazil.decode.writers.record_type import RecordType, avro_type, json_type
from frazil.decode.writers.seen_frames import Met
from frazil.decode.writers.subjects import Ownership
from frazil.decode.writers.writer_schemas import Occurring, TooMany, WriterSchemas, framed_parts
from frazil.envelopes.envelope import Envelope
from frazil.errors import IncompatibleSchema
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct


class RegisteredWriters(WriterSchemas):
    """The writers of a topic's values, or keys. A schema in Avro or JSON Schema has one type.

    Of a Protobuf file the declared message is known at once, or its first one; others when a record names them.

    The registry is asked by `refresh` and by `learn` alone. `KnownWriters` remembers what it said.
    """

    def __init__(
        self,
        topic: Topic,
        of: ValueFormat,
        registry: Registry | None,
        envelope: Envelope,
        *,
        is_key: bool,
        of_one_type: bool,
    ) -> None:
        super().__init__(registry, envelope, is_key=is_key)
        self._format, self._owner, self._occurring = of, Ownership(topic, keys=is_key), Occurring()
        self.is_protobuf = of is ValueFormat.PROTOBUF
        self._known: KnownWriters
        if self.is_protobuf:
            self._known = KnownMessages(self._owner, registry, of_one_type=of_one_type)
        else:
            language, made = ("avro", avro_type) if of is ValueFormat.AVRO else ("json", json_type)
            of_text = partial(made, connect_types=envelope.has_changes)
            self._known = KnownWriters(
                language, of, self._owner, registry, lambda text, more: self._unwrapped(of_text(text, more))
            )

    @property
    def types(self) -> Mapping[int, RecordType]:
        """The types that are known."""
        return self._known.writers

    @property
    def problems(self) -> Mapping[int, str]:
        """Why schemas cannot be read, by their ids."""
        return self._known.problems

    @property
    def may_begin_without(self) -> bool:
        """Whether no subject, or no message type that can be read, is known before a record names one."""
        return self._owner.may_begin_without or self._known.may_begin_without

    def subjects(self, registry: Registry) -> Collection[str]:
        """Return the topic's subjects in the registry."""
        return self._owner.subjects(registry)

    def refresh(self) -> bool:
        """Ask the registry for the versions of the topic's subjects; returns whether there are new writers.

        Raises `InvalidInput` if there are versions and the envelope can unwrap none of them.
        """
        if self.registry is None:
            return False
        registry, known, subjects = self.registry, len(self._known.writers), self._owner.subjects(self.registry)
        listed = several(lambda subject: registry.versions(subject, deleted=True), subjects)
        found = [(version, subject) for subject, versions in zip(subjects, listed, strict=True) for version in versions]
        new = [(version, subject) for version, subject in found if self._known.is_undecided(version.id, subject)]
        registry.prefetch(version.id for version, _ in new)
        for version, subject in new:
            self._known.add(version, subject)
        self._check_envelope()
        return len(self._known.writers) > known

    def learn(self, met: Met) -> bool:
        """Find out about frames that records have and that `decoder` left out; return whether `decoder` differs then.

        The ids that the topic has are asked for first. For the other ids the registry is asked whether it has them, for all at a
        time. Where there are too many, all but those of the topic count as unknown without that question; where only that
        question would decide, this raises `TooMany`. Raises `RegistryUnavailable`, which is no verdict.
        """
        numbers = [self._known.frames[frame] for frame in met.waiting if frame in self._known.frames]
        self._occurring.meet(numbers)
        is_other = bool(numbers)
        if self.registry is None or (not met.unknown and met.is_all):
            return is_other
        is_other = self.refresh() or is_other
        if not met.is_all:
            if self.is_protobuf or met.has_guids or not self._owner.has_one_subject:
                raise TooMany
            return is_other
        before = {frame: self._known.refused.get(frame, Reason.UNKNOWN_SCHEMA) for frame in met.unknown}
        self._known.ask(met.unknown)
        self._occurring.meet(self._known.frames[frame] for frame in met.unknown if frame in self._known.frames)
        after = {frame: self._known.refused.get(frame, Reason.UNKNOWN_SCHEMA) for frame in met.unknown}
        return is_other or before != after or any(frame in self._known.frames for frame in met.unknown)

    def recall(self, schema_ids: Collection[int]) -> None:
        """Begin with what an earlier run decoded, see `Occurring.recall`."""
        self._occurring.recall(schema_ids, self._known.writers)

    def forget(self) -> bool:
        """Forget which writers were met, if they are more than a few; whether `decoder` has fewer then."""
        return self._occurring.forget()

    def decoder(
        self, target: Struct, unfit: Mapping[int, IncompatibleSchema], *, is_closed: bool = False
    ) -> Registered:
        """Return the decoder of records by the registry's schemas."""
        known, side = self._known, self.side(target)
        parts = framed_parts(
            known.frames, known.refused, known.writers, self._occurring, target, unfit.keys(), is_closed=is_closed
        )
        parts |= {"side": side, "guids": dict(known.guids)}
        match self._format:
            case ValueFormat.AVRO:
                return RegisteredAvro(**parts)
            case ValueFormat.JSON_SCHEMA:
                nullable = {frame for frame, number in parts["frames"].items() if known.writers[number].is_nullable}
                is_null = is_framed_null if side.has_changes else None
                return RegisteredJson(**parts, nullable=nullable, is_null=is_null)
            case _:
                from frazil.decode.protobuf.protobuf_decoder import RegisteredProtobuf  # loads Arrow and Protobuf

                return RegisteredProtobuf(**parts)
