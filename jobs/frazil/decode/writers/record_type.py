"""One record type of a writer schema, whatever its language: its row type, and how its bodies are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from frazil.decode.avro.avro_decoder import avro_body
from frazil.decode.connect_json.connect_decoder import connect_body
from frazil.decode.decoder import Body
from frazil.decode.json.enclosing import NAME
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope
from frazil.errors import UnreadableSchema
from frazil.schemas import avro
from frazil.schemas.connect import connect_schema
from frazil.schemas.connect.connect_types import held, only, row_meaning
from frazil.schemas.declared_columns import declared_type, with_unknown
from frazil.schemas.json import json_schema
from frazil.schemas.types import Struct

if TYPE_CHECKING:
    from frazil.schemas.protobuf import ProtobufSchema


UNREADABLE = (
    UnreadableSchema,
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)
"""The errors that reading a schema may raise: the schema is invalid, or a defect of Frazil, which must not end the topic."""


def why(problem: Exception) -> str:
    """Return why a schema cannot be read."""
    return str(problem) if isinstance(problem, UnreadableSchema) else f"{type(problem).__name__}: {problem}"


class MakeBody(Protocol):
    """The decoding of a type's records."""

    def __call__(self, target: Struct, *, is_closed: bool = False) -> Body:
        """Return the body for rows of type `target`.

        With `is_closed`, an object of JSON that has other members than `target` is not decoded, nor is a message of Protobuf that
        has fields which its type does not know.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType:
    """A record type.

    `name` is its full name, a JSON Schema's its title; empty if it has none. `is_single_value` says that a record is no object of
    fields but one value, in the column `value`, `is_nullable` that JSON's null is a record without a value. `omits` says which
    properties the schema describes that land in no column. `truncates` makes the body that only reads which changes are truncates,
    for a schema that does not fit the table; None if the records are no changes.
    """

    name: str
    row: Struct
    is_single_value: bool = False
    is_nullable: bool = False
    omits: tuple[str, ...] = ()
    body: MakeBody
    truncates: MakeBody | None = None

    def rows(self, *, fits: bool) -> MakeBody | None:
        """Return how rows are made if the type fits the table, or does not; None if none are."""
        return self.body if fits else self.truncates

    def has_no_value_at_null(self, *, is_key: bool) -> bool:
        """Return whether JSON's null is a record without a value, or without a key: a key of one value is null then, and exists."""
        return self.is_nullable and not (is_key and self.is_single_value)


def avro_type(
    text: str,
    references: Mapping[str, str],
    *,
    connect_types: bool = False,
    made: Callable[[avro.Reader, Struct], Body] = avro_body,
) -> RecordType:
    """Return the type of an Avro schema, whose body is `made`; `connect_types` is that of `avro.parse`.

    Raises `UnreadableSchema`.
    """
    schema = avro.parse(text, references, connect_types=connect_types)
    return RecordType(
        name="" if schema.is_single_value else schema.root.name,
        row=avro.row_type(schema),
        is_single_value=schema.is_single_value,
        body=lambda target, *, is_closed=False: made(avro.reader(schema, target), target),
    )


def json_type(
    text: str, references: Mapping[str, str], *, connect_types: bool = False, keeps_unknown: bool = False
) -> RecordType:
    """Return the type of a JSON Schema; `connect_types` is that of `json_schema.row_type`. Raises `UnreadableSchema`.

    With `keeps_unknown` it has the column of unknown fields.
    """
    schema = json_schema.parse(text, references)
    is_single_value = json_schema.is_single_value(schema, connect_types=connect_types)
    title = schema.root.schema.get("title") if isinstance(schema.root.schema, dict) else None
    written = with_unknown(json_schema.row_type(schema, connect_types=connect_types), keeps=keeps_unknown)
    return RecordType(
        name=title if isinstance(title, str) else "",
        row=row_meaning(written),
        is_single_value=is_single_value,
        is_nullable=json_schema.is_nullable(schema, connect_types=connect_types),
        omits=json_schema.omitted(schema, connect_types=connect_types, keeps_unknown=keeps_unknown),
        body=_json_body(
            written,
            single_value=is_single_value,
            refuses_null=is_single_value and written.fields[0].required,
            keeps_unknown=keeps_unknown,
        ),
    )


def embedded_type(text: str) -> RecordType:
    """Return the type of a schema that records of Kafka Connect's JSON hold next to their payload. Raises `UnreadableSchema`."""
    schema = connect_schema.parse(text)
    written, is_single_value = schema.row, schema.is_single_value
    return RecordType(
        name=schema.name,
        row=row_meaning(written),
        is_single_value=is_single_value,
        is_nullable=schema.is_nullable,
        body=_json_body(written, single_value=is_single_value, in_payload=True),
    )


def declared_json(
    texts: Iterable[str], *, in_payload: bool, envelope: Envelope = NO_ENVELOPE, keeps_unknown: bool = False
) -> RecordType:
    """Return the type of JSON whose columns are declared: those of the rows in the `envelope`.

    With `in_payload` they are in Kafka Connect's object of schema and payload. With `keeps_unknown` one more has unknown fields.
    """
    written = envelope.record(with_unknown(declared_type(texts), keeps=keeps_unknown))

    def body(target: Struct, *, is_closed: bool = False) -> Body:
        """Return the body of declared columns; others of the table are null, whatever properties records have."""
        known, members = (
            only(target, written, lambda number: f"{NAME}_{number}"),
            _members(target) if is_closed else None,
        )
        of = held(known, written)
        return connect_body(of, known, in_payload=in_payload, keeps_unknown=keeps_unknown, only=members)

    return RecordType(name="", row=row_meaning(written), body=body)


def _json_body(written: Struct, **how: bool) -> MakeBody:
    """Return how JSON that a schema describes is decoded; `how` are the options of `connect_body`."""

    def body(target: Struct, *, is_closed: bool = False) -> Body:
        return connect_body(held(target, written), target, only=_members(target) if is_closed else None, **how)

    return body


def _members(target: Struct) -> tuple[str, ...]:
    return tuple(field.source for field in target.fields)


def protobuf_type(schema: ProtobufSchema, message: str, *, is_key: bool = False) -> RecordType:
    """Return one message type of a Protobuf schema; `is_key` is that of `protobuf.row_type`. Raises `UnreadableSchema`."""
    from frazil.decode.protobuf.projection import reading  # loads Protobuf, which most drivers do not need
    from frazil.schemas.protobuf import row_type

    def body(target: Struct, *, is_closed: bool = False) -> Body:
        from frazil.decode.protobuf.protobuf_decoder import message_body  # loads Arrow and Protobuf

        return message_body(reading(schema, message, target, is_key=is_key), target, is_closed=is_closed)

    return RecordType(name=message, row=row_type(schema, message, is_key=is_key), body=body)
