"""Topics of a broker: what they hold, what their records look like, and which pipelines read them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Json, Pipeline
from frazil.declaration.checks.problems import InvalidDeclaration
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


Header = tuple[str, bytes | None]
LARGEST_ID = 2**31 - 1
_HEAD_BYTES = len(MAGIC) + 8


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
    MIXED = "mixed"


_OF_TYPE = {SchemaType.AVRO: Form.AVRO, SchemaType.JSON: Form.JSON_SCHEMA, SchemaType.PROTOBUF: Form.PROTOBUF}


@dataclass(frozen=True, slots=True)
class Guess:
    """The form that all bytes have, apart from nulls, and how it shows. `forms` are those of a mix."""

    form: Form
    why: str
    forms: tuple[Form, ...] = ()

    def __str__(self) -> str:
        """The form; of a mix all of them."""
        return " and ".join(self.forms) if self.form is Form.MIXED else str(self.form)


def guess(
    values: Iterable[tuple[bytes | None, tuple[Header, ...]]],
    type_of: Callable[[int], SchemaType | None],
    *,
    is_key: bool = False,
) -> Guess | None:
    """Return what values, or keys, look like; None without records. `type_of` is the registry's type of a schema id."""
    found: dict[Form, str] = {}
    for value, headers in values:
        form, why = _one(value, headers, type_of, is_key=is_key)
        found.setdefault(form, why)
    several = {form: why for form, why in found.items() if form is not Form.NULL}
    if len(several) > 1:
        return Guess(Form.MIXED, "the records differ", tuple(several))
    return next((Guess(form, why) for form, why in (several or found).items()), None)


def schema_ids(values: Iterable[tuple[bytes | None, tuple[Header, ...]]], *, is_key: bool = False) -> set[int]:
    """Return the schema ids of frames, as the registry is to be asked for them."""
    frames = (parse(value, headers, key=is_key) for value, headers in values)
    found = {frame.schema_id for frame in frames if isinstance(frame, Frame) and frame.schema_id is not None}
    return {number for number in found if 0 < number <= LARGEST_ID}


def form_of(value: bytes | None, headers: tuple[Header, ...], type_of: Callable[[int], SchemaType | None]) -> Form:
    """Return what one value looks like."""
    return _one(value, headers, type_of, is_key=False)[0]


def _one(
    value: bytes | None, headers: tuple[Header, ...], type_of: Callable[[int], SchemaType | None], *, is_key: bool
) -> tuple[Form, str]:
    if value is None:
        return Form.NULL, "no bytes"
    frame = parse(value, headers, key=is_key)
    if isinstance(frame, Frame):
        if frame.schema_id is None:
            return Form.FRAMED, f"a header with the schema's GUID {frame.guid}"
        known = type_of(frame.schema_id) if 0 < frame.schema_id <= LARGEST_ID else None
        if known is not None:
            return _OF_TYPE[known], f"schema id {frame.schema_id}, of which the registry has a schema"
        if 0 < frame.schema_id <= LARGEST_ID:
            return Form.FRAMED, f"schema id {frame.schema_id}, if it is one; the registry does not say"
    if value.startswith(MAGIC) and len(value) >= _HEAD_BYTES:
        return Form.SINGLE_OBJECT, "C3 01 and a fingerprint"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return Form.BYTES, "no UTF-8, no frame"
    return _text(text)


def _text(text: str) -> tuple[Form, str]:
    """Return the form of a text. A number alone is a text: JSON and CSV have it too."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        return Form.CONNECT_JSON, "a JSON object with schema and payload"
    if isinstance(value, dict | list):
        return Form.JSON, f"a JSON {'object' if isinstance(value, dict) else 'array'}"
    if isinstance(value, str):
        return Form.JSON, "a JSON string"
    if text.isprintable() or all(character.isprintable() or character in "\t\r\n" for character in text):
        return Form.TEXT, "UTF-8"
    return Form.BYTES, "control characters"


_OTHERS = {
    Form.AVRO: 'Declare value="avro": the registry has the schema',
    Form.JSON_SCHEMA: 'Declare value="json_schema": the registry has the schema',
    Form.PROTOBUF: 'Declare value="protobuf": the registry has the schema',
    Form.FRAMED: "Declare the format of its schema, and name the registry in the environment",
    Form.SINGLE_OBJECT: 'Declare value=Avro(schema=…, framing="single_object") with the schema files of the producers',
    Form.CONNECT_JSON: 'Declare value="connect_json": each record has its schema',
}
"""The forms that have a schema elsewhere, and what to declare."""


def json_lines(
    topic: str, records: Iterable[Record], type_of: Callable[[int], SchemaType | None] = lambda _: None
) -> list[Line]:
    """Return the values as lines, each with its partition and offset as its place; those that are null are omitted.

    Raises `InvalidInput` if records have a schema elsewhere, or if none of them is JSON.
    """
    valued = [(record, record.value) for record in records if record.value is not None]
    refuse_others(f"topic {topic}", [form_of(value, record.headers, type_of) for record, value in valued])
    return [
        Line(f"partition {record.partition}, offset {record.offset}", value.decode("utf-8", "replace"))
        for record, value in valued
    ]


def refuse_others(where: str, found: Iterable[Form]) -> None:
    """Raise `InvalidInput` if values have a schema elsewhere, or if none of them is JSON."""
    forms = Counter(found)
    for form, do in _OTHERS.items():
        if forms[form]:
            of = f", {forms[form]:,} of {forms.total():,}" if forms[form] < forms.total() else ""
            raise InvalidInput(f"the values are {form}{of}, and only json is sampled", where=where, do=do)
    if forms and not forms[Form.JSON]:
        what = f"the values are {' and '.join(sorted(map(str, forms)))}, not JSON objects"
        do = f'Declare value="{"text" if forms.keys() == {Form.TEXT} else "bytes"}"'
        raise InvalidInput(what, where=where, do=do)


_VALUES = {
    form: str(form) for form in (Form.AVRO, Form.JSON_SCHEMA, Form.PROTOBUF, Form.JSON, Form.CONNECT_JSON, Form.TEXT)
}
LONGEST_NAME = 100  # of a pipeline, which has the name of its table
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
        """A line that declares the topic by the guesses; bytes without a guess."""
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
    of_key = f', key="{key_format}"' if key_format != "bytes" else ""
    texts = [json.dumps(column, ensure_ascii=False) for column in _declarable(columns)]
    of_columns = f"columns=({', '.join(texts)}{',' * (len(texts) == 1)})" if texts else ""
    options = f"schema={json.dumps(schema)}" if schema else of_columns
    name = "".join(part.capitalize() for part in value_format.split("_"))
    value = f"{name}({options})" if options else f'"{value_format}"'
    prefix, _, rest = topic.partition(".")
    names = (prefix, rest) if prefix and rest else (namespace, topic)
    table = ".".join(map(_as_name, names))
    declared = f"Topic({json.dumps(topic)}, value={value}{of_key})"
    return f'Pipeline(topic={declared}, table=Table("{table}"))'


def _declarable(columns: Iterable[str]) -> list[str]:
    """Return the columns without those that a declaration refuses, such as one whose name has a line break."""
    found = list(columns)
    while found:
        try:
            Json(columns=tuple(found))
        except InvalidDeclaration as invalid:
            refused = {int(number) for one in invalid.problems for number in re.findall(r"columns\[(\d+)\]", one.path)}
            found = [column for number, column in enumerate(found) if number not in refused] if refused else []
        else:
            break
    return found


def _as_name(part: str) -> str:
    """Return a part of a topic's name as that of a table, from which the pipeline has its own."""
    name = re.sub(r"[^a-z0-9_]", "_", part.lower())
    return (name if name[:1].isalpha() else f"t_{name}")[:LONGEST_NAME]


def namespace_of(declared: Iterable[Pipeline]) -> str:
    """Return the namespace of the declared tables, `UNKNOWN` if they have none or several."""
    namespaces = {pipeline.table.identifier.rpartition(".")[0] for pipeline in declared}
    return namespaces.pop() if len(namespaces) == 1 else UNKNOWN


def listed(
    spans: Iterable[TopicSpans],
    newest: Mapping[str, list[Record]],
    declared: Iterable[Pipeline],
    type_of: Callable[[int], SchemaType | None],
) -> tuple[Listed, ...]:
    """Return topics with the guesses from their newest records."""
    readers: dict[str, list[str]] = {}
    declared = tuple(declared)
    namespace = namespace_of(declared)
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
