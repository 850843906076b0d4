"""Writers that a declaration describes: by columns, or by schema files. No registry is asked for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from frazil.declaration import SchemaFile
from frazil.declaration.checks.column_notation import columns as declared
from frazil.declaration.formats import Avro, ConnectJson, Format, Json, JsonSchema
from frazil.declaration.options import Framing
from frazil.decode.avro.plain_avro import PlainAvro, SingleObjectAvro, plain_body
from frazil.decode.changes_in_rows import unwrapped
from frazil.decode.connect_json.connect_decoder import PlainConnectJson, has_null_payload
from frazil.decode.decoder import Body, Step, Unframed
from frazil.decode.frames.framed import Framed
from frazil.decode.json.json_decoder import PlainJson, PlainJsonSchema, is_null
from frazil.decode.writers.record_type import RecordType, avro_type, declared_json, json_type, protobuf_type
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope
from frazil.errors import IncompatibleSchema, UnreadableSchema
from frazil.schema_files.declared_rows import named
from frazil.schemas import avro
from frazil.schemas.avro.schema_fingerprint import head
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct


def declared_writers(of: Format, envelope: Envelope, *, is_key: bool) -> DeclaredWriters:
    """Return the writers of a topic's values, or keys, that it declares.

    Raises `InvalidInput` as the envelope does, and `UnreadableSchema`.
    """
    of_rows = NO_ENVELOPE if is_key else envelope
    if of.columns:
        in_payload = isinstance(of, ConnectJson)
        one = declared_json(of.columns, in_payload=in_payload, envelope=of_rows, keeps_unknown=of.keeps_unknown)
        required = {each.name for each in declared(of.columns) if each.required}
        return DeclaredWriters(of, [unwrapped(one, of_rows)], envelope, is_key=is_key, required=required)
    files = of.schema or ()
    heads = tuple(map(_head, files)) if isinstance(of, Avro) else ()
    is_named = of.framing is Framing.SINGLE_OBJECT
    made, connect_types = partial(plain_body, heads=None if is_named else heads), envelope.has_changes
    written = (_written(file, of, made, connect_types=connect_types, is_key=is_key) for file in files)
    types = [unwrapped(each, of_rows) for each in written]
    return DeclaredWriters(of, types, envelope, is_key=is_key, heads=heads if is_named else ())


class DeclaredWriters(WriterSchemas):
    """The one record type that is declared, of a topic's values or keys.

    With `heads` there may be several of Avro: the bytes before a body, which single-object encoding names its schema by.
    """

    def __init__(
        self,
        of: Format,
        types: Sequence[RecordType],
        envelope: Envelope,
        *,
        is_key: bool,
        required: Collection[str] = (),
        heads: Sequence[bytes] = (),
    ) -> None:
        super().__init__(None, envelope, is_key=is_key)
        self.types |= enumerate(types)
        self._format, self._required, self._heads = of, required, heads

    def required(self, target: Struct) -> tuple[str, ...]:
        """Return the columns of the target that are declared so."""
        return tuple(field.name for field in target.fields if field.source in self._required)

    def decoder(
        self, target: Struct, unfit: Mapping[int, IncompatibleSchema], *, is_closed: bool = False
    ) -> Unframed | Framed:
        """Return the decoder of bodies of the type, or types. Raises the problem of one if none fits: nothing could land."""
        if len(unfit) == len(self.types):
            raise next(iter(unfit.values()))
        makes = {n: make for n, each in self.types.items() if (make := each.rows(fits=n not in unfit)) is not None}
        bodies = {number: make(target, is_closed=is_closed) for number, make in makes.items()}
        side = self.side(target)
        if self._heads:
            frames = {self._heads[number]: number for number in bodies}
            refused = {self._heads[number]: Reason.INCOMPATIBLE_SCHEMA for number in unfit}
            return SingleObjectAvro(side=side, frames=frames, refused=refused, bodies=bodies)
        made, null = _plain(self._format)
        is_none = side.has_changes or self.types[0].has_no_value_at_null(is_key=side.is_key)
        return made(side=side, body=bodies[0], is_null=null if is_none else None)


def _plain(of: Format) -> tuple[type[Unframed], Step | None]:
    """Return the decoder of bodies in a format, and what says that a value is null."""
    match of:
        case Avro():
            return PlainAvro, None
        case Json():
            return PlainJson, is_null
        case JsonSchema():
            return PlainJsonSchema, is_null
        case ConnectJson():
            return PlainConnectJson, has_null_payload
        case _:
            from frazil.decode.protobuf.protobuf_decoder import PlainProtobuf  # loads Arrow and Protobuf

            return PlainProtobuf, None


def _head(file: SchemaFile) -> bytes:
    try:
        avro.parse(file.content)  # only of what it reads is there a fingerprint
    except UnreadableSchema as problem:
        raise named(file, problem) from None
    return head(file.content)


def _written(
    file: SchemaFile, of: Format, made: Callable[[avro.Reader, Struct], Body], *, connect_types: bool, is_key: bool
) -> RecordType:
    message = of.record_name or ""
    try:
        match file.format:
            case Avro.kind:
                return avro_type(file.content, {}, connect_types=connect_types, made=made)
            case JsonSchema.kind:
                return json_type(file.content, {}, connect_types=connect_types, keeps_unknown=of.keeps_unknown)
        from frazil.schema_files.descriptors import message_schema  # loads Protobuf, which most drivers do not need

        return protobuf_type(message_schema(file.data, message), message, is_key=is_key)
    except UnreadableSchema as problem:
        raise named(file, problem) from None
