"""Encoders of the records of a file, for each format: the schema, and a function from a record to its body."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import cache
from typing import Any

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration.formats import Avro, Json, JsonSchema, Protobuf
from frazil.errors import InvalidInput, UnreadableSchema
from frazil.inference.inferred_schema import avro_schema, json_schema, record_name
from frazil.inference.record_file import Line
from frazil.inference.sample import Sample
from frazil.schemas import avro


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """Encodes records. `encode` raises `InvalidInput` with the record's line if it does not fit the schema."""

    encode: Callable[[Line], bytes]
    type: SchemaType | None = None
    schema: str = ""
    name: str = ""
    """The full name of the records, for subjects by record name."""
    index: tuple[int, ...] | None = None


def value_encoder(kind: str, topic: str, lines: Sequence[Line], given: Line | None) -> Encoder:
    """Return the encoder of values. Without a schema, that of Avro and of a JSON Schema is inferred from all records.

    Raises `InvalidInput` if no schema fits, if the given one is invalid, or if the format has none where one is needed.
    """
    encoders = {Avro.kind: avro_encoder, JsonSchema.kind: _schema_encoder, Protobuf.kind: _protobuf_encoder}
    if kind == Json.kind:
        return Encoder(encode=_json)
    if kind not in encoders:
        do = "Give --format json, json_schema, avro or protobuf"
        raise InvalidInput(f"records of format {kind} are not produced", where=f"topic {topic}", do=do)
    if given is None and kind == Protobuf.kind:
        raise InvalidInput("a Protobuf schema cannot be inferred", where="--schema", do="Give --schema FILE.proto")
    return encoders[kind](given or inferred(kind, record_name(topic), lines))


def inferred(kind: str, name: str, lines: Sequence[Line]) -> Line:
    """Return the schema of all records. Raises `InvalidInput` if values of a field have no common type."""
    sample = Sample.of(lines)
    for error in sample.unused:
        raise error
    sample.refuse_conflicts("the records", "Correct them, or give --schema FILE; nothing was produced")
    text = avro_schema(sample.found, name) if kind == Avro.kind else json.dumps(json_schema(sample.found, name))
    return Line("the inferred schema", text)


def _json(line: Line) -> bytes:
    """Return the text as the file has it, so that no digit of a number changes."""
    _ = line.value
    return line.text.encode()


def avro_encoder(given: Line) -> Encoder:
    """Return an encoder in Avro. Members of unions are written bare, without the name of their type.

    Logical types take what people write: ISO 8601 for dates, times and timestamps, numbers or texts for decimals.
    """
    fastavro = _fastavro()
    try:
        parsed = avro.parse(given.text)
        schema = fastavro.parse_schema(json.loads(given.text))
    except (UnreadableSchema, fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, ValueError) as error:
        raise InvalidInput(f"this is no Avro schema: {error}", where=given.place, do="Correct the schema") from None

    def encode(line: Line) -> bytes:
        _, body = line.value, io.BytesIO()
        try:
            value = json.loads(line.text, parse_float=_Number)
            fastavro.validation.validate(value, schema)
            fastavro.schemaless_writer(body, schema, value, strict_allow_default=True)
        except fastavro.validation.ValidationError as error:
            raise line.wrong("; ".join(map(str, error.errors))[:300]) from None
        except (ValueError, OverflowError) as error:
            raise line.wrong(str(error)) from None
        return body.getvalue()

    name = "" if parsed.is_single_value else parsed.root.name
    return Encoder(encode=encode, type=SchemaType.AVRO, schema=given.text, name=name)


class _Number(float):
    """A number with a fraction, and its text, for decimals."""

    def __init__(self, text: str) -> None:
        self.text = text
        if math.isinf(self):
            raise ValueError(f"no double holds {text}")


@cache
def _fastavro() -> Any:
    """Return fastavro with logical types that take JSON's values. Its validation names a value that a type does not hold."""
    import fastavro.validation
    from fastavro.write import LOGICAL_WRITERS

    def taking_json(name: str, write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def prepare(value: Any, schema: Any) -> Any:
            try:
                return write(_logical(value, name, schema), schema)
            except (ValueError, ArithmeticError):
                return value

        return prepare

    LOGICAL_WRITERS.update({name: taking_json(name, write) for name, write in LOGICAL_WRITERS.items()})
    return fastavro


def _logical(value: Any, name: str, schema: Mapping[str, Any]) -> Any:
    """Return a value of JSON as the logical type has it, such as `long-timestamp-millis`."""
    if name.endswith("decimal") and isinstance(value, int | str | _Number) and not isinstance(value, bool):
        exact = Context(prec=schema["precision"], traps=[Inexact, InvalidOperation])
        return Decimal(getattr(value, "text", value)).quantize(
            Decimal(1).scaleb(-schema.get("scale", 0)), context=exact
        )
    if not isinstance(value, str) or "time" not in name:
        return value
    if "timestamp" not in name:
        return time.fromisoformat(value)
    made = datetime.fromisoformat(value)
    if (made.tzinfo is None) != ("local" in name):
        raise ValueError(value)
    return made


def _schema_encoder(given: Line) -> Encoder:
    """Return an encoder in JSON that compares records with the schema. References are never fetched."""
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.validators import Draft7Validator, validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    schema = given.value
    kind = validator_for(schema, default=Draft7Validator)
    checker: Any = kind(json.loads(given.text), registry=Registry())

    def encode(line: Line) -> bytes:
        body = _json(line)
        try:
            checker.validate(json.loads(body))
        except ValidationError as error:
            raise line.wrong(f"{error.json_path}: {error.message}"[:300]) from None
        except Unresolvable as error:
            what = f"it refers to {error.ref}, which it does not have"
            raise InvalidInput(what, where=given.place, do="Put it into the file, below definitions") from None
        return body

    try:
        kind.check_schema(checker.schema)
    except SchemaError as error:
        raise InvalidInput(f"this is no JSON Schema: {error.message}", where=given.place, do="Correct it") from None
    title = schema.get("title", "") if isinstance(schema, dict) else ""
    return Encoder(encode=encode, type=SchemaType.JSON, schema=given.text, name=str(title))


def _protobuf_encoder(given: Line) -> Encoder:
    """Return an encoder of the first message of a `.proto` file."""
    from google.protobuf import json_format

    from frazil.decode.protobuf.compiler import compile_proto
    from frazil.decode.protobuf.official import message_class

    try:
        compiled = compile_proto(given.text)
    except UnreadableSchema as error:
        raise InvalidInput(error.what, where=given.place, do=error.do or "Correct the file") from None
    if (0,) not in compiled.indexes:
        raise InvalidInput("the file has no message", where=given.place, do="Declare one")
    name = compiled.indexes[(0,)]
    message = message_class(compiled.descriptors, name)

    def encode(line: Line) -> bytes:
        _ = line.value
        try:
            return bytes(json_format.Parse(line.text, message()).SerializeToString())
        except json_format.ParseError as error:
            raise line.wrong(f"it is no {name}: {' '.join(str(error).split()).rstrip('.')}") from None

    return Encoder(encode=encode, type=SchemaType.PROTOBUF, schema=given.text, name=name, index=(0,))
