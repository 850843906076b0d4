"""The keys of produced records: one field of each record, in the format that the declaration gives keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from frazil.declaration import Topic
from frazil.declaration.checks.constraints import shown
from frazil.declaration.options import KeyFormat
from frazil.errors import InvalidInput
from frazil.inference.inferred_schema import avro_schema, record_name
from frazil.inference.inferred_type import inferred
from frazil.inference.record_file import Line
from frazil.local.produce.encoders import Encoder, GivenSchema, avro_encoder


def key_lines(lines: Sequence[Line], field: str) -> list[Line]:
    """Return an object with only the key's field for each record. Raises `InvalidInput` for one without it, or with null."""
    return [Line(line.place, json.dumps({field: _field(line, field)}, default=float)) for line in lines]


def key_encoder(field: str, topic: str, declared: Topic | None, lines: Sequence[Line]) -> Encoder:
    """Return the encoder of keys, for the lines of `key_lines`.

    Text stays text, any other value is JSON, unless the topic's key format says otherwise: `json` is the value as JSON, an object
    with the declared columns if there are some, and `avro` a record with this field. Raises `InvalidInput` for other formats.
    """
    kind = declared.key_format if declared is not None else KeyFormat.BYTES
    match kind:
        case KeyFormat.TEXT | KeyFormat.BYTES:
            return Encoder(encode=lambda line: _plain(line.value[field]))
        case KeyFormat.JSON if declared is not None and declared.key_columns is not None:
            return Encoder(encode=lambda line: line.text.encode())
        case KeyFormat.JSON:
            return Encoder(encode=lambda line: _json(line.value[field]))
        case KeyFormat.AVRO:
            file = declared.key_schema[-1] if declared is not None and declared.key_schema else None
            if file is not None:
                return avro_encoder(GivenSchema(file=file.file, text=file.content))
            text = avro_schema(inferred(lines), record_name(topic, "Key"))
            return avro_encoder(GivenSchema(file="the inferred schema of keys", text=text))
        case _:
            what = f"keys of format {kind} are not produced"
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
