"""One complete dead letter: its place, its bytes, what its frame says, and where decoding it goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from frazil.clients.registry.schemas import RegisteredSchema, SchemaType
from frazil.dead_letters.avro_body import avro_value
from frazil.dead_letters.diagnosis import Attempt, attempt, json_value, text
from frazil.dead_letters.encrypted_bytes import decrypted, is_encrypted, key_of
from frazil.dead_letters.json_body import Written, fitting_json, json_of
from frazil.dead_letters.listing import DeadLetter, columns_of, letters_of
from frazil.dead_letters.protobuf_body import protobuf_fields
from frazil.declaration import Pipeline
from frazil.declaration.formats import Avro, ConnectJson, Format, Json, JsonSchema, Protobuf, SchemaFile, Text
from frazil.errors import InvalidInput, ServiceUnavailable, UnreadableSchema
from frazil.lake.read.scan import Where, rows
from frazil.lake.read.stored_tables import Lake
from frazil.schemas import avro
from frazil.schemas.avro.schema_fingerprint import HEAD_BYTES, head
from frazil.schemas.types import Type
from frazil.schemas.wire_format import PREFIX_BYTES, Frame, FrameProblem, parse


class WriterSchemas(Protocol):
    """The questions to a registry. Each raises `RegistryUnavailable` without an answer."""

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """Return the schema of an id."""

    def id_of_guid(self, guid: str) -> int | None:
        """Return the id of a GUID."""

    def subjects_of(self, schema_id: int) -> tuple[str, ...]:
        """Return the subjects of a schema."""

    def resolve_references(self, schema: RegisteredSchema) -> dict[str, str]:
        """Return the texts of all schemas that a schema uses, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The schema that a frame names, as the registry has it; `problem` says why there is none, or no use of it."""

    id: int | None = None
    subjects: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A record's value or key: its bytes, what its frame says, and what decoding it once more comes to.

    `frame` is None for formats without one; a `FrameProblem` says why the bytes are none. `body_at` is where in the bytes the
    body begins, so that byte `attempt.at` of the body is byte `body_at + attempt.at` of `data`.
    """

    data: bytes | None
    frame: Frame | FrameProblem | None = None
    writer: Writer | None = None
    attempt: Attempt | None = None
    body_at: int = 0

    def view(self) -> tuple[str, ...]:
        """Return the bytes for people, from the beginning, or from shortly before the place where decoding fails."""
        failed = self.body_at + (self.attempt.at or 0) if self.attempt else 0
        return hexview(self.data or b"", start=max(0, failed - 256) if failed >= 512 else 0)

    def document(self) -> dict[str, Any]:
        """Return the part as JSON: bytes as hex, a frame without its body."""
        frame: Any = self.frame
        if isinstance(frame, Frame):
            frame = {"schema_id": frame.schema_id, "guid": frame.guid, "message_index": list(frame.message_index)}
        return {
            "bytes": _hex(self.data),
            "frame": frame,
            "writer": asdict(self.writer) if self.writer else None,
            "attempt": asdict(self.attempt) if self.attempt else None,
            "body_at": self.body_at,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterView:
    """One dead letter: the newest of its place. `earlier` is how many others have it, of a topic that was created again.

    If it `is_masked`, the record's bytes were not kept, and `masked` is what was decoded of its value.
    """

    pipeline: str
    table: str
    topic: str
    letter: DeadLetter
    headers: tuple[tuple[str, bytes | None], ...]
    key: Part
    value: Part
    earlier: int = 0
    is_masked: bool = False
    masked: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the dead letter as JSON."""
        return {
            "pipeline": self.pipeline,
            "table": self.table,
            "topic": self.topic,
            **self.letter.document(),
            "headers": [{"key": key, "value": _hex(value)} for key, value in self.headers],
            "key": self.key.document(),
            "value": self.value.document(),
            "earlier": self.earlier,
            "masked": self.masked,
        }


def show(
    pipeline: Pipeline, lake: Lake, *, partition: int, offset: int, schemas: WriterSchemas | None = None
) -> DeadLetterView | None:
    """Return the newest dead letter of a record, or None. Without a registry, the writer's schema is omitted.

    Raises `InvalidInput` if it is encrypted with another secret than the declared one.
    """
    table = lake.table(pipeline.table.dead_letters)
    place = [Where(column="partition", equal=partition), Where(column="offset", equal=offset)]
    of_letter = columns_of(table) if table is not None else ()
    columns = (
        *of_letter,
        "topic",
        "headers",
        "key",
        "value",
        *(["masked"] if table is not None and "masked" in table.layout.columns else []),
    )
    found = [row for batch in rows(table, columns, place) for row in letters_of(batch)] if table is not None else []
    if not found:
        return None
    row = _readable(pipeline, max(found, key=lambda one: one["rejected_at"]), lake)
    headers = tuple((header["key"], header["value"]) for header in row["headers"] or ())
    return DeadLetterView(
        pipeline=pipeline.name,
        table=pipeline.table.dead_letters,
        topic=row["topic"],
        letter=DeadLetter(**{name: row[name] for name in (*of_letter, "timestamp_ms")}),
        headers=headers,
        key=part(pipeline, row["key"], headers, schemas, is_key=True),
        value=part(pipeline, row["value"], headers, schemas),
        earlier=len(found) - 1,
        is_masked=pipeline.shape.is_masked and row["key"] is None and row["value"] is None,
        masked=row.get("masked"),
    )


def _readable(pipeline: Pipeline, row: dict[str, Any], lake: Lake) -> dict[str, Any]:
    """Return a row of a dead-letter table with its bytes as Kafka held them."""
    headers = row["headers"] or []
    if not any(map(is_encrypted, (row["key"], row["value"], *(header["value"] for header in headers)))):
        return row
    if (declared := pipeline.shape.dead_letters) is None:
        what = f"the dead letter of partition {row['partition']}, offset {row['offset']} is encrypted"
        raise InvalidInput(what, where=f"pipeline {pipeline.name}", do="Declare its secret in shape.dead_letters")
    key = key_of(lake.resolve(declared.secret))
    plain = {part: decrypted(row[part], key, row, part) for part in ("key", "value")}
    of_headers = [{**one, "value": decrypted(one["value"], key, row, f"header {one['key']}")} for one in headers]
    return {**row, **plain, "headers": of_headers}


def part(
    pipeline: Pipeline,
    data: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    schemas: WriterSchemas | None,
    *,
    is_key: bool = False,
) -> Part:
    """Return a record's value, or key, and what decoding it once more comes to."""
    written = pipeline.topic.side(is_key=is_key)
    if data is None and is_key:
        return Part(data=None)
    if written.schema is not None and isinstance(written, Avro):
        return _declared_part(data, written.schema)
    frame = None
    if written.needs_registry:
        frame = parse(data, headers, protobuf=isinstance(written, Protobuf), key=is_key)
    writer, schema, text = _writer(frame, schemas)
    body = frame.body if isinstance(frame, Frame) else data if frame is None else None
    return Part(
        data=data,
        frame=frame,
        writer=writer,
        attempt=_attempt(body, written, schema, json_of(pipeline, body or b"", text, is_key=is_key)),
        body_at=len(data) - len(body) if data is not None and body is not None else 0,
    )


def _declared_part(data: bytes | None, declared: Sequence[SchemaFile]) -> Part:
    """Return bytes that no registry describes, decoded by the schema that their fingerprint names, or by the newest one."""
    if data is None:
        return Part(data=None)
    heads = {head(file.content): file for file in declared}
    file = heads.get(data[:HEAD_BYTES])
    body_at = HEAD_BYTES if file is not None else 0
    schema = avro.parse((file or declared[-1]).content)
    tried, frame = _avro(data[body_at:], schema), parse(data)
    if not tried.succeeded and isinstance(frame, Frame) and 0 < (frame.schema_id or 0) < 2**24:
        hint = f"or the first {PREFIX_BYTES} bytes are a registry's frame with schema id {frame.schema_id}: then remove schema"
        tried = replace(tried, what=f"{tried.what}; {hint}")
    return Part(data=data, attempt=tried, body_at=body_at)


def _writer(
    frame: Frame | FrameProblem | None, schemas: WriterSchemas | None
) -> tuple[Writer | None, avro.AvroSchema | None, Written | None]:
    """Return what the registry says of the schema that a frame names, and that schema, if it is Avro's, or its text."""
    if not isinstance(frame, Frame):
        return None, None, None
    schema_id = frame.schema_id
    if schemas is None:
        return Writer(id=schema_id, problem="no registry was asked"), None, None
    subjects: tuple[str, ...] = ()
    try:
        if schema_id is None and frame.guid is not None:
            schema_id = schemas.id_of_guid(frame.guid)
        found = schemas.schema(schema_id) if schema_id is not None else None
        if found is None or schema_id is None:
            return Writer(id=schema_id, problem="the registry has no such schema"), None, None
        subjects = tuple(schemas.subjects_of(schema_id))
        writer, references = Writer(id=schema_id, subjects=subjects), schemas.resolve_references(found)
        if found.type is not SchemaType.AVRO:
            return writer, None, (found.text, references)
        return writer, avro.parse(found.text, references), None
    except (ServiceUnavailable, UnreadableSchema) as error:
        return Writer(id=schema_id, subjects=subjects, problem=str(error)), None, None


def _attempt(
    body: bytes | None,
    written: Format,
    schema: avro.AvroSchema | None,
    of_json: Type | None,
) -> Attempt | None:
    if body is None:
        return None
    match written:
        case Avro():
            return _avro(body, schema) if schema is not None else None
        case JsonSchema() | Json() | ConnectJson():
            if of_json is None:
                return attempt(body, json_value, success="it is JSON; its values were not compared with the columns")
            in_payload = isinstance(written, ConnectJson)
            return attempt(body, lambda data: fitting_json(data, of_json, in_payload=in_payload))
        case Protobuf():
            return attempt(
                body, protobuf_fields, success="it is Protobuf; its fields were not compared with the columns"
            )
        case Text():
            return attempt(body, text)
        case _:
            return None


def _avro(body: bytes, schema: avro.AvroSchema) -> Attempt:
    success = "it is Avro of its schema; decimals and times were not compared with the columns"
    return attempt(body, lambda data: avro_value(data, schema), success=success)


def _hex(data: bytes | None) -> str | None:
    return data.hex() if data is not None else None


SHOWN_BYTES = 512
WIDTH = 16


def hexview(data: bytes, *, at_most: int = SHOWN_BYTES, start: int = 0) -> tuple[str, ...]:
    """Return lines like `00000000: 0000 0000 2a06 666f 6f                   ....*.foo`, of up to `at_most` bytes from `start`.

    `start` is rounded down to the beginning of its line. A last line says how many bytes follow that are not shown.
    """
    start = max(0, min(start, len(data))) // WIDTH * WIDTH
    shown = data[start : start + at_most]
    lines = [_line(start + at, shown[at : at + WIDTH]) for at in range(0, len(shown), WIDTH)]
    rest = len(data) - start - len(shown)
    return (*lines, f"… {rest} more bytes") if rest else tuple(lines)


def _line(at: int, part: bytes) -> str:
    pairs = " ".join(part[i : i + 2].hex() for i in range(0, len(part), 2))
    text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
    return f"{at:08x}: {pairs:<39}  {text}"
