"""The official Protobuf library: descriptors it knows, and the one way in which it would write what a body says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet


@lru_cache(maxsize=256)
def pool_of(descriptors: bytes) -> DescriptorPool:
    """Return a pool with the files of a serialized `FileDescriptorSet`."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(descriptors).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def message_class(descriptors: bytes, name: str) -> type[Message]:
    """Return the class of a message of a serialized `FileDescriptorSet`."""
    found: type[Message] = GetMessageClass(pool_of(descriptors).FindMessageTypeByName(name))
    return found


def canonical(body: bytes, descriptors: bytes, message: str) -> bytes | None:
    """Return the bytes of an equal message that has each field once; None if the body is no such message.

    What occurs several times is merged, the last member of a oneof remains, and an entry of a map has its value. Fields that the
    type does not know are omitted; numbers that a closed enum does not know remain where they are.
    """
    kind, entries = _types(descriptors, message)
    try:
        read = kind.FromString(body)
    except DecodeError:
        return None
    read.DiscardUnknownFields()
    _complete(read, entries)
    return bytes(read.SerializePartialToString(deterministic=True))


def has_unknown_fields(body: bytes, descriptors: bytes, message: str) -> bool:
    """Return whether the body is a message that has fields, at any depth, which its type does not know."""
    kind, _ = _types(descriptors, message)
    try:
        return _has_unknown(kind.FromString(body))
    except DecodeError:
        return False


def _has_unknown(message: Message) -> bool:
    inner = ((field, value) for field, value in message.ListFields() if field.message_type is not None)
    return len(UnknownFieldSet(message)) > 0 or any(
        _has_unknown(each) for field, value in inner for each in (value if field.is_repeated else (value,))
    )


def _complete(message: Message, entries: frozenset[str]) -> None:
    """Give entries of maps the value that is absent."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in value if field.is_repeated else (value,):
            if field.message_type.full_name in entries and field.message_type.fields_by_name["value"].message_type:
                inner.value.SetInParent()
            _complete(inner, entries)


@lru_cache(maxsize=256)
def _types(descriptors: bytes, message: str) -> tuple[type[Message], frozenset[str]]:
    """Return the type, and the names of types of maps' entries.

    Enums are numbers: a closed one would move unknown ones to the end. Maps are lists: of a map the library drops an entry that
    has a field it does not know.
    """
    files = FileDescriptorSet.FromString(descriptors)
    entries: set[str] = set()
    for file in files.file:
        for name, made in _all(file.message_type, file.package):
            if made.options.map_entry:
                made.options.ClearField("map_entry")
                entries.add(name)
            for field in made.field:
                if field.type == FieldDescriptorProto.TYPE_ENUM:
                    field.type = FieldDescriptorProto.TYPE_INT32
                    field.ClearField("type_name")
                    field.ClearField("default_value")
    return message_class(files.SerializeToString(), message), frozenset(entries)


def _all(messages: Iterable[DescriptorProto], scope: str) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        name = f"{scope}.{message.name}" if scope else message.name
        yield name, message
        yield from _all(message.nested_type, name)
