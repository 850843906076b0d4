"""What a person must know of a topic to declare it: how much it holds, what its records look like, who reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Pipeline
from frazil.errors import ServiceUnavailable, UnreadableSchema
from frazil.status.format_guess import Form, Guess, guess, schema_ids

if TYPE_CHECKING:
    from frazil.clients.kafka_listing import TopicSpans
    from frazil.clients.kafka_records import Record
    from frazil.clients.registry.client import Registry

_VALUES = {
    form: str(form) for form in (Form.AVRO, Form.JSON_SCHEMA, Form.PROTOBUF, Form.JSON, Form.CONNECT_JSON, Form.TEXT)
}
_LONGEST = 241


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A topic. Its formats are guesses from `sampled` records; None without records."""

    topic: str
    partitions: int
    records: int | None
    value: Guess | None
    key: Guess | None
    sampled: int
    pipelines: tuple[str, ...]
    """The declared pipelines that read it."""

    @property
    def document(self) -> dict[str, Any]:
        """The topic as JSON."""
        guesses = {"value": self.value, "key": self.key}
        return {
            "topic": self.topic,
            "partitions": self.partitions,
            "records": self.records,
            **{f"{side}_format_guess": str(one) if one else None for side, one in guesses.items()},
            **{f"{side}_evidence": one.why if one else None for side, one in guesses.items()},
            "sampled_records": self.sampled,
            "pipelines": list(self.pipelines),
        }

    @property
    def declaration(self) -> str:
        """A line that declares the topic by the guesses; bytes where there is none."""
        value = _VALUES.get(self.value.form, "bytes") if self.value else "bytes"
        return declaration(self.topic, value, self.key)


def declaration(topic: str, value_format: str, key: Guess | None, *, schema: str = "") -> str:
    """Return a line that declares a topic, with the path of its schema file if there is one; keys are bytes without a guess."""
    key_format = _VALUES.get(key.form, "bytes") if key else "bytes"
    of_key = f', key_format="{key_format}"' if key_format != "bytes" else ""
    of_schema = f", schema={json.dumps(schema)}" if schema else ""
    name = re.sub(r"[^a-z0-9_]", "_", topic.lower())[:_LONGEST]
    declared = f'Topic({json.dumps(topic)}, value_format="{value_format}"{of_schema}{of_key})'
    return f'Pipeline(topic={declared}, table=Table("kafka.{name}"))'


def listed(
    spans: Iterable[TopicSpans],
    newest: Mapping[str, list[Record]],
    declared: Iterable[Pipeline],
    type_of: Callable[[int], SchemaType | None],
) -> tuple[Listed, ...]:
    """Return topics with the guesses from their newest records."""
    readers: dict[str, list[str]] = {}
    for pipeline in declared:
        readers.setdefault(pipeline.topic.name, []).append(pipeline.name)
    found: list[Listed] = []
    for topic in spans:
        records = newest.get(topic.name, [])
        found.append(
            Listed(
                topic=topic.name,
                partitions=len(topic.spans),
                records=topic.records,
                value=guess(((record.value, record.headers) for record in records), type_of),
                key=guess(((record.key, record.headers) for record in records), type_of, is_key=True),
                sampled=len(records),
                pipelines=tuple(readers.get(topic.name, ())),
            )
        )
    return tuple(found)


def schema_types(
    newest: Mapping[str, list[Record]], registry: Registry | None
) -> tuple[dict[int, SchemaType], ServiceUnavailable | None]:
    """Return the registry's type of each schema id in records, and why it could not say, if so."""
    records = [record for each in newest.values() for record in each]
    ids = schema_ids((record.value, record.headers) for record in records)
    ids |= schema_ids(((record.key, record.headers) for record in records), is_key=True)
    types: dict[int, SchemaType] = {}
    if registry is None:
        return types, None
    try:
        registry.prefetch(sorted(ids))
        for number in ids:
            try:
                schema = registry.schema(number)
            except UnreadableSchema:
                continue
            if schema is not None:
                types[number] = schema.type
    except ServiceUnavailable as error:  # the registry, or a secret or token for it
        return types, error
    return types, None
