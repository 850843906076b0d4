"""Protobuf schemas as plain data, and the row types of their messages; the mapping is the table of `docs/schemas.md`.

Text is compiled elsewhere (`decode/protobuf/compiler.py`): this module knows descriptors only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from frazil.errors import UnreadableSchema
from frazil.schemas.evolution.field_ids import numbered_id
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

RECURSION_DEPTH = 3
"""So many levels of a recursive message are columns; the field that leads to the next one lands as JSON text."""

NESTING_LIMIT = 50
"""Messages within each other that become columns; a field that leads deeper lands as JSON text."""

FIELD_LIMIT = 10_000
"""Columns of a row type, nested ones included."""


class FieldKind(StrEnum):
    """The field types of Protobuf (https://protobuf.dev/programming-guides/proto3/#scalar); a group is a message too."""

    DOUBLE = "double"
    FLOAT = "float"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    UINT64 = "uint64"
    SINT32 = "sint32"
    SINT64 = "sint64"
    FIXED32 = "fixed32"
    FIXED64 = "fixed64"
    SFIXED32 = "sfixed32"
    SFIXED64 = "sfixed64"
    BOOL = "bool"
    STRING = "string"
    BYTES = "bytes"
    ENUM = "enum"
    MESSAGE = "message"
    GROUP = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageField:
    """A field of a message.

    `type_name` is the full name of an enum's or a message's type. `has_presence` says that the encoding distinguishes
    absent from default: a proto3 scalar without `optional` does not, nor does a list or a map. `oneof` is the name of
    the oneof, of two or more fields, that the field is a member of.
    """

    name: str
    number: int
    kind: FieldKind
    type_name: str = ""
    repeated: bool = False
    has_presence: bool = False
    doc: str = ""
    oneof: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message type; a map is a repeated `is_map_entry` message of `key` and `value`."""

    name: str
    fields: tuple[MessageField, ...]
    is_map_entry: bool = False


@dataclass(frozen=True, slots=True)
class ProtobufSchema:
    """A compiled .proto file with its imports.

    `messages` and `enums` (number -> name, an alias omitted) are by full name. `indexes` are the messages that the file itself
    defines, by their message index in the frame. `descriptors` is the serialized `FileDescriptorSet`.
    """

    messages: Mapping[str, Message]
    enums: Mapping[str, Mapping[int, str]]
    indexes: Mapping[tuple[int, ...], str]
    descriptors: bytes


_SCALARS: Mapping[FieldKind, Type] = {
    FieldKind.DOUBLE: Primitive(Kind.DOUBLE),
    FieldKind.FLOAT: Primitive(Kind.FLOAT),
    **dict.fromkeys((FieldKind.INT32, FieldKind.SINT32, FieldKind.SFIXED32), Primitive(Kind.INT)),
    **dict.fromkeys((FieldKind.INT64, FieldKind.SINT64, FieldKind.SFIXED64), Primitive(Kind.LONG)),
    **dict.fromkeys((FieldKind.UINT32, FieldKind.FIXED32), Primitive(Kind.LONG)),
    **dict.fromkeys((FieldKind.UINT64, FieldKind.FIXED64), Decimal(20, 0)),
    FieldKind.BOOL: Primitive(Kind.BOOLEAN),
    FieldKind.STRING: Primitive(Kind.STRING),
    FieldKind.BYTES: Primitive(Kind.BINARY),
    FieldKind.ENUM: Primitive(Kind.STRING),
}

WELL_KNOWN: Mapping[str, Type] = {
    "google.protobuf.Timestamp": Primitive(Kind.TIMESTAMPTZ),
    "google.protobuf.Duration": Primitive(Kind.LONG),
    **{
        f"google.protobuf.{name}Value": _SCALARS[FieldKind(name.lower())]
        for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
    },
}
"""The messages that have a column type of their own; a duration is in microseconds."""

_WIDENED = {Kind.LONG: "int", Kind.DOUBLE: "float"}
_JSON = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})


def row_type(schema: ProtobufSchema, message: str | None = None, *, is_key: bool = False) -> Struct:
    """Return the columns of a message, by its full name; by default of the file's first one.

    `is_key` says that records have it as their key: numbers of its fields are not those of the same message as a value.
    Raises `UnreadableSchema` for a message without fields, a group, or more than `FIELD_LIMIT` columns.
    """
    name = message or schema.indexes.get((0,), "")
    if name not in schema.messages:
        raise UnreadableSchema(f"the file defines no message {name}".rstrip(), where="schema")
    row = _Rows(schema, f"key {name}" if is_key else name).struct(schema.messages[name], Counter())
    if row is None:
        raise UnreadableSchema("the message has no fields, so it makes no columns", where=name)
    return row


class _Rows:
    def __init__(self, schema: ProtobufSchema, record: str) -> None:
        self._schema, self._record = schema, record
        self._fields = 0

    def struct(self, message: Message, around: Counter[str]) -> Struct | None:
        """Return the message's columns; None if it has none, or if it is too deep inside itself or other messages."""
        if not message.fields or around[message.name] == RECURSION_DEPTH or around.total() == NESTING_LIMIT:
            return None
        inside = around + Counter([message.name])
        return Struct(tuple(self._field(message, field, inside) for field in message.fields))

    def _field(self, message: Message, field: MessageField, inside: Counter[str]) -> Field:
        where = f"{message.name}.{field.name}"
        self._fields += 1
        if self._fields > FIELD_LIMIT:
            raise UnreadableSchema(f"the schema has more than {FIELD_LIMIT} columns", where=where)
        if field.kind is FieldKind.GROUP:
            raise UnreadableSchema(
                "a group, or a message with delimited encoding, cannot be decoded",
                where=where,
                do="Make it a message field",
            )
        required = not field.has_presence
        of, ids = self._type(field, inside), (numbered_id(self._record, field.number, self._type_name(field)),)
        if of is None:
            return Field(field.name, Primitive(Kind.STRING), required, field.doc, as_json=True, ids=ids)
        return Field(field.name, of, required, field.doc, ids=ids)

    def _type(self, field: MessageField, inside: Counter[str]) -> Type | None:
        """Return the field's type; None if only JSON text fits."""
        entry = self._schema.messages.get(field.type_name)
        if entry is not None and entry.is_map_entry:
            key, value = entry.fields
            of = self._single(value, inside)
            return None if of is None else MapOf(_SCALARS[key.kind], of, value_required=True)
        one = self._single(field, inside)
        return ListOf(one, element_required=True) if one is not None and field.repeated else one

    def _type_name(self, field: MessageField) -> str:
        """Return the type of a field as its id has it. A map's own message has the name of the field, so its parts count."""
        entry = self._schema.messages.get(field.type_name)
        if entry is None or not entry.is_map_entry:
            return _type_name(field)
        return "map " + " ".join(map(_type_name, entry.fields))

    def _single(self, field: MessageField, inside: Counter[str]) -> Type | None:
        if field.kind is not FieldKind.MESSAGE:
            return _SCALARS[field.kind]
        if field.type_name in _JSON:
            return None
        return WELL_KNOWN.get(field.type_name) or self.struct(self._schema.messages[field.type_name], inside)


def _type_name(field: MessageField) -> str:
    """Return the type of a field as its id has it: one that another is widened to has the same name."""
    of = _SCALARS.get(field.kind)
    name = field.type_name
    if not name:
        name = _WIDENED.get(of.kind, of.kind.value) if isinstance(of, Primitive) else "unsigned"
    return f"repeated {name}" if field.repeated else name
