"""Protobuf descriptors as plain data: what protoc compiled now, or a descriptor set that a declaration holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from frazil.errors import UnreadableSchema
from frazil.schemas.protobuf import FieldKind, Message, MessageField, ProtobufSchema

_MESSAGES, _NESTED, _FIELDS = 4, 3, 2  # field numbers in descriptor.proto, of which source paths are made
_KINDS = {
    number: FieldKind(name.removeprefix("TYPE_").lower())
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


def message_schema(descriptor_set: bytes, message: str) -> ProtobufSchema:
    """Return the schema of a message of a descriptor set. Raises `UnreadableSchema`."""
    try:
        compiled = FileDescriptorSet.FromString(descriptor_set)
    except DecodeError:
        raise _unreadable("it is no descriptor set") from None
    if not compiled.file:
        raise _unreadable("it is a descriptor set without files")
    _sort(compiled)
    for file in compiled.file:
        if message in _indexes_of(file).values():
            return described(compiled, file.name)
    there = [name for file in compiled.file for name in _indexes_of(file).values()]
    listed = ", ".join(there[:10]) + (f" and {len(there) - 10} more" if len(there) > 10 else "")
    raise UnreadableSchema(f"it has no message {message}", do=f"Name one of {listed}")


def _sort(compiled: FileDescriptorSet) -> None:
    """Put each file after those that it imports, as protoc does. Raises `UnreadableSchema` if one is missing."""
    files = dict[str, FileDescriptorProto]()
    for file in compiled.file:
        if files.setdefault(file.name, file) != file:
            raise _unreadable(f"it has two different files {file.name}")
    if missing := sorted({name for file in files.values() for name in file.dependency} - files.keys()):
        raise _unreadable(f"it lacks the imported file {missing[0]}")
    try:
        in_order = [*TopologicalSorter({name: [*file.dependency] for name, file in files.items()}).static_order()]
    except CycleError:
        raise _unreadable("its files import each other") from None
    del compiled.file[:]
    compiled.file.extend(files[name] for name in in_order)


def _unreadable(what: str) -> UnreadableSchema:
    return UnreadableSchema(what, do="Write it with protoc --include_imports --descriptor_set_out")


def described(compiled: FileDescriptorSet, name: str) -> ProtobufSchema:
    """Return the schema of compiled files, each after those that it imports; `name` is the one whose messages a frame names."""
    pool = DescriptorPool()
    docs: dict[str, str] = {}
    for file in compiled.file:
        docs |= _comments(file)
        file.ClearField("source_code_info")
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as problem:  # what a compiler would have refused
            raise _unreadable(f"its file {file.name} is invalid: {problem}") from None
    found = [m for file in compiled.file for m in _all(pool.FindFileByName(file.name).message_types_by_name.values())]
    enums = {f.enum_type.full_name: f.enum_type for m in found for f in m.fields if f.enum_type is not None}
    own = next(file for file in compiled.file if file.name == name)
    return ProtobufSchema(
        messages={m.full_name: _message(m, docs) for m in found},
        enums={full: _names((v.number, v.name) for v in enum.values) for full, enum in enums.items()},
        indexes=_indexes_of(own),
        descriptors=compiled.SerializeToString(deterministic=True),
    )


def _all(messages: Iterator[Descriptor]) -> Iterator[Descriptor]:
    for message in messages:
        yield message
        yield from _all(message.nested_types)


def _message(message: Descriptor, docs: Mapping[str, str]) -> Message:
    fields = tuple(_field(field, docs) for field in message.fields)
    return Message(message.full_name, fields, is_map_entry=message.GetOptions().map_entry)


def _field(field: FieldDescriptor, docs: Mapping[str, str]) -> MessageField:
    of = field.message_type or field.enum_type
    oneof = field.containing_oneof
    return MessageField(
        name=field.name,
        number=field.number,
        kind=_KINDS[field.type],
        type_name=of.full_name if of is not None else "",
        repeated=field.is_repeated,
        has_presence=field.has_presence,
        doc=docs.get(field.full_name, ""),
        oneof=oneof.name
        if oneof is not None and len(oneof.fields) > 1
        else "",  # `optional` makes a oneof of one field
    )


def _names(values: Iterator[tuple[int, str]]) -> dict[int, str]:
    names: dict[int, str] = {}
    for number, name in values:
        names.setdefault(number, name)
    return names


def _indexes(
    messages: Iterator[DescriptorProto], scope: str, path: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the message index of each message, nested ones included; a map's entry is counted, and omitted."""
    for i, message in enumerate(messages):
        full = f"{scope}.{message.name}" if scope else message.name
        if not message.options.map_entry:
            yield (*path, i), full
            yield from _indexes(message.nested_type, full, (*path, i))


def _comments(file: FileDescriptorProto) -> dict[str, str]:
    """Return full field name -> the comment before it, or after it."""
    said = {
        tuple(location.path): " ".join((location.leading_comments or location.trailing_comments).split())
        for location in file.source_code_info.location
        if location.leading_comments or location.trailing_comments
    }
    docs: dict[str, str] = {}

    def walk(message: DescriptorProto, scope: str, path: tuple[int, ...]) -> None:
        full = f"{scope}.{message.name}" if scope else message.name
        for i, field in enumerate(message.field):
            if (*path, _FIELDS, i) in said:
                docs[f"{full}.{field.name}"] = said[(*path, _FIELDS, i)]
        for i, nested in enumerate(message.nested_type):
            walk(nested, full, (*path, _NESTED, i))

    for i, message in enumerate(file.message_type):
        walk(message, file.package, (_MESSAGES, i))
    return docs


def _indexes_of(file: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    return dict(_indexes(file.message_type, file.package, ()))
