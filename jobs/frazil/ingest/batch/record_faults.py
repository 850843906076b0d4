"""Say of a rejected record what is wrong with it: the version of its schema and the field, or where decoding fails."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping

from frazil.clients.kafka_records import Record
from frazil.dead_letters.show import Part, part
from frazil.declaration import Pipeline
from frazil.decode.decoded_columns import schema_id_of
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.errors import FrazilError, IncompatibleSchema
from frazil.schemas.reasons import MESSAGES, Reason
from frazil.schemas.wire_format import Frame, parse

Unfit = Mapping[int, IncompatibleSchema]
_OF_SCHEMA = (Reason.INCOMPATIBLE_SCHEMA, Reason.KEY_SCHEMA, Reason.UNREADABLE_SCHEMA)
_OF_BYTES = (Reason.UNDECODABLE, Reason.KEY_UNDECODABLE)


def fault(pipeline: Pipeline, record: Record | None, reason: str, writers: WriterSchemas | None, unfit: Unfit) -> str:
    """Return what is known of a reason; `writers` and `unfit` are those of the value, or of the key if that is wrong.

    No text of it holds a value of the record.
    """
    is_key, words = is_key_reason(reason), MESSAGES[Reason(reason)]
    registry = writers.registry if writers is not None else None
    if record is not None and reason in _OF_SCHEMA and writers is not None:
        words = _schema(record, writers, unfit, is_key=is_key) or words
    elif record is not None and reason in _OF_BYTES:
        data = record.key if is_key else record.value
        words = _bytes(part(pipeline, data, record.headers, registry, is_key=is_key)) or words
    columns = {Reason.ORDER_MISSING: pipeline.write.order_columns, Reason.KEY_NULL: pipeline.write.key or ()}
    named = columns.get(Reason(reason), ())
    return f"{words} (of {', '.join(named)})" if named else words


def is_key_reason(reason: str) -> bool:
    """Return whether a reason is one of the record's key."""
    return reason in (Reason.KEY_SCHEMA, Reason.KEY_UNDECODABLE)


def _schema(record: Record, writers: WriterSchemas, unfit: Unfit, *, is_key: bool) -> str:
    """Return the version of the record's schema and its field that does not fit; empty if that is not known."""
    data = record.key if is_key else record.value
    if writers.is_in_records:
        number, name, problem = writers.number_inside(data or b""), "the schema in the record", ""
    else:
        frame = parse(data, record.headers, protobuf=writers.is_protobuf, key=is_key)
        if not isinstance(frame, Frame):
            return ""
        number = frame.schema_id
        if number is None and writers.registry is not None and frame.guid is not None:
            with contextlib.suppress(FrazilError):
                number = writers.registry.id_of_guid(frame.guid)
        name = _version(writers, number)
        problem = writers.problems.get(number, "") if number is not None else ""
    found = next((p for n, p in unfit.items() if number is not None and schema_id_of(n) == number), None)
    if found is not None:
        problem = f"field {found.where}: {found.what}"
        if writers.is_in_records and not is_key:
            is_number = len(re.findall(r"\b(?:int|long|float|double)\b", found.what)) > 1
            column = f"{found.where.partition('.')[0]} {'double' if is_number else 'string'}"
            problem += f'; another table holds both if Topic() declares the columns, with "{column}"'
    return f"{name}, {problem}" if problem else name


def _version(writers: WriterSchemas, schema_id: int | None) -> str:
    """Return a schema's id, with its subject and version if the registry says them; a subject of the topic comes first."""
    registry = writers.registry
    if registry is not None and schema_id is not None:
        with contextlib.suppress(FrazilError):
            for subject in (*writers.subjects(registry), *registry.subjects_of(schema_id)):
                for version in registry.versions(subject, deleted=True):
                    if version.id == schema_id:
                        return f"version {version.version} of subject {subject} (schema id {schema_id})"
    return f"schema id {schema_id}"


def _bytes(found: Part) -> str:
    """Return where decoding fails; empty if that is not known."""
    tried = found.attempt
    if tried is None or tried.succeeded:
        return ""
    path = re.sub(r"\{.*\}", "{…}", tried.path, flags=re.DOTALL)  # a key of a map is a value of the record
    what = re.sub(r"-?\d[\d,]{4,}", "…", tried.what)  # so is a number, whatever its bytes were taken for
    place = f"field {path}: " if path else ""
    return f"{place}{what}" + (f" at byte {found.body_at + tried.at}" if tried.at is not None else "")
