"""Contradictions between the fields of a topic: formats, columns, schemas and names of records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from frazil.declaration.checks.column_notation import column, column_problems, is_required
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.options import Framing, KeyFormat, SubjectStrategy, ValueFormat
from frazil.declaration.schema_file import SchemaFile

if TYPE_CHECKING:
    from frazil.declaration.topic import Topic


_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def topic_problems(topic: Topic) -> Iterator[Problem]:
    """Yield the contradictions between the fields of a topic."""
    yield from _column_problems("columns", topic.columns, topic.value_format)
    yield from _column_problems("key_columns", topic.key_columns, topic.key_format)
    yield from schema_problems("", topic.schema, topic.value_format, topic.framing, topic.record_name)
    yield from schema_problems("key_", topic.key_schema, topic.key_format, topic.key_framing, topic.key_record_name)
    for index, text in enumerate(topic.key_columns or ()):
        if is_required(text):
            yield Problem(f"key_columns[{index}]", "only columns of values are required", "Remove required")
    if topic.keeps_unknown:
        yield from _unknown_fields_problems(topic)
    if topic.subject_strategy is not SubjectStrategy.TOPIC and not topic.value_format.has_schema:
        what = f"values of format {topic.value_format} have no schema, hence no subject"
        yield Problem("subject_strategy", what, "Remove it, or choose avro, json_schema or protobuf")
    if topic.subject_strategy is not SubjectStrategy.TOPIC and topic.schema is not None:
        yield Problem("subject_strategy", "with a declared schema no subject is looked up", "Remove it, or schema")
    elif topic.record_name is not None:
        yield from _record_name_problems(topic, topic.record_name)
    if topic.key_record_name is not None and not _FULL_NAME.fullmatch(topic.key_record_name):
        yield Problem("key_record_name", "this is not a record's full name", "Write it like com.example.OrderKey")


def _unknown_fields_problems(topic: Topic) -> Iterator[Problem]:
    is_json = topic.value_format is ValueFormat.JSON and topic.columns
    if not (is_json or (topic.value_format is ValueFormat.JSON_SCHEMA and topic.schema)):
        what = "only JSON with declared columns, or with a declared schema, has unknown fields that can be kept"
        yield Problem("unknown_fields", what, "Remove it, or declare value_format json with columns")
    for index, text in enumerate(topic.columns or ()):
        if _column_name(text).lower() == "_unknown":
            yield Problem(f"columns[{index}]", "_unknown is the column of unknown fields", "Remove it")


def _record_name_problems(topic: Topic, record_name: str) -> Iterator[Problem]:
    if topic.subject_strategy is SubjectStrategy.TOPIC and topic.schema is None:
        what = "the subject strategy topic does not look at record names"
        yield Problem("record_name", what, "Remove it, or choose record or topic_record, or declare schema")
    # A JSON Schema is named by its title, which may be any text.
    if topic.value_format in {ValueFormat.AVRO, ValueFormat.PROTOBUF} and not _FULL_NAME.fullmatch(record_name):
        yield Problem("record_name", "this is not a record's full name", "Write it like com.example.Order")


def _column_name(text: str) -> str:
    try:
        return column(text).name
    except InvalidDeclaration:
        return ""  # it is refused by itself


def _column_problems(name: str, texts: tuple[str, ...] | None, of: ValueFormat | KeyFormat) -> Iterator[Problem]:
    yield from column_problems(name, texts or ())
    if texts == ():
        yield Problem(name, "no column is declared", "Write one, or leave the field out")
    elif texts and of.value not in ("json", "connect_json"):
        what = f"columns of format {of} come from its schema" if of.has_schema else f"format {of} has no columns"
        side = "key_format" if isinstance(of, KeyFormat) else "value_format"
        yield Problem(name, what, f"Remove it, or choose {side} json or connect_json")


def schema_problems(
    side: str,
    files: tuple[SchemaFile, ...] | None,
    of: ValueFormat | KeyFormat,
    framing: Framing | None,
    record_name: str | None,
) -> Iterator[Problem]:
    """Yield the problems of a topic's fields for one side: of values, or of keys (`key_`)."""
    schema, format_field = f"{side}schema", f"{side or 'value_'}format"
    if files is None:
        if framing is not None:
            do = f"Declare {schema}, the Avro schemas that have the fingerprints, or remove it"
            yield Problem(f"{side}framing", "a registry's frame is the only one without a declared schema", do)
        if side and record_name is not None and of is not of.PROTOBUF:
            what = f"keys of format {of} name no message"
            yield Problem(f"{side}record_name", what, f"Remove it, or choose {format_field} protobuf")
        return
    if not files:
        yield Problem(schema, "no schema is declared", "Name a file, or leave the field out")
    if not of.has_schema:
        do = f"Choose {format_field} avro, json_schema or protobuf, or remove it"
        yield Problem(schema, f"format {of} has no schema", do)
        return
    for index, file in enumerate(files):
        if file.format.value != of.value:
            what = f"{file.file} is of format {file.format}, and {format_field} is {of}"
            yield Problem(f"{schema}[{index}]", what, f"Choose {format_field} {file.format}, or name another file")
        elif file in files[:index]:
            yield Problem(f"{schema}[{index}]", f"{file.file} is declared twice", "Remove one of the two")
        elif not file.data:
            what = f"the content of {file.file} is not in base64"
            yield Problem(f"{schema}[{index}].content", what, "Write the document with frazil check --write")
    yield from _framing_problems(side, files, of, framing)
    if of is not of.PROTOBUF:
        if record_name is not None:
            what = f"a schema of format {of} describes one kind of records"
            yield Problem(f"{side}record_name", what, "Remove it")
    elif record_name is None:
        what = "a descriptor set has several messages, and nothing in a record names its own"
        yield Problem(f"{side}record_name", what, "Write the message's full name, like shop.Order")


def _framing_problems(
    side: str, files: tuple[SchemaFile, ...], of: ValueFormat | KeyFormat, framing: Framing | None
) -> Iterator[Problem]:
    schema = f"{side}schema"
    if framing is Framing.SINGLE_OBJECT and of is not of.AVRO:
        yield Problem(f"{side}framing", "only Avro has single-object encoding", "Remove it, or choose the format avro")
    elif len(files) > 1 and of is not of.AVRO:
        what = f"a record of format {of} names its fields itself, so one schema is enough"
        yield Problem(schema, what, "Name the newest one, which may have the fields of all")
    elif len(files) > 1 and framing is None:
        what = "nothing in a plain record says which of several schemas wrote it"
        do = f"Name the one that the producers use, or choose {side}framing single_object if they write fingerprints"
        yield Problem(schema, what, do)
