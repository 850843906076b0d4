"""The official Protobuf library: descriptors it knows, and the one way in which it would write what a body says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass


@lru_cache(maxsize=256)
def pool_of(descriptors: bytes) -> DescriptorPool:
    """A pool with the files of a serialized `FileDescriptorSet`."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(descriptors).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def canonical(body: bytes, descriptors: bytes, message: str) -> bytes | None:
    """The bytes of an equal message that have each field once; None if the body is no such message.

    What occurs several times is merged, the last member of a oneof remains, and an entry of a map has its key and its value.
    Numbers that a closed enum does not know remain where they are.
    """
    try:
        read = _type(descriptors, message).FromString(body)
    except DecodeError:
        return None
    return bytes(read.SerializePartialToString(deterministic=True))


@lru_cache(maxsize=256)
def _type(descriptors: bytes, message: str) -> type[Message]:
    files = FileDescriptorSet.FromString(descriptors)
    for file in files.file:
        for field in _fields(file.message_type):
            if field.type == FieldDescriptorProto.TYPE_ENUM:  # a closed one would move its unknown numbers to the end
                field.type = FieldDescriptorProto.TYPE_INT32
                field.ClearField("type_name")
                field.ClearField("default_value")
    found: type[Message] = GetMessageClass(pool_of(files.SerializeToString()).FindMessageTypeByName(message))
    return found


def _fields(messages: list[DescriptorProto]) -> Iterator[FieldDescriptorProto]:
    for message in messages:
        yield from message.field
        yield from _fields(message.nested_type)
