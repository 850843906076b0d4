"""What declared schemas of a topic's values or keys contradict."""

from __future__ import annotations

from collections.abc import Iterator

from frazil.declaration.options import Framing, KeyFormat, ValueFormat
from frazil.declaration.problems import Problem
from frazil.declaration.schema_file import SchemaFile


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
