"""Writers that a declaration describes: by columns, or by schema files. No registry is asked for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import functions as F

from frazil.declaration import SchemaFile, Topic
from frazil.declaration.checks.column_notation import columns as declared
from frazil.declaration.options import Framing, ValueFormat
from frazil.decode.avro.plain_avro import body_decoder, plain_decoder
from frazil.decode.changes_in_rows import unwrapped
from frazil.decode.decoder import Decoder
from frazil.decode.decoding import Decoding
from frazil.decode.json.nulls import null_of
from frazil.decode.keys.closed_keys import decoder_of
from frazil.decode.writers.record_type import RecordType, avro_type, declared_json, json_type, protobuf_type
from frazil.envelopes.envelope import Envelope
from frazil.errors import IncompatibleSchema, UnreadableSchema
from frazil.schema_files.declared_rows import named
from frazil.schemas import avro
from frazil.schemas.avro.schema_fingerprint import head
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct


class DeclaredWriters:
    """The record types of a topic's values, or keys, oldest first. The number of each is its place."""

    def __init__(
        self,
        value_format: ValueFormat,
        types: Sequence[RecordType],
        heads: Sequence[bytes] | None,
        required: Collection[str] = (),
    ) -> None:
        self._format, self._types, self._heads, self._required = value_format, tuple(types), heads, required
        self._has_schema = value_format.has_schema

    @classmethod
    def of(
        cls, topic: Topic, value_format: ValueFormat, *, keys: bool, envelope: Envelope | None
    ) -> DeclaredWriters | None:
        """Return the writers that a topic declares; None if it declares none.

        The `envelope` is that of the values. Raises `InvalidInput` as it does, and `UnreadableSchema`.
        """
        columns, files = (topic.key_columns, topic.key_schema) if keys else (topic.columns, topic.schema)
        of_rows, keeps = None if keys else envelope, topic.keeps_unknown and not keys
        if columns:
            in_payload = value_format is ValueFormat.CONNECT_JSON
            types = [declared_json(columns, in_payload=in_payload, envelope=of_rows, keeps_unknown=keeps)]
            required = {each.name for each in declared(columns) if each.required}
            return cls(value_format, [_unwrapped(each, of_rows) for each in types], None, required)
        if not files:
            return None
        framing = topic.key_framing if keys else topic.framing
        message = topic.key_record_name if keys else topic.record_name
        heads = tuple(map(_head, files)) if value_format is ValueFormat.AVRO else ()
        made = body_decoder if framing is Framing.SINGLE_OBJECT else partial(plain_decoder, heads=heads)
        found = []
        for file in files:
            connect_types = envelope is not None
            written = _written(file, message or "", made, connect_types=connect_types, keeps_unknown=keeps, is_key=keys)
            found.append(_unwrapped(written, of_rows))
        return cls(value_format, found, heads if framing is Framing.SINGLE_OBJECT else None)

    @property
    def versions(self) -> tuple[tuple[int, Struct], ...]:
        """The row type of each, by its number."""
        return tuple(enumerate(each.row for each in self._types))

    @property
    def omissions(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """The properties that each schema describes and that land in no column, by its number."""
        return tuple((number, each.omits) for number, each in enumerate(self._types) if each.omits)

    def is_single_value(self, number: int) -> bool:
        """Return whether this writer's records are no objects of fields but one value each."""
        return self._types[number].is_single_value

    def decoding(
        self, base: Decoding, target: Struct, unfit: Mapping[int, IncompatibleSchema], *, is_closed: bool
    ) -> Decoding:
        """Return `base` with how these writers' records are decoded into `target`.

        Raises the problem of one in `unfit` if all are: nothing could land.
        """
        if len(unfit) == len(self._types):
            raise next(iter(unfit.values()))
        fitting = {number: each for number, each in enumerate(self._types) if number not in unfit}
        bodies = {
            n: decoder_of(each, target, self._format, is_closed=is_closed)
            for n, each in fitting.items()
            if each.decoder
        }
        unsure = target if self._format is ValueFormat.AVRO else Struct(())
        if self._heads is not None:
            return replace(
                base,
                frames={self._heads[number]: number for number in fitting},
                refused={self._heads[number]: Reason.INCOMPATIBLE_SCHEMA for number in unfit},
                bodies=bodies,
                unsure=unsure,
                is_single_object=True,
            )
        (one,) = self._types
        has_null = base.has_changes or one.is_nullable
        written = ValueFormat.JSON if self._format is ValueFormat.JSON_SCHEMA else self._format
        return replace(
            base,
            unframed=bodies[0] if bodies else _messages(one, target, is_closed=is_closed),
            unsure=unsure,
            is_null=null_of(written) if has_null else None,
            plain=self._format if self._has_schema else None,
            required=tuple(field.name for field in target.fields if field.source in self._required),
        )


def _head(file: SchemaFile) -> bytes:
    try:
        avro.parse(file.content)  # only of what it reads is there a fingerprint
    except UnreadableSchema as problem:
        raise named(file, problem) from None
    return head(file.content)


def _written(
    file: SchemaFile,
    message: str,
    made: Callable[[avro.Reader, Struct], Decoder],
    *,
    connect_types: bool,
    keeps_unknown: bool,
    is_key: bool,
) -> RecordType:
    try:
        match file.format:
            case ValueFormat.AVRO:
                return avro_type(file.content, {}, connect_types=connect_types, made=made)
            case ValueFormat.JSON_SCHEMA:
                return json_type(file.content, {}, connect_types=connect_types, keeps_unknown=keeps_unknown)
        from frazil.schema_files.descriptors import message_schema  # loads Protobuf, which most drivers do not need

        return protobuf_type(message_schema(file.data, message), message, is_key=is_key)
    except UnreadableSchema as problem:
        raise named(file, problem) from None


def _unwrapped(written: RecordType, envelope: Envelope | None) -> RecordType:
    return written if envelope is None else unwrapped(written, envelope)


def _messages(written: RecordType, target: Struct, *, is_closed: bool) -> Decoder:
    """Return the decoder of messages of one type."""
    from frazil.decode.protobuf.protobuf_decoder import batch_of  # loads Arrow and Protobuf

    assert written.reading is not None
    read = batch_of({0: written.reading(target)}, target, is_closed=is_closed)
    return Decoder((lambda body: read(body, F.lit(0).cast("long")),))
