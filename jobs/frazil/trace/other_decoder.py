"""Decode a record's value by another library than the one that lands it: fastavro, Google's protobuf, Python's json."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol

from frazil.clients.kafka_records import Record
from frazil.clients.registry.schemas import RegisteredSchema
from frazil.declaration import Pipeline
from frazil.declaration.formats import Avro, Bytes, ConnectJson, Json, JsonSchema, Protobuf, Text
from frazil.errors import InvalidInput, UnreadableSchema
from frazil.schemas.wire_format import Frame, parse


class Schemas(Protocol):
    """The questions to a registry. Each raises `RegistryUnavailable` without an answer."""

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """Return the schema of an id."""

    def id_of_guid(self, guid: str) -> int | None:
        """Return the id of a GUID."""

    def resolve_references(self, schema: RegisteredSchema) -> dict[str, str]:
        """Return the texts of all schemas that a schema uses, by name."""


class NotDecoded(Exception):
    """The value cannot be decoded; the message says why."""


def decoded(pipeline: Pipeline, record: Record, schemas: Schemas | None, *, is_key: bool = False) -> Any:
    """Return a record's value, or its key, as Python has it; None for a tombstone. Raises `NotDecoded`."""
    written, data = pipeline.topic.side(is_key=is_key), record.key if is_key else record.value
    if data is None:
        return None
    index: tuple[int, ...] = ()
    body, schema = data, None
    if written.needs_registry:
        frame = parse(data, record.headers, protobuf=isinstance(written, Protobuf), key=is_key)
        if not isinstance(frame, Frame):
            raise NotDecoded(f"its frame is {frame}")
        body, schema, index = frame.body, _schema(frame, schemas), frame.message_index
    try:
        match written:
            case Avro() if schema is not None and schemas is not None:
                return _avro(body, schema, schemas)
            case Protobuf() if schema is not None and schemas is not None:
                return _protobuf(body, schema, schemas, index)
            case ConnectJson():
                document = _json(data)
                return document.get("payload") if isinstance(document, dict) and "payload" in document else document
            case Json() | JsonSchema():
                return _json(body)
            case Text():
                return data.decode()
            case Bytes():
                return data
    except (ValueError, EOFError, IndexError, KeyError, TypeError, UnreadableSchema) as error:
        raise NotDecoded(f"{type(error).__name__}: {error}") from None
    raise NotDecoded("its schema is in the declaration, not in a registry")


def _schema(frame: Frame, schemas: Schemas | None) -> RegisteredSchema:
    schema_id = frame.schema_id
    if schemas is not None and schema_id is None and frame.guid is not None:
        schema_id = schemas.id_of_guid(frame.guid)
    found = schemas.schema(schema_id) if schemas is not None and schema_id is not None else None
    if found is None:
        raise NotDecoded(f"the registry has no schema {schema_id or frame.guid}")
    return found


def _avro(body: bytes, schema: RegisteredSchema, schemas: Schemas) -> Any:
    try:
        import fastavro
    except ImportError:
        raise InvalidInput("fastavro is not installed", do="pip install 'frazil[local]'") from None
    known: dict[str, Any] = {}
    texts = [*schemas.resolve_references(schema).values(), schema.text]
    for text in texts:  # in the order of their use
        parsed = fastavro.parse_schema(json.loads(text), named_schemas=known)
    stream = io.BytesIO(body)
    value = fastavro.schemaless_reader(stream, parsed, None)
    if stream.read(1):
        raise NotDecoded("bytes follow the value")
    return value


def _protobuf(body: bytes, schema: RegisteredSchema, schemas: Schemas, index: tuple[int, ...]) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    from frazil.decode.protobuf.compiler import compile_proto
    from frazil.decode.protobuf.official import message_class

    compiled = compile_proto(schema.text, schemas.resolve_references(schema)).descriptors
    file = FileDescriptorSet.FromString(compiled).file[-1]
    first, *rest = index or (0,)
    message, name = file.message_type[first], file.message_type[first].name
    for number in rest:
        message = message.nested_type[number]
        name = f"{name}.{message.name}"
    try:
        made = message_class(compiled, f"{file.package}.{name}" if file.package else name).FromString(body)
    except DecodeError as error:
        raise NotDecoded(str(error)) from None
    return _fields(made)


def _fields(message: Any) -> dict[str, Any]:
    """Return the fields of a message; None for one that is not set."""
    found = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            found[field.name] = _repeated(field, value)
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        elif field.enum_type is not None:
            known = field.enum_type.values_by_number.get(value)
            found[field.name] = known.name if known is not None else value
        else:
            found[field.name] = _message(value) if field.message_type is not None else value
    return found


def _repeated(field: Any, value: Any) -> Any:
    of = field.message_type
    if of is not None and of.GetOptions().map_entry:
        return {key: _message(one) if of.fields_by_name["value"].message_type else one for key, one in value.items()}
    return [_message(one) if of is not None else one for one in value]


def _message(value: Any) -> Any:
    name = value.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        from datetime import UTC

        return value.ToDatetime(tzinfo=UTC)
    if name.startswith("google.protobuf.") and name.endswith("Value") and "value" in value.DESCRIPTOR.fields_by_name:
        return value.value
    return _fields(value)


def _json(body: bytes) -> Any:
    return json.loads(body, parse_float=Decimal)


def fields_of(pipeline: Pipeline, value: Any) -> Mapping[str, Any] | None:
    """Return the fields of a decoded value that are a row's; of change data those of the row after a change, or before a delete."""
    if not isinstance(value, Mapping):
        return None
    if not pipeline.is_change_data:
        return value
    after = value.get("after")
    if isinstance(after, Mapping):
        return after
    before = value.get("before")
    return before if isinstance(before, Mapping) else value
