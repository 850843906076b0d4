"""The choice of a topic's writer schemas: declared, in the records, in the registry, or none at all."""

from __future__ import annotations

from frazil.clients.registry.client import Registry
from frazil.declaration.options import ValueFormat
from frazil.declaration.topic import Topic
from frazil.decode.raw import RAW, RawWriters
from frazil.decode.writers.declared_writers import declared_writers
from frazil.decode.writers.embedded_writers import EmbeddedWriters
from frazil.decode.writers.registered_messages import MessageWriters
from frazil.decode.writers.registered_writers import AvroWriters, JsonWriters
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope


def writer_schemas(
    topic: Topic,
    registry: Registry | None,
    *,
    keys: bool = False,
    envelope: Envelope = NO_ENVELOPE,
    of_one_type: bool = False,
) -> WriterSchemas:
    """Return the writer schemas of a topic's values; with `keys`, of its keys. `of_one_type` is that of `MessageWriters`.

    Raises `InvalidInput` as the envelope does for declared schemas, and `UnreadableSchema`.
    """
    of = ValueFormat(topic.key_format.value) if keys else topic.value_format
    if (topic.key_columns if keys else topic.columns) or (topic.key_schema if keys else topic.schema):
        return declared_writers(topic, of, envelope, is_key=keys)
    if topic.has_key_schemas_inside if keys else topic.has_schemas_inside:
        return EmbeddedWriters(envelope, is_key=keys)
    if of in RAW:
        return RawWriters(of, envelope, is_key=keys)
    if of is ValueFormat.PROTOBUF:
        return MessageWriters(topic, registry, envelope, is_key=keys, of_one_type=of_one_type)
    made = AvroWriters if of is ValueFormat.AVRO else JsonWriters
    return made(topic, registry, envelope, is_key=keys)
