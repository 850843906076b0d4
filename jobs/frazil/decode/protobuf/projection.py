"""The reading of a message into a target: a descriptor made here with the wanted fields, and the column of each.

ptars makes columns from a descriptor, and is lenient or silent in places: a group is dropped, a file with an edition aborts, an
invalid `google.type.Date` is read as 1970-01-01. It is given a proto3 file that is made here, so that it meets only what it is
exact about: enums are read as numbers, what lands as JSON text is read as bytes, times are read as their two numbers, and only
wrappers keep their names.

Protobuf merges a message field that occurs several times, and of a oneof the last member counts. ptars does neither for every type.
So what it does not merge is read as a list, and all members of a oneof are read, which shows the records that need a second look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from google.protobuf import wrappers_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from frazil.schemas.evolution.merge import same_field
from frazil.schemas.protobuf import WELL_KNOWN, FieldKind, Message, MessageField, ProtobufSchema, row_type
from frazil.schemas.types import Field, ListOf, MapOf, Struct, Type

ROOT = "frazil.Row"
"""The full name of the message that is read."""

_REPEATED = FieldDescriptorProto.LABEL_REPEATED
_PARTS = (("seconds", FieldDescriptorProto.TYPE_INT64), ("nanos", FieldDescriptorProto.TYPE_INT32))


class How(StrEnum):
    """The conversion of a column that ptars has made.

    `ABSENT` the message has no such field; `AS_IS` the value is it, perhaps widened; `INSTANT` and `DURATION` are made of seconds
    and nanoseconds; `ONCE` is a list with the occurrences of a field, at most one; `ENUM` a number becomes its name; `STRUCT` and
    `LIST` go on inside; `MAP` is a list of entries; `JSON` is a list with the bytes of each occurrence of the field; `JSON_LIST` is
    a list of scalars as JSON text.
    """

    ABSENT = "absent"
    AS_IS = "as is"
    INSTANT = "instant"
    DURATION = "duration"
    ONCE = "once"
    ENUM = "enum"
    STRUCT = "struct"
    LIST = "list"
    MAP = "map"
    JSON = "json"
    JSON_LIST = "json list"


_TIMES = {"Timestamp": How.INSTANT, "Duration": How.DURATION}


@dataclass(frozen=True, slots=True)
class Column:
    """The source of one target field: the column `name` of what ptars makes, if there is one.

    `names` are an enum's; `children` are in the target's order; `source` is the full name of the message and the
    name of the field that become JSON; `oneofs` are the names of columns of which a message has at most one. A time that `is_exact`
    has no part of a microsecond.
    """

    how: How
    names: Mapping[int, str] = field(default_factory=dict)
    children: tuple[Column, ...] = ()
    source: tuple[str, str] = ("", "")
    name: str = ""
    oneofs: tuple[tuple[str, ...], ...] = ()
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything a worker needs for one message type.

    `row` is a `STRUCT`; `schema` is the writer's descriptors, `message` the full name of the type in them. With `is_closed` a
    message that has fields which the type does not know cannot be read.
    """

    descriptors: bytes
    row: Column
    schema: bytes
    message: str
    is_closed: bool = False


def reading(schema: ProtobufSchema, message: str, target: Struct, *, is_key: bool = False) -> Reading:
    """Return how to read the message of this full name into `target`; `is_key` is that of `protobuf.row_type`."""
    building, written = _Building(schema), row_type(schema, message, is_key=is_key)
    row = building.message("Row", schema.messages[message], written, target)
    descriptors = FileDescriptorSet()
    wrappers_pb2.DESCRIPTOR.CopyToProto(descriptors.file.add())
    descriptors.file.append(building.file)
    return Reading(descriptors.SerializeToString(deterministic=True), row, schema.descriptors, message)


class _Building:
    def __init__(self, schema: ProtobufSchema) -> None:
        self.file = FileDescriptorProto(name="frazil/row.proto", package="frazil", syntax="proto3")
        self.file.dependency.append(wrappers_pb2.DESCRIPTOR.name)
        self._schema = schema

    def message(self, name: str, message: Message, written: Struct, target: Struct) -> Column:
        """Add a message with the fields that `target` wants; what its columns become."""
        made = self.file.message_type.add(name=name)
        found = _columns(message, written, target)
        children = tuple(
            self._column(made, message, *found[wanted.name], wanted) if wanted.name in found else Column(How.ABSENT)
            for wanted in target.fields
        )
        oneofs: dict[str, list[str]] = {}
        for field_ in message.fields:
            if field_.oneof:
                oneofs.setdefault(field_.oneof, []).append(self._member(made, field_))
        return Column(How.STRUCT, children=children, oneofs=tuple(map(tuple, oneofs.values())))

    def _member(self, made: DescriptorProto, found: MessageField) -> str:
        """Return the column of a oneof's member, added if no column of the target is made of it."""
        name = f"f{found.number}"
        if all(known.name != name for known in made.field):
            added = made.field.add(name=name, number=found.number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            if found.kind is FieldKind.MESSAGE:
                added.type = FieldDescriptorProto.TYPE_BYTES
            else:
                self._single(added, found, None, None)
            _with_presence(made, added)
        return name

    def _column(
        self, made: DescriptorProto, message: Message, found: MessageField, written: Field, wanted: Field
    ) -> Column:
        added = made.field.add(name=f"f{found.number}", number=found.number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        entry = self._schema.messages.get(found.type_name)
        if wanted.as_json:
            column = self._json(added, message, found)
        elif entry is not None and entry.is_map_entry:
            column = self._map(made, added, entry, written.type, wanted.type)
        else:
            own, of = (
                each.element if found.repeated and isinstance(each, ListOf) else each
                for each in (written.type, wanted.type)
            )
            column = self._single(added, found, own, of, is_exact=wanted.is_exact)
            if found.repeated:
                added.label = _REPEATED
                column = Column(How.LIST, children=(column,))
            else:
                column = _once(added, column)
        if found.has_presence and added.label != _REPEATED and added.type != FieldDescriptorProto.TYPE_MESSAGE:
            _with_presence(made, added)
        return replace(column, name=added.name)

    def _json(self, added: FieldDescriptorProto, message: Message, found: MessageField) -> Column:
        if found.repeated or found.kind is FieldKind.MESSAGE:
            added.label = _REPEATED
        if found.kind is FieldKind.MESSAGE:
            added.type = FieldDescriptorProto.TYPE_BYTES
            return Column(How.JSON, source=(message.name, found.name))
        inner = self._single(added, found, None, None)
        return Column(How.JSON_LIST, children=(inner,)) if found.repeated else inner

    def _map(
        self, made: DescriptorProto, added: FieldDescriptorProto, entry: Message, written: Type, of: Type
    ) -> Column:
        """Return a list of entries: an entry whose key or value is absent, which means the default, shows."""
        nested = made.nested_type.add(name=f"F{added.number}Entry")
        added.label = _REPEATED
        added.type = FieldDescriptorProto.TYPE_MESSAGE
        added.type_name = f".{self.file.package}.{made.name}.{nested.name}"
        children = []
        owns, kinds = ((each.key, each.value) if isinstance(each, MapOf) else (None, None) for each in (written, of))
        for field_, own, kind in zip(entry.fields, owns, kinds, strict=True):
            part = nested.field.add(name=field_.name, number=field_.number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            column = _once(part, self._single(part, field_, own, kind))
            children.append(replace(column, name=field_.name))
        return Column(How.MAP, children=tuple(children))

    def _single(
        self,
        added: FieldDescriptorProto,
        found: MessageField,
        written: Type | None,
        of: Type | None,
        *,
        is_exact: bool = False,
    ) -> Column:
        """Return one value of the field, whatever its label."""
        if found.kind is FieldKind.ENUM:
            added.type = FieldDescriptorProto.TYPE_INT32
            return Column(How.ENUM, names=dict(self._schema.enums[found.type_name]))
        if found.kind is not FieldKind.MESSAGE:
            added.type = FieldDescriptorProto.Type.Value(f"TYPE_{found.kind.upper()}")
            return Column(How.AS_IS)
        added.type = FieldDescriptorProto.TYPE_MESSAGE
        if found.type_name in WELL_KNOWN:
            if how := _TIMES.get(found.type_name.rpartition(".")[2]):
                return self._time(added, how, is_exact=is_exact)
            added.type_name = f".{found.type_name}"
            return Column(How.AS_IS)
        name = f"M{len(self.file.message_type)}"
        added.type_name = f".{self.file.package}.{name}"
        own, inner = (each if isinstance(each, Struct) else Struct(()) for each in (written, of))
        return self.message(name, self._schema.messages[found.type_name], own, inner)

    def _time(self, added: FieldDescriptorProto, how: How, *, is_exact: bool) -> Column:
        """Return a time that is read as two numbers: ptars would cut it, and take numbers that are out of their range."""
        name = f"M{len(self.file.message_type)}"
        added.type_name = f".{self.file.package}.{name}"
        made = self.file.message_type.add(name=name)
        for number, (part, kind) in enumerate(_PARTS, start=1):
            made.field.add(name=part, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL, type=kind)
        return Column(how, is_exact=is_exact)


def _columns(message: Message, written: Struct, target: Struct) -> dict[str, tuple[MessageField, Field]]:
    """Return the target's column -> the field of the message that it is, and the same in the message's row type."""
    by_id = {each: column for column in target.fields for each in column.ids}
    found: dict[str, tuple[MessageField, Field]] = {}
    for field_, own in zip(
        message.fields, written.fields, strict=False
    ):  # deep inside itself, a message has no columns
        column = next((by_id[each] for each in own.ids if each in by_id), None) or same_field(own, target.fields)
        if column is not None:
            found[column.name] = (field_, own)
    return found


def _once(added: FieldDescriptorProto, column: Column) -> Column:
    """Return the column of a field that is not a list: a list of its occurrences if ptars would not merge them."""
    if added.type != FieldDescriptorProto.TYPE_MESSAGE or column.how is How.STRUCT:
        return column
    added.label = _REPEATED
    return Column(How.ONCE, children=(column,))


def _with_presence(made: DescriptorProto, added: FieldDescriptorProto) -> None:
    """Make the field `optional`, so that an absent one is null."""
    added.proto3_optional = True
    added.oneof_index = len(made.oneof_decl)
    made.oneof_decl.add(name=f"_{added.name}")
