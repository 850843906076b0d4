"""The order of producing a file: read, encode everything, then create the topic, register schemas, and send."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import admin as kafka_admin

from frazil.clients.registry.admin import RegistryAdmin
from frazil.declaration import Topic
from frazil.declaration.checks.constraints import shown
from frazil.declaration.formats import Avro, Bytes, Format, Json, JsonSchema, Protobuf, Text
from frazil.declaration.options import SubjectStrategy
from frazil.errors import InvalidInput, KafkaUnavailable
from frazil.inference.inferred_schema import record_name
from frazil.inference.record_file import Line
from frazil.local.kafka_broker import LARGEST_MESSAGE_BYTES
from frazil.local.produce.encoders import Encoder, avro_encoder, inferred, value_encoder
from frazil.schemas.avro.schema_fingerprint import head
from frazil.schemas.wire_format import prefixed

NewTopic: Any = vars(kafka_admin)["NewTopic"]  # exported without saying so to type checkers

SECONDS = 60.0
_QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _: None}  # errors are reported by results
_WRONG = (KafkaError.TOPIC_EXCEPTION, KafkaError.INVALID_PARTITIONS, KafkaError.POLICY_VIOLATION)
LARGEST_RECORD_BYTES = LARGEST_MESSAGE_BYTES - 1024  # Kafka counts the record's own fields too
_ENDINGS = {".avsc": Avro.kind, ".json": JsonSchema.kind, ".proto": Protobuf.kind}


class TopicWriter:
    """A topic of the broker at `bootstrap`. Raises `KafkaUnavailable` if the broker does not answer or refuses."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._admin: Any = kafka_admin.AdminClient({"bootstrap.servers": bootstrap, **_QUIET})

    def create(self, partitions: int) -> bool:
        """Create the topic, and return True, if it does not exist.

        Raises `InvalidInput` for a name or a number of partitions that Kafka does not allow.
        """
        created = self._admin.create_topics([NewTopic(self._topic, partitions, 1)], request_timeout=SECONDS)
        try:
            created[self._topic].result()
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() in _WRONG:
                raise InvalidInput(error.str(), where=f"topic {self._topic}", do="Correct it") from None
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._unavailable(error.str()) from None
            return False
        return True

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
            total += 1
            while True:
                try:
                    producer.produce(self._topic, value, key, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        producer.flush(SECONDS)
        if sent.total() < total:
            why = f": {refused[0]}" if refused else ""
            raise self._unavailable(f"the broker took {sent.total():,} of {total:,} records{why}")
        return dict(sorted(sent.items()))

    def _unavailable(self, what: str) -> KafkaUnavailable:
        return KafkaUnavailable(what, where=f"topic {self._topic}", do="Check the services: `frazil local status`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """The result: the number of records by partition, and the schema id by subject, if the registry has a part in it."""

    topic: str
    created: bool
    format: str
    partitions: Mapping[int, int]
    schemas: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The topic to produce to, as it is declared, and the choices of the person. `partitions` are those of a new topic."""

    topic: str
    declared: Topic | None = None
    format: str | None = None
    """Default: that of the schema file, else of the declaration, else JSON."""
    schema: Path | None = None
    key: str | None = None
    partitions: int = 1

    def chosen_format(self) -> str:
        """Return the format of values. Raises `InvalidInput` if it does not go with the schema file."""
        declared = self.declared.value.kind if self.declared is not None else Json.kind
        if self.schema is None:
            return self.format or declared
        of_file = _ENDINGS.get(self.schema.suffix.lower(), "")
        if not of_file or of_file != (self.format or of_file):
            do = "Name a file that ends in .avsc, .json (JSON Schema) or .proto, and no other --format"
            raise InvalidInput("the file's ending is of no schema of the format", where=str(self.schema), do=do)
        return of_file


def produce(wanted: Wanted, lines: Sequence[Line], *, bootstrap: str, registry_url: Callable[[], str]) -> Produced:
    """Produce the records to the topic. `registry_url` is asked for only if a schema is registered.

    Raises `InvalidInput` before anything is created, registered or sent if a record or the schema is wrong.
    """
    if not lines:
        raise InvalidInput("there is no record", do="Write one JSON object a line")
    kind, topic = wanted.chosen_format(), wanted.topic
    declared = wanted.declared.value if wanted.declared is not None and wanted.declared.value.kind == kind else None
    encoder = value_encoder(kind, topic, lines, _given(wanted) or _declared_schema(declared))
    values, subject = _encoded(encoder, lines), _subject(declared, topic, encoder.name)
    keys = _keys(wanted, lines) if wanted.key is not None else None
    writer = TopicWriter(bootstrap, topic)
    is_new = writer.create(wanted.partitions)
    schemas: dict[str, int] = {}

    def framed(of: Encoder, subject: str, declared: Format | None, bodies: list[bytes]) -> list[bytes]:
        """Return bodies with a registry's frame or the head of single-object encoding, if they have a schema."""
        if of.type is None:
            return bodies
        if declared is not None and declared.schema:
            start = head(of.schema) if declared.framing is not None else b""
            return [start + body for body in bodies]
        schema_id = schemas[subject] = RegistryAdmin(registry_url()).register(subject, of.schema, of.type)
        return [prefixed(schema_id, body, of.index) for body in bodies]

    framed_values = framed(encoder, subject, declared, values)
    framed_keys: Sequence[bytes | None] = [None] * len(values)
    if keys is not None:
        framed_keys = framed(keys[0], f"{topic}-key", wanted.declared.key if wanted.declared else None, keys[1])
    sent = writer.send(zip(framed_keys, framed_values, strict=True))
    return Produced(topic=topic, created=is_new, format=kind, partitions=sent, schemas=schemas)


def _given(wanted: Wanted) -> Line | None:
    """Return the schema of the option."""
    try:
        return Line(str(wanted.schema), wanted.schema.read_text(encoding="utf-8")) if wanted.schema else None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"it cannot be read ({error})", where=str(wanted.schema)) from None


def _declared_schema(of: Format | None) -> Line | None:
    """Return the newest schema of a declaration. A compiled one of Protobuf has no text."""
    files = (of.schema or ()) if of is not None and of.kind != Protobuf.kind else ()
    return Line(files[-1].file, files[-1].content) if files else None


def _encoded(encoder: Encoder, lines: Sequence[Line]) -> list[bytes]:
    bodies: list[bytes] = []
    for line in lines:
        body = encoder.encode(line)
        if len(body) > LARGEST_RECORD_BYTES:
            raise line.wrong(f"the record has {len(body):,} bytes; the broker takes {LARGEST_RECORD_BYTES:,}")
        bodies.append(body)
    return bodies


def _keys(wanted: Wanted, lines: Sequence[Line]) -> tuple[Encoder, list[bytes]]:
    """Return the encoder of keys, and the keys.

    Text stays text, any other value is JSON, unless the topic's key format says otherwise: `json` is the value as JSON, an object
    with the declared columns if there are some, and `avro` a record with this field. Raises `InvalidInput` for other formats.
    """
    field, of = str(wanted.key), wanted.declared.key if wanted.declared is not None else Bytes()
    objects: list[Line] = []
    for line in lines:
        value = line.value
        if not isinstance(value, dict) or value.get(field) is None:
            raise line.wrong(f"the field {shown(field)}, which --key names, is missing or null")
        try:
            objects.append(Line(line.place, _json({field: value[field]})))
        except ValueError:
            raise line.wrong(f"the field {shown(field)} has a number with more digits than a double holds") from None
    match of:
        case Text() | Bytes():
            encoder = Encoder(encode=lambda line: _json(line.value[field], is_text=True).encode())
        case Json():
            is_object = of.columns is not None
            encoder = Encoder(encode=lambda line: (line.text if is_object else _json(line.value[field])).encode())
        case Avro():
            given = _declared_schema(of)
            encoder = avro_encoder(given or inferred(Avro.kind, record_name(wanted.topic, "Key"), objects))
        case _:
            what = f"keys of format {of.kind} are not produced"
            raise InvalidInput(what, where=f"topic {wanted.topic}", do="Produce without --key, or with your own client")
    return encoder, _encoded(encoder, objects)


def _json(value: Any, *, is_text: bool = False) -> str:
    if is_text and isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_double)


def _double(number: Decimal) -> float:
    """Return the double that has the number's digits. Raises `ValueError` if none has: a key must not become another."""
    made = float(number)
    if Decimal(repr(made)) != number:
        raise ValueError(number)
    return made


def _subject(declared: Format | None, topic: str, name: str) -> str:
    """Return the subject of a schema of values; `name` is the full name of the records. Raises `InvalidInput` without one."""
    strategy = declared.subject_strategy if declared is not None else SubjectStrategy.TOPIC
    if strategy is not SubjectStrategy.TOPIC and not name:
        what = f"with subject_strategy {strategy} the schema's name is in its subject, and the schema has none"
        raise InvalidInput(what, where=f"topic {topic}", do="Give a record with a name, or a JSON Schema with a title")
    names = {SubjectStrategy.RECORD: name, SubjectStrategy.TOPIC_RECORD: f"{topic}-{name}"}
    return names.get(strategy, f"{topic}-value")
