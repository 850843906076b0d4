"""How a message is read into a target: a descriptor of our own with the fields that are wanted, and what each becomes.

ptars makes columns from a descriptor, and is lenient or silent in places: a group is dropped, a file with an edition aborts, an
invalid `google.type.Date` becomes 1970-01-01. It is given a proto3 file that is made here, so that it meets only what it is exact
about: enums are read as numbers, what lands as JSON text is read as bytes, and only five kinds of message keep their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from google.protobuf import duration_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from frazil.schemas.protobuf import FieldKind, Message, MessageField, ProtobufSchema, well_known
from frazil.schemas.types import Field, ListOf, MapOf, Struct, Type

ROOT = "frazil.Row"
"""The full name of the message that is read."""

_WELL_KNOWN_FILES = (timestamp_pb2, duration_pb2, wrappers_pb2)


class How(StrEnum):
    """What is done with a column that ptars has made.

    `ABSENT` the message has no such field; `AS_IS` the value is it, perhaps widened; `INSTANT` and `DURATION` must be in the
    range of their message; `ENUM` a number becomes its name; `STRUCT`, `LIST` and `MAP` go on inside; `JSON` is bytes of the
    field, one or several; `JSON_LIST` is a list of scalars that becomes JSON text.
    """

    ABSENT = "absent"
    AS_IS = "as is"
    INSTANT = "instant"
    DURATION = "duration"
    ENUM = "enum"
    STRUCT = "struct"
    LIST = "list"
    MAP = "map"
    JSON = "json"
    JSON_LIST = "json list"


@dataclass(frozen=True, slots=True)
class Column:
    """What one target field is made of: the column `name` of what ptars makes, if there is one.

    `names` are an enum's, `children` in the target's order; `source` is the full name of the message and the name of the field
    that become JSON.
    """

    how: How
    names: Mapping[int, str] = field(default_factory=dict)
    children: tuple[Column, ...] = ()
    source: tuple[str, str] = ("", "")
    name: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything a worker needs for one message type; `schema` is the writer's descriptors, only if something becomes JSON."""

    descriptors: bytes
    columns: tuple[Column, ...]
    schema: bytes = b""


def reading(schema: ProtobufSchema, message: str, target: Struct) -> Reading:
    """How to read the message of this full name into `target`; fields are found by `Field.source` and `aliases`."""
    building = _Building(schema)
    columns = building.message("Row", schema.messages[message], target)
    descriptors = FileDescriptorSet()
    for module in _WELL_KNOWN_FILES:
        module.DESCRIPTOR.CopyToProto(descriptors.file.add())
    descriptors.file.append(building.file)
    return Reading(
        descriptors.SerializeToString(deterministic=True), columns, schema.descriptors if building.has_json else b""
    )


class _Building:
    def __init__(self, schema: ProtobufSchema) -> None:
        self.file = FileDescriptorProto(name="frazil/row.proto", package="frazil", syntax="proto3")
        self.file.dependency.extend(module.DESCRIPTOR.name for module in _WELL_KNOWN_FILES)
        self.has_json = False
        self._schema = schema

    def message(self, name: str, message: Message, target: Struct) -> tuple[Column, ...]:
        """Add a message with the fields that `target` wants; what its columns become."""
        made = self.file.message_type.add(name=name)
        return tuple(self._column(made, message, wanted) for wanted in target.fields)

    def _column(self, made: DescriptorProto, message: Message, wanted: Field) -> Column:
        names = (wanted.source, *wanted.aliases)
        found = next((f for name in names if (f := message.field(name)) is not None), None)
        if found is None:
            return Column(How.ABSENT)
        added = made.field.add(name=f"f{found.number}", number=found.number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        entry = self._schema.messages.get(found.type_name)
        if wanted.as_json:
            column = self._json(added, message, found)
        elif entry is not None and entry.is_map_entry:
            column = self._map(made, added, entry, wanted.type)
        else:
            of = wanted.type.element if found.repeated and isinstance(wanted.type, ListOf) else wanted.type
            column = self._single(added, found, of)
            if found.repeated:
                added.label = FieldDescriptorProto.LABEL_REPEATED
                column = Column(How.LIST, children=(column,))
        if found.has_presence and added.type != FieldDescriptorProto.TYPE_MESSAGE:
            added.proto3_optional = True
            added.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=f"_f{found.number}")
        return Column(column.how, column.names, column.children, column.source, added.name)

    def _json(self, added: FieldDescriptorProto, message: Message, found: MessageField) -> Column:
        if found.repeated:
            added.label = FieldDescriptorProto.LABEL_REPEATED
        if found.kind is FieldKind.MESSAGE:
            self.has_json = True
            added.type = FieldDescriptorProto.TYPE_BYTES
            return Column(How.JSON, source=(message.name, found.name))
        inner = self._single(added, found, None)
        return Column(How.JSON_LIST, children=(inner,)) if found.repeated else inner

    def _map(self, made: DescriptorProto, added: FieldDescriptorProto, entry: Message, of: Type) -> Column:
        nested = made.nested_type.add(name=f"F{added.number}Entry")
        nested.options.map_entry = True
        added.label = FieldDescriptorProto.LABEL_REPEATED
        added.type = FieldDescriptorProto.TYPE_MESSAGE
        added.type_name = f".{self.file.package}.{made.name}.{nested.name}"
        children = []
        kinds = (of.key, of.value) if isinstance(of, MapOf) else (None, None)
        for field_, kind in zip(entry.fields, kinds, strict=True):
            part = nested.field.add(name=field_.name, number=field_.number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            children.append(self._single(part, field_, kind))
        return Column(How.MAP, children=tuple(children))

    def _single(self, added: FieldDescriptorProto, found: MessageField, of: Type | None) -> Column:
        """One value of the field, whatever its label."""
        if found.kind is FieldKind.ENUM:
            added.type = FieldDescriptorProto.TYPE_INT32
            return Column(How.ENUM, names=dict(self._schema.enums[found.type_name]))
        if found.kind is not FieldKind.MESSAGE:
            added.type = FieldDescriptorProto.Type.Value(f"TYPE_{found.kind.upper()}")
            return Column(How.AS_IS)
        added.type = FieldDescriptorProto.TYPE_MESSAGE
        if well_known(found.type_name) is not None:
            added.type_name = f".{found.type_name}"
            last = found.type_name.rpartition(".")[2]
            return Column({"Timestamp": How.INSTANT, "Duration": How.DURATION}.get(last, How.AS_IS))
        name = f"M{len(self.file.message_type)}"
        added.type_name = f".{self.file.package}.{name}"
        inner = of if isinstance(of, Struct) else Struct(())
        return Column(How.STRUCT, children=self.message(name, self._schema.messages[found.type_name], inner))
