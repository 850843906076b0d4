"""Topics of a broker: what they hold, what their records look like, and which pipelines read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Json, Pipeline
from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.table import as_table_name
from frazil.errors import InvalidInput, ServiceUnavailable, UnreadableSchema
from frazil.inference.inferred_schema import columns as sampled_columns
from frazil.inference.record_file import Line
from frazil.inference.sample import Sample
from frazil.schemas.avro.schema_fingerprint import MAGIC
from frazil.schemas.wire_format import Frame, parse

if TYPE_CHECKING:
    from frazil.clients.kafka_listing import TopicSpans
    from frazil.clients.kafka_records import Record
    from frazil.clients.registry.client import Registry


Bodies = Iterable[tuple[bytes | None, tuple[tuple[str, bytes | None], ...]]]
"""Values, or keys, each with the headers of its record."""
TypeOf = Callable[[int], SchemaType | None]
"""The registry's type of a schema id."""
LARGEST_ID = 2**31 - 1


class Form(StrEnum):
    """The form that bytes seem to have. `FRAMED` is a frame whose schema is not known."""

    NULL = "null"
    AVRO = "avro"
    JSON_SCHEMA = "json_schema"
    PROTOBUF = "protobuf"
    FRAMED = "framed"
    SINGLE_OBJECT = "avro single object"
    CONNECT_JSON = "connect_json"
    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"


_OF_TYPE = {SchemaType.AVRO: Form.AVRO, SchemaType.JSON: Form.JSON_SCHEMA, SchemaType.PROTOBUF: Form.PROTOBUF}
_OTHERS = {form: f'Declare value="{form}": the registry has the schema' for form in _OF_TYPE.values()} | {
    Form.FRAMED: "Declare the format of its schema, and name the registry in the environment",
    Form.SINGLE_OBJECT: 'Declare value=Avro(schema=…, framing="single_object") with the schema files of the producers',
    Form.CONNECT_JSON: 'Declare value="connect_json": each record has its schema',
}
"""The forms that have a schema elsewhere, and what to declare."""
_DECLARED = (*_OF_TYPE.values(), Form.JSON, Form.CONNECT_JSON, Form.TEXT)
"""The forms that are formats of a declaration; others are bytes."""


Guess = tuple[Form, ...]
"""The forms of bytes, apart from nulls: several of a mix, none without records."""


def guess(bodies: Bodies, type_of: TypeOf, *, is_key: bool = False) -> Guess:
    """Return what values, or keys, look like."""
    found = dict.fromkeys(_form(value, parse(value, headers, key=is_key), type_of) for value, headers in bodies)
    return tuple(form for form in found if form is not Form.NULL) or tuple(found)


def _declared(of: Guess) -> str:
    """Return the format to declare."""
    return of[0] if len(of) == 1 and of[0] in _DECLARED else Form.BYTES


def schema_ids(bodies: Bodies, *, is_key: bool = False) -> set[int]:
    """Return the schema ids of frames, as the registry is to be asked for them."""
    frames = (parse(value, headers, key=is_key) for value, headers in bodies)
    found = {frame.schema_id for frame in frames if isinstance(frame, Frame) and frame.schema_id is not None}
    return {number for number in found if 0 < number <= LARGEST_ID}


def _form(value: bytes | None, frame: object, type_of: TypeOf) -> Form:
    """Return the form of bytes. A number alone is a text: JSON and CSV have it too."""
    if value is None:
        return Form.NULL
    if isinstance(frame, Frame) and frame.schema_id is None:
        return Form.FRAMED
    if isinstance(frame, Frame) and frame.schema_id is not None and 0 < frame.schema_id <= LARGEST_ID:
        known = type_of(frame.schema_id)
        return _OF_TYPE[known] if known is not None else Form.FRAMED
    if value.startswith(MAGIC) and len(value) >= len(MAGIC) + 8:
        return Form.SINGLE_OBJECT
    try:
        text = value.decode()
        parsed = json.loads(text)
    except UnicodeDecodeError:
        return Form.BYTES
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict) and parsed.keys() == {"schema", "payload"}:
        return Form.CONNECT_JSON
    if isinstance(parsed, dict | list | str):
        return Form.JSON
    is_text = all(character.isprintable() or character in "\t\r\n" for character in text)
    return Form.TEXT if is_text else Form.BYTES


def json_lines(topic: str, records: Iterable[Record], type_of: TypeOf = lambda _: None) -> list[Line]:
    """Return the values as lines, each with its partition and offset as its place; those that are null are omitted.

    Raises `InvalidInput` if records have a schema elsewhere, or if none of them is JSON.
    """
    valued = [(record, record.value) for record in records if record.value is not None]
    refuse_others(f"topic {topic}", ((value, record.headers) for record, value in valued), type_of)
    return [
        Line(f"partition {record.partition}, offset {record.offset}", value.decode("utf-8", "replace"))
        for record, value in valued
    ]


def refuse_others(where: str, bodies: Bodies, type_of: TypeOf = lambda _: None) -> None:
    """Raise `InvalidInput` if values have a schema elsewhere, or if none of them is JSON."""
    forms = guess(bodies, type_of)
    others = [do for form, do in _OTHERS.items() if form in forms]
    if others or (forms and Form.JSON not in forms):
        do = others[0] if others else f'Declare value="{_declared(forms)}"'
        raise InvalidInput(f"the values are {' and '.join(forms)}, and only json is sampled", where=where, do=do)


UNKNOWN = "kafka"
"""The namespace of a table if neither the topic nor the declared pipelines name one."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A topic, with the forms of its newest records, and the declared pipelines that read it."""

    topic: str
    partitions: int
    records: int | None
    value_format_guess: str | None
    key_format_guess: str | None
    sampled_records: int
    pipelines: tuple[str, ...]
    tables: tuple[str, ...]


def listed(topic: TopicSpans, records: list[Record], declared: Iterable[Pipeline], type_of: TypeOf) -> Listed:
    """Return a topic with the guesses from its newest records."""
    value, key = (" and ".join(forms) or None for forms in _guesses(records, type_of))
    readers = [pipeline for pipeline in declared if pipeline.topic.name == topic.name]
    names, tables = tuple(one.name for one in readers), tuple(one.table.identifier for one in readers)
    return Listed(topic.name, len(topic.spans), topic.records, value, key, len(records), names, tables)


def guessed_declaration(topic: str, records: list[Record], declared: Iterable[Pipeline], type_of: TypeOf) -> str:
    """Return a line that declares the topic by the guesses, with the columns of its records if they are JSON."""
    value, key = _guesses(records, type_of)
    columns = sampled_columns(Sample.of(json_lines(topic, records)).found) if value == (Form.JSON,) else ()
    return declaration(topic, _declared(value), key, columns=columns, namespace=namespace_of(declared))


def _guesses(records: list[Record], type_of: TypeOf) -> tuple[Guess, Guess]:
    values = guess(((record.value, record.headers) for record in records), type_of)
    return values, guess(((record.key, record.headers) for record in records), type_of, is_key=True)


def declaration(
    topic: str, kind: str, key: Guess, *, schema: str = "", columns: Iterable[str] = (), namespace: str = UNKNOWN
) -> str:
    """Return a line that declares a topic, with its schema file or columns, if any; keys are bytes without a guess.

    The table's namespace is the topic's own prefix: `shop.orders` becomes `shop.orders`, and `orders` is in `namespace`.
    """
    of_key = f', key="{_declared(key)}"' if _declared(key) != Form.BYTES else ""
    texts = [json.dumps(column, ensure_ascii=False) for column in _declarable(columns)]
    of_columns = f"columns=({', '.join(texts)}{',' * (len(texts) == 1)})" if texts else ""
    options = f"schema={json.dumps(schema)}" if schema else of_columns
    name = "".join(part.capitalize() for part in kind.split("_"))
    value = f"{name}({options})" if options else f'"{kind}"'
    prefix, _, rest = topic.partition(".")
    table = ".".join(map(_as_name, (prefix, rest) if prefix and rest else (namespace, topic)))
    return f'Pipeline(topic=Topic({json.dumps(topic)}, value={value}{of_key}), table=Table("{table}"))'


def _declarable(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns without those that a declaration refuses, such as one whose name has a line break."""
    kept: tuple[str, ...] = ()
    for column in columns:
        with suppress(InvalidDeclaration):
            kept = Json(columns=(*kept, column)).columns or ()
    return kept


def _as_name(part: str) -> str:
    """Return a part of a topic's name as that of a table. A pipeline's name, which is made of it, has 100 characters."""
    name = as_table_name(part)
    return (name if name[:1].isalpha() else f"t_{name}")[:100]


def namespace_of(declared: Iterable[Pipeline]) -> str:
    """Return the namespace of the declared tables, `UNKNOWN` if they have none or several."""
    namespaces = {pipeline.table.identifier.rpartition(".")[0] for pipeline in declared}
    return namespaces.pop() if len(namespaces) == 1 else UNKNOWN


def schema_types(
    records: Iterable[Record], registry: Registry | None
) -> tuple[dict[int, SchemaType], ServiceUnavailable | None]:
    """Return the registry's type of each schema id in records, and why it could not say, if so."""
    found, types = list(records), dict[int, SchemaType]()
    ids = schema_ids((record.value, record.headers) for record in found)
    ids |= schema_ids(((record.key, record.headers) for record in found), is_key=True)
    if registry is None:
        return types, None
    try:
        registry.prefetch(sorted(ids))
        for number in ids:
            with suppress(UnreadableSchema):
                if (schema := registry.schema(number)) is not None:
                    types[number] = schema.type
    except ServiceUnavailable as error:  # the registry, or a secret or token for it
        return types, error
    return types, None
