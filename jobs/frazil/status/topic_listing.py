"""What a person must know of a topic to declare it: how much it holds, what its records look like, who reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput, ServiceUnavailable, UnreadableSchema
from frazil.inference.inferred_schema import sampled_columns
from frazil.inference.sample import Sample
from frazil.status.format_guess import Form, Guess, guess, schema_ids
from frazil.status.json_values import json_lines

if TYPE_CHECKING:
    from frazil.clients.kafka_listing import TopicSpans
    from frazil.clients.kafka_records import Record
    from frazil.clients.registry.client import Registry

_VALUES = {
    form: str(form) for form in (Form.AVRO, Form.JSON_SCHEMA, Form.PROTOBUF, Form.JSON, Form.CONNECT_JSON, Form.TEXT)
}
_LONGEST = 241
UNKNOWN = "kafka"
"""The namespace of a table if neither the topic nor the declared pipelines name one."""


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
    columns: tuple[str, ...] = ()
    """Of plain JSON: the columns of its sampled records."""
    namespace: str = UNKNOWN
    """The namespace of a table, if the topic's name has no prefix."""

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
        return declaration(self.topic, value, self.key, columns=self.columns, namespace=self.namespace)


def declaration(
    topic: str,
    value_format: str,
    key: Guess | None,
    *,
    schema: str = "",
    columns: Iterable[str] = (),
    namespace: str = UNKNOWN,
) -> str:
    """Return a line that declares a topic, with its schema file or columns, if any; keys are bytes without a guess.

    The table's namespace is the topic's own prefix: `shop.orders` becomes `shop.orders`, and `orders` is in `namespace`.
    """
    key_format = _VALUES.get(key.form, "bytes") if key else "bytes"
    of_key = f', key_format="{key_format}"' if key_format != "bytes" else ""
    of_schema = f", schema={json.dumps(schema)}" if schema else ""
    texts = [json.dumps(column, ensure_ascii=False) for column in columns]
    of_columns = f", columns=({', '.join(texts)}{',' * (len(texts) == 1)})" if texts else ""
    prefix, _, rest = topic.partition(".")
    names = (prefix, rest) if prefix and rest else (namespace, topic)
    table = ".".join(re.sub(r"[^a-z0-9_]", "_", name.lower())[:_LONGEST] for name in names)
    declared = f'Topic({json.dumps(topic)}, value_format="{value_format}"{of_schema}{of_columns}{of_key})'
    return f'Pipeline(topic={declared}, table=Table("{table}"))'


def listed(
    spans: Iterable[TopicSpans],
    newest: Mapping[str, list[Record]],
    declared: Iterable[Pipeline],
    type_of: Callable[[int], SchemaType | None],
) -> tuple[Listed, ...]:
    """Return topics with the guesses from their newest records."""
    readers: dict[str, list[str]] = {}
    declared = tuple(declared)
    namespaces = {pipeline.table.identifier.rpartition(".")[0] for pipeline in declared}
    namespace = namespaces.pop() if len(namespaces) == 1 else UNKNOWN
    for pipeline in declared:
        readers.setdefault(pipeline.topic.name, []).append(pipeline.name)
    found: list[Listed] = []
    for topic in spans:
        records = newest.get(topic.name, [])
        value = guess(((record.value, record.headers) for record in records), type_of)
        found.append(
            Listed(
                topic=topic.name,
                partitions=len(topic.spans),
                records=topic.records,
                value=value,
                key=guess(((record.key, record.headers) for record in records), type_of, is_key=True),
                sampled=len(records),
                pipelines=tuple(readers.get(topic.name, ())),
                columns=_columns(topic.name, records) if value and value.form is Form.JSON else (),
                namespace=namespace,
            )
        )
    return tuple(found)


def _columns(topic: str, records: Iterable[Record]) -> tuple[str, ...]:
    """Return the columns of the records that are JSON objects."""
    try:
        return sampled_columns(Sample.of(json_lines(topic, records)).found)
    except InvalidInput:  # the records mix formats, and the guess names the most frequent one
        return ()


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
