"""The order of producing a file: read, encode everything, then register schemas, create the topic, and send."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import admin as kafka_admin

from frazil.clients.registry.admin import RegistryAdmin
from frazil.declaration import Topic
from frazil.declaration.checks.constraints import shown
from frazil.declaration.formats import LARGEST as LARGEST_SCHEMA
from frazil.declaration.formats import Avro, Bytes, Format, Json, JsonSchema, Protobuf, Text
from frazil.declaration.options import SubjectStrategy
from frazil.errors import InvalidInput, KafkaUnavailable
from frazil.inference.inferred_schema import record_name
from frazil.inference.record_file import Line
from frazil.local.kafka_broker import LARGEST_MESSAGE_BYTES
from frazil.local.produce.encoders import Encoder, GivenSchema, avro_encoder, inferred, value_encoder
from frazil.schemas.avro.schema_fingerprint import head
from frazil.schemas.wire_format import prefixed

NewTopic: Any = vars(kafka_admin)["NewTopic"]  # exported without saying so to type checkers

SECONDS = 60.0
_QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}  # errors are reported by results
_WRONG = (KafkaError.TOPIC_EXCEPTION, KafkaError.INVALID_PARTITIONS, KafkaError.POLICY_VIOLATION)


class TopicWriter:
    """A topic of the broker at `bootstrap`. Raises `KafkaUnavailable` if the broker does not answer or refuses."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._admin: Any = kafka_admin.AdminClient({"bootstrap.servers": bootstrap, **_QUIET})

    def partitions(self) -> int:
        """Return the number of the topic's partitions; 0 if it does not exist."""
        try:
            found = self._admin.list_topics(timeout=SECONDS).topics.get(self._topic)
        except KafkaException as error:
            raise self._unavailable(error) from None
        return len(found.partitions) if found is not None else 0

    def create(self, partitions: int, *, is_rehearsal: bool = False) -> None:
        """Create the topic if it does not exist; as a rehearsal, only find out whether the broker would.

        Raises `InvalidInput` for a name or a number of partitions that Kafka does not allow.
        """
        new = NewTopic(self._topic, partitions, 1)
        asked = self._admin.create_topics([new], request_timeout=SECONDS, validate_only=is_rehearsal)
        try:
            asked[self._topic].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return  # another client created it meanwhile
            if error.args[0].code() in _WRONG:
                raise InvalidInput(error.args[0].str(), where=f"topic {self._topic}", do="Correct it") from None
            raise self._unavailable(error) from None

    def send(self, records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[int, int]:
        """Send records, in their order, and return how many each partition got.

        Raises `KafkaUnavailable` if the broker did not take all; it says how many it took.
        """
        sent: Counter[int] = Counter()
        refused: list[str] = []

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                sent[message.partition()] += 1
            else:
                refused.append(error.str())

        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,  # a record that is sent again is in the topic once
                "message.max.bytes": LARGEST_MESSAGE_BYTES,
                "linger.ms": 20,
                "compression.type": "lz4",
                "partitioner": "murmur2_random",  # as Java's producers choose a key's partition
                **_QUIET,
            }
        )
        total = 0
        for key, value in records:
            while True:
                try:
                    producer.produce(self._topic, value, key, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            total += 1
            producer.poll(0)
        producer.flush(SECONDS)
        if sent.total() < total:
            why = f": {refused[0]}" if refused else ""
            what = f"the broker took {sent.total():,} of {total:,} records{why}"
            raise KafkaUnavailable(
                what, where=f"topic {self._topic}", do="Start the local services again and look at the topic"
            )
        return dict(sorted(sent.items()))

    def _unavailable(self, error: KafkaException) -> KafkaUnavailable:
        do = "Check that the local services run: frazil local status"
        return KafkaUnavailable(error.args[0].str(), where=f"topic {self._topic}", do=do)


def key_lines(lines: Sequence[Line], field: str) -> list[Line]:
    """Return an object with only the key's field for each record. Raises `InvalidInput` for one without it, or with null."""
    return [Line(line.place, json.dumps({field: _field(line, field)}, default=float)) for line in lines]


def key_encoder(field: str, topic: str, declared: Topic | None, lines: Sequence[Line]) -> Encoder:
    """Return the encoder of keys, for the lines of `key_lines`.

    Text stays text, any other value is JSON, unless the topic's key format says otherwise: `json` is the value as JSON, an object
    with the declared columns if there are some, and `avro` a record with this field. Raises `InvalidInput` for other formats.
    """
    of = declared.key if declared is not None else Bytes()
    match of:
        case Text() | Bytes():
            return Encoder(encode=lambda line: _plain(line.value[field]))
        case Json() if of.columns is not None:
            return Encoder(encode=lambda line: line.text.encode())
        case Json():
            return Encoder(encode=lambda line: _json(line.value[field]))
        case Avro():
            if of.schema:
                return avro_encoder(GivenSchema(file=of.schema[-1].file, text=of.schema[-1].content))
            return avro_encoder(inferred(Avro.kind, record_name(topic, "Key"), lines))
        case _:
            what = f"keys of format {of.kind} are not produced"
            raise InvalidInput(what, where=f"topic {topic}", do="Produce without --key, or with a client of your own")


def _field(line: Line, field: str) -> Any:
    value = line.value
    if not isinstance(value, dict) or field not in value:
        raise line.wrong(f"the record has no field {shown(field)}, which --key names")
    if value[field] is None:
        raise line.wrong(f"the field {shown(field)}, which --key names, is null")
    return value[field]


def _plain(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else _json(value)


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float).encode()


LARGEST_RECORD_BYTES = LARGEST_MESSAGE_BYTES - 1024  # Kafka counts the record's own fields too
FORMATS = (Json.kind, JsonSchema.kind, Avro.kind, Protobuf.kind)
_ENDINGS = {".avsc": Avro.kind, ".json": JsonSchema.kind, ".proto": Protobuf.kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """The result of producing."""

    topic: str
    created: bool
    format: str
    partitions: Mapping[int, int]
    """The number of records by partition."""
    schemas: Mapping[str, int]
    """The schema id by subject; none if the registry has no part in it."""

    @property
    def records(self) -> int:
        """The number of records."""
        return sum(self.partitions.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The topic to produce to, as it is declared, if it is, and the choices of the person."""

    topic: str
    declared: Topic | None = None
    format: str | None = None
    """Default: that of the schema file, else of the declaration, else JSON."""
    schema: Path | None = None
    key: str | None = None
    partitions: int | None = None
    """Of a topic that does not exist yet; default 1."""

    def chosen_format(self) -> str:
        """Return the format of values. Raises `InvalidInput` if it does not go with the schema file."""
        of_file = _ENDINGS.get(self.schema.suffix.lower()) if self.schema is not None else None
        if self.schema is not None and of_file is None:
            do = "Name a file that ends in .avsc, .json (JSON Schema) or .proto"
            raise InvalidInput("the file's ending is of no schema", where=str(self.schema), do=do)
        declared = self.declared.value.kind if self.declared is not None else Json.kind
        chosen = self.format or of_file or declared
        if of_file is not None and of_file != chosen:
            do = "Leave out --format, or name another file"
            raise InvalidInput(f"it is no schema of the format {chosen}", where=str(self.schema), do=do)
        return chosen


def produce(wanted: Wanted, lines: Sequence[Line], *, bootstrap: str, registry_url: Callable[[], str]) -> Produced:
    """Produce the records to the topic. `registry_url` is asked for only if a schema is registered.

    Raises `InvalidInput` before anything is registered, created or sent if a record or the schema is wrong.
    """
    if not lines:
        raise InvalidInput("there is no record", do="Write one JSON object a line")
    kind = wanted.chosen_format()
    declared = wanted.declared.value if wanted.declared is not None and wanted.declared.value.kind == kind else None
    encoder = value_encoder(kind, wanted.topic, lines, _given(wanted, declared))
    values = _encoded(encoder, lines)
    keys: Encoder | None = None
    key_bodies: list[bytes] = []
    if wanted.key is not None:
        of_keys = key_lines(lines, wanted.key)
        keys = key_encoder(wanted.key, wanted.topic, wanted.declared, of_keys)
        key_bodies = _encoded(keys, of_keys)
    writer = TopicWriter(bootstrap, wanted.topic)
    before = writer.partitions()
    if wanted.partitions is not None and before not in (0, wanted.partitions):
        what = f"it has {before} partitions, not {wanted.partitions}"
        raise InvalidInput(what, where=f"topic {wanted.topic}", do="Leave out --partitions")
    if not before:
        writer.create(wanted.partitions or 1, is_rehearsal=True)
    schemas: dict[str, int] = {}

    def framed(of: Encoder, subject: str, declared: Format | None) -> Callable[[bytes], bytes]:
        """Return what adds a registry's frame or the head of single-object encoding to a body, if any."""
        if of.type is None:
            return lambda body: body
        if declared is not None and declared.schema:
            start = head(of.schema) if declared.framing is not None else b""
            return lambda body: start + body
        schema_id = schemas[subject] = RegistryAdmin(registry_url()).register(subject, of.schema, of.type)
        return lambda body: prefixed(schema_id, body, of.index)

    frame = framed(encoder, _subject(declared, wanted.topic, encoder.name), declared)
    framed_keys: Iterable[bytes | None] = repeat(None)
    if keys is not None:
        key_frame = framed(keys, f"{wanted.topic}-key", wanted.declared.key if wanted.declared is not None else None)
        framed_keys = map(key_frame, key_bodies)
    if not before:
        writer.create(wanted.partitions or 1)
    sent = writer.send(zip(framed_keys, map(frame, values), strict=False))
    return Produced(topic=wanted.topic, created=not before, format=kind, partitions=sent, schemas=schemas)


def _given(wanted: Wanted, declared: Format | None) -> GivenSchema | None:
    """Return the schema of the option, else that of the declaration, the newest one."""
    if wanted.schema is not None:
        try:
            text = wanted.schema.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidInput.unreadable(wanted.schema, error) from None
        except UnicodeDecodeError:
            raise InvalidInput("this is not UTF-8", where=str(wanted.schema)) from None
        if len(text) > LARGEST_SCHEMA:
            raise InvalidInput("the schema is larger than 1 MiB", where=str(wanted.schema))
        return GivenSchema(file=str(wanted.schema), text=text)
    if declared is None or not declared.schema:
        return None
    file = declared.schema[-1]
    if file.format == Protobuf.kind:
        return GivenSchema(file=file.file, text="", descriptors=file.data, message=declared.record_name or "")
    return GivenSchema(file=file.file, text=file.content)


def _encoded(encoder: Encoder, lines: Sequence[Line]) -> list[bytes]:
    bodies: list[bytes] = []
    for line in lines:
        try:
            body = encoder.encode(line)
        except UnicodeEncodeError:
            raise line.wrong("the record has half a surrogate pair, which UTF-8 does not have") from None
        if len(body) > LARGEST_RECORD_BYTES:
            raise line.wrong(f"the record has {len(body):,} bytes; the broker takes {LARGEST_RECORD_BYTES:,}")
        bodies.append(body)
    return bodies


def _subject(declared: Format | None, topic: str, name: str) -> str:
    """Return the subject of a schema of values; `name` is the full name of the records."""
    strategy = declared.subject_strategy if declared is not None else SubjectStrategy.TOPIC
    names = {SubjectStrategy.RECORD: name, SubjectStrategy.TOPIC_RECORD: f"{topic}-{name}"}
    return names.get(strategy, f"{topic}-value")
