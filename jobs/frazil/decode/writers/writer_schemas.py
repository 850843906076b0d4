"""The writer schemas of a topic's values, or keys: which there are, what rows they make, how their records are decoded."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from frazil.clients.registry.client import Registry
from frazil.clients.registry.retry import several
from frazil.declaration.options import Tombstones, ValueFormat
from frazil.declaration.topic import Topic
from frazil.decode import raw
from frazil.decode.changes_in_rows import unwrapped
from frazil.decode.decoder import Decoder
from frazil.decode.decoding import CHANGE, DECODED, Decoding
from frazil.decode.json.nulls import null_of
from frazil.decode.keys.closed_keys import decoder_of
from frazil.decode.spark_types import spark_struct
from frazil.decode.writers.declared_writers import DeclaredWriters
from frazil.decode.writers.embedded_writers import EmbeddedWriters
from frazil.decode.writers.known_writers import KnownWriters
from frazil.decode.writers.occurring import Occurring
from frazil.decode.writers.record_type import RecordType, avro_type, embedded_type, json_type
from frazil.decode.writers.seen_frames import Met
from frazil.decode.writers.subjects import Ownership
from frazil.envelopes.envelope import Envelope
from frazil.errors import IncompatibleSchema, InvalidInput, UnreadableSchema
from frazil.schemas.evolution.merge import same_field
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.schemas.wire_format import KEY_HEADER, VALUE_HEADER

UNFRAMED = {
    ValueFormat.JSON: Kind.STRING,
    ValueFormat.TEXT: Kind.STRING,
    ValueFormat.BYTES: Kind.BINARY,
}


class TooMany(Exception):
    """A batch has more frames than are asked for, and only the registry could classify them."""


class WriterSchemas:
    """All writer schemas of a topic's values that are known so far, oldest first; with `keys`, of its keys.

    A writer is a record type of a schema, and has a number: see `decode.schema_id_of`. A schema in Avro or JSON Schema has one
    type. Of a Protobuf file the declared message is known at once, or its first one; others when a record names them.

    With an `envelope` the rows are those that the records hold. It is the keys' envelope, too, for their types. `of_one_type` is
    that of `KnownWriters`.

    The registry is asked by `refresh` and by `learn` alone. `KnownWriters` remembers what it said.
    """

    def __init__(
        self,
        topic: Topic,
        registry: Registry | None,
        *,
        keys: bool = False,
        envelope: Envelope | None = None,
        of_one_type: bool = False,
    ) -> None:
        self._registry, self._is_key, self._owner = registry, keys, Ownership(topic, keys=keys)
        self._format = ValueFormat(topic.key_format.value) if keys else topic.value_format
        self.envelope = envelope
        self._own: DeclaredWriters | EmbeddedWriters | None
        self._own = DeclaredWriters.of(topic, self._format, keys=keys, envelope=envelope)
        if topic.has_key_schemas_inside if keys else topic.has_schemas_inside:
            self._own = EmbeddedWriters(lambda text: self._record_type(text, {}))
        self._refused: InvalidInput | None = None
        self._known = KnownWriters(self._format, self._owner, registry, self._record_type, of_one_type=of_one_type)
        self._occurring = Occurring()

    def _record_type(self, text: str, references: Mapping[str, str]) -> RecordType:
        """Return the type of a schema's rows. The types that Kafka Connect names are those of the connector's keys, too."""
        if self._format is ValueFormat.CONNECT_JSON:
            made = embedded_type(text)
        else:
            type_of = avro_type if self._format is ValueFormat.AVRO else json_type
            made = type_of(text, references, connect_types=self.envelope is not None)
        if self.envelope is None or self._is_key:
            return made
        try:
            return unwrapped(made, self.envelope)
        except InvalidInput as refused:
            self._refused = refused
            raise UnreadableSchema(str(refused)) from refused

    @property
    def problems(self) -> Mapping[int, str]:
        """Why schemas cannot be read, by their ids."""
        return self._own.problems if isinstance(self._own, EmbeddedWriters) else self._known.problems

    @property
    def omissions(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """The properties that land in no column, by the number of the writer; without those of schemas in records."""
        if self._own is not None:
            return self._own.omissions if isinstance(self._own, DeclaredWriters) else ()
        return tuple((number, writer.omits) for number, writer in self._known.writers.items() if writer.omits)

    @property
    def registry(self) -> Registry | None:
        """Where the schemas are."""
        return self._registry

    @property
    def is_in_records(self) -> bool:
        """Whether the records hold their schemas, so that none is known before one of them was read."""
        return isinstance(self._own, EmbeddedWriters)

    def subjects(self, registry: Registry) -> Collection[str]:
        """Return the topic's subjects in the registry."""
        return self._owner.subjects(registry)

    def number_inside(self, value: bytes) -> int | None:
        """Return the writer whose schema a record holds; None if it holds none that is known."""
        return self._own.number_of(value) if isinstance(self._own, EmbeddedWriters) else None

    @property
    def is_protobuf(self) -> bool:
        """Whether frames hold the path of a message type."""
        return self._known.is_protobuf

    @property
    def is_framed(self) -> bool:
        """Whether the registry has the schemas: the bytes begin with a schema id, or a header names it."""
        return self._format not in UNFRAMED and self._own is None

    @property
    def may_begin_without(self) -> bool:
        """Whether no version is known before a record has it, so that a run begins without any."""
        return self._owner.may_begin_without or self._known.may_begin_without

    @property
    def versions(self) -> tuple[tuple[int, Struct], ...]:
        """The row type of each writer, by its number; for a format without a schema, one."""
        if self._own is not None:
            return self._own.versions
        if not self.is_framed:
            return ((0, Struct((Field("value", Primitive(UNFRAMED[self._format])),))),)
        return tuple((number, writer.row) for number, writer in self._known.writers.items())

    def is_single_value(self, number: int) -> bool:
        """Return whether this writer's records are no objects of fields but one value each."""
        if self._own is not None:
            return self._own.is_single_value(number)
        return not self.is_framed or self._known.writers[number].is_single_value

    def refresh(self) -> bool:
        """Ask the registry for the versions of the topic's subjects; returns whether there are new writers.

        Raises `InvalidInput` if there are versions and the envelope can unwrap none of them.
        """
        if self._registry is None or not self.is_framed:
            return False
        registry, known, subjects = self._registry, len(self._known.writers), self._owner.subjects(self._registry)
        listed = several(lambda subject: registry.versions(subject, deleted=True), subjects)
        found = [(version, subject) for subject, versions in zip(subjects, listed, strict=True) for version in versions]
        new = [(version, subject) for version, subject in found if self._known.is_undecided(version.id, subject)]
        registry.prefetch(version.id for version, _ in new)
        for version, subject in new:
            self._known.add(version, subject)
        if self._refused is not None and not self._known.writers:
            raise self._refused  # no version is one of the envelope's
        return len(self._known.writers) > known

    def learn(self, met: Met) -> bool:
        """Find out about frames that records have and that `decoding` left out; return whether `decoding` differs then.

        The ids that the topic has are asked for first. For the other ids the registry is asked whether it has them, for all at a
        time. Where there are too many, all but those of the topic count as unknown without that question; where only that
        question would decide, this raises `TooMany`. Raises `RegistryUnavailable`, which is no verdict.
        """
        if isinstance(self._own, EmbeddedWriters):
            is_other = self._own.learn(met)
            if self._refused is not None and not self.versions:
                raise self._refused
            return is_other
        numbers = [self._known.frames[frame] for frame in met.waiting if frame in self._known.frames]
        self._occurring.meet(numbers)
        is_other = bool(numbers)
        if self._registry is None or not self.is_framed or (not met.unknown and met.is_all):
            return is_other
        is_other = self.refresh() or is_other
        if not met.is_all:
            if self._known.is_protobuf or met.has_guids or not self._owner.has_one_subject:
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
        """Forget which writers were met, if they are more than a few; whether `decoding` has fewer then."""
        return self._own.forget() if isinstance(self._own, EmbeddedWriters) else self._occurring.forget()

    def decoding(
        self,
        target: Struct,
        unfit: Mapping[int, IncompatibleSchema],
        tombstones: Tombstones,
        *,
        is_closed: bool = False,
    ) -> Decoding:
        """Return how to decode into `target`; writers in `unfit`, by number, do not fit it and are refused.

        With `is_closed`, an object of JSON that has other members than `target` is not decoded, nor is a message of Protobuf that
        has fields which its type does not know.

        Raises the problem of declared columns, or schemas, none of which fit.
        """
        has_changes = self.envelope is not None and not self._is_key
        fields = (*target.fields, *(CHANGE if has_changes else ()), Field(DECODED, Primitive(Kind.BOOLEAN)))
        row_type = spark_struct(Struct(fields)).json()  # DDL quotes no name, and another engine may have added any
        column = "key" if self._is_key else "value"
        if self._own is not None:
            base = Decoding(
                row_type=row_type,
                tombstones=tombstones,
                column=column,
                header=KEY_HEADER if self._is_key else VALUE_HEADER,
                has_changes=has_changes,
            )
            return self._own.decoding(base, target, unfit, is_closed=is_closed)
        if not self.is_framed:
            fields = target.fields  # a table may have more: those of a key, or of another engine
            name = (same_field(self.versions[0][1].fields[0], fields) or fields[0]).name
            made = {
                ValueFormat.TEXT: raw.text,
                ValueFormat.JSON: raw.json_text,
                ValueFormat.BYTES: raw.raw,
            }
            step = raw.among(made[self._format](name), name, fields)
            return Decoding(row_type=row_type, unframed=Decoder((step,)), tombstones=tombstones, column=column)
        fitting = {number: writer for number, writer in self._known.writers.items() if number not in unfit}
        misfits = {f: Reason.INCOMPATIBLE_SCHEMA for f, number in self._known.frames.items() if number in unfit}
        decoded = self._occurring.of(list(fitting))
        fitting = {number: writer for number, writer in fitting.items() if number in decoded}
        batched = None
        if self._known.is_protobuf:
            from frazil.decode.protobuf.protobuf_decoder import batch_of  # loads Arrow and Protobuf

            readings = {number: w.reading(target) for number, w in fitting.items() if w.reading}
            batched = batch_of(readings, target, is_closed=is_closed)
        return Decoding(
            row_type=row_type,
            frames={f: number for f, number in self._known.frames.items() if number in decoded},
            waiting={f for f, number in self._known.frames.items() if number not in decoded and number not in unfit},
            nullable={f for f, n in self._known.frames.items() if n in decoded and self._known.writers[n].is_nullable},
            guids=dict(self._known.guids),
            refused={**self._known.refused, **misfits},
            bodies={
                n: decoder_of(w, target, self._format, is_closed=is_closed) for n, w in fitting.items() if w.decoder
            },
            batched=batched,
            tombstones=tombstones,
            column=column,
            header=KEY_HEADER if self._is_key else VALUE_HEADER,
            is_protobuf=self._known.is_protobuf,
            unsure=target if self._format is ValueFormat.AVRO else Struct(()),
            has_changes=has_changes,
            is_null=null_of(self._format) if has_changes else None,
        )
