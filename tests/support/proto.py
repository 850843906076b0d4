"""Protobuf as a producer writes it: messages from their JSON, framed with id and message index."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from frazil.decode.protobuf.compiler import compile_proto
from frazil.schemas.protobuf import ProtobufSchema
from frazil.schemas.wire_format import prefixed


@lru_cache(maxsize=256)
def compiled(text: str, references: tuple[tuple[str, str], ...] = ()) -> ProtobufSchema:
    """Compile a file once: protoc takes longer than everything else."""
    return compile_proto(text, dict(references))


def protobuf(
    text: str, value: Mapping[str, Any], *, message: str = "", references: Mapping[str, str] | None = None
) -> bytes:
    """Return the body of a message, by default of the file's first type."""
    of = compiled(text, tuple((references or {}).items()))
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(of.descriptors).file:
        pool.AddSerializedFile(file.SerializeToString())
    made = GetMessageClass(pool.FindMessageTypeByName(message or of.indexes[(0,)]))()
    return bytes(json_format.ParseDict(dict(value), made).SerializeToString())


def framed(schema_id: int, body: bytes, *path: int) -> bytes:
    """Frame a value; `path` is the message index, by default the first message."""
    return prefixed(schema_id, body, path or (0,))
