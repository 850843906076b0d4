"""Contradictions between the parts of a pipeline: topic, table, write mode, envelope and engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from frazil.declaration.checks.column_notation import JSON, columns, if_valid, is_required
from frazil.declaration.checks.column_rules import key_refusal, schemaless_refusal, value_key_refusal
from frazil.declaration.checks.problems import Problem
from frazil.declaration.engines import GLUE_NAME, GLUE_NAME_WORDS, Tableflow
from frazil.declaration.envelopes import Envelope
from frazil.declaration.formats import Bytes, Json, Protobuf, Text
from frazil.declaration.options import MetadataColumns, SubjectStrategy, Tombstones, Truncation
from frazil.declaration.partitioning import PartitionField, SortField
from frazil.declaration.route import Field, Header, RecordName
from frazil.declaration.shape import HEADERS, KEY
from frazil.declaration.topic import Topic
from frazil.declaration.write_modes import Append, Changelog, Upsert, WriteMode

if TYPE_CHECKING:
    from frazil.declaration.pipeline import Pipeline

_READ = ("avro", "json_schema", "json", "connect_json")
_CONVERTER = "and the converter of that format in the connector"


def pipeline_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield the contradictions between the parts of a pipeline."""
    if isinstance(pipeline.engine, Tableflow):
        yield from _tableflow_problems(pipeline)  # all that the three below may name is refused there
    else:
        yield from _key_problems(pipeline) if pipeline.write.has_key else ()
        yield from _envelope_problems(pipeline) if pipeline.envelope is not None else ()
    yield from _required_problems(pipeline)
    yield from _select_problems(pipeline) if pipeline.shape.selected else ()
    yield from _route_problems(pipeline) if pipeline.shape.route is not None else ()
    if pipeline.topic.value.keeps_unknown and pipeline.shape.masks and "_unknown" not in pipeline.shape.masks:
        what = "fields that are no column land in _unknown as they are, such as one of a misspelt name"
        yield Problem("shape.mask", what, "Mask _unknown, too, or remove unknown_fields")
    if KEY in pipeline.shape.masks and not isinstance(pipeline.topic.key, Bytes | Text):
        what = f"a key of format {pipeline.topic.key.kind} is decoded, and only bytes or text have a mask"
        yield Problem("shape.mask", what, "Declare the topic's key as text or bytes")
    fields: dict[str, PartitionField | SortField] = {
        **{f"partition_by[{index}]": place for index, place in enumerate(pipeline.table.partition_fields)},
        **{f"sort_by[{index}]": order for index, order in enumerate(pipeline.table.sort_fields)},
    }
    for path, field in fields.items():
        refusal = key_refusal(field.source, pipeline.topic.key)
        if not pipeline.shape.selected:
            refusal = refusal or schemaless_refusal(field, pipeline.topic.value)
        if refusal:
            yield Problem(f"table.{path}", *refusal)


def _required_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield why columns cannot be required: some records have no value for any column."""
    what = None
    if pipeline.envelope is not None:
        what = "an event of change data may have no row, so no column of it is required"
    elif isinstance(pipeline.write, Append) and pipeline.write.on_tombstone is Tombstones.NULL_ROW:
        what = "with on_tombstone null_row a record without a value is a row of nulls"
    for index, text in enumerate(pipeline.topic.value.columns or ()):
        if what is not None and is_required(text):
            yield Problem(f"topic.value.columns[{index}]", what, "Remove required")


def _select_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what has no columns of which others could be made."""
    if pipeline.topic.value.has_schemas_inside:
        what = "each record has a schema of its own, so the columns are known only after it was read"
        yield Problem("shape", what, "Declare the topic's columns")
    if pipeline.shape.select and pipeline.envelope is not None and pipeline.envelope.has_before:
        what = "the row before a change has the columns of the source, and not those of shape.select"
        yield Problem("envelope.replica_identity", what, "Remove it, or select")


def _route_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield why the types of a topic's records are not known."""
    route, value = pipeline.shape.route, pipeline.topic.value
    assert route is not None
    if pipeline.envelope is not None:
        what = "a delete in an envelope may lack what says of which type it is"
        yield Problem("shape.route", what, "Declare a pipeline for each table, with a condition in shape.where")
    is_open = (
        isinstance(value, Bytes | Text) or value.has_schemas_inside or (value.kind == "json" and not value.columns)
    )
    if isinstance(route.by, Field):
        names = [one.name for text in value.columns or () if (one := if_valid(text)) is not None]
        first = route.by.path.partition(".")[0]
        if is_open:
            what = f"values of format {value.kind} have no fields that are known before a record is read"
            yield Problem("shape.route.by", what, "Choose Header(…), or declare a format with columns")
        elif names and first.lower() not in map(str.lower, names):
            yield Problem("shape.route.by", f"the topic has no column {first}", f"The columns are {', '.join(names)}")
    if isinstance(route.by, Header) and f"{HEADERS}{route.by.name}" in pipeline.shape.masks:
        what = f"the header {route.by.name} says of which type a record is"
        yield Problem("shape.mask", what, "Remove its mask")
    is_one = value.needs_registry and (
        route.types == (value.record_name,) if route.types else value.record_name is None
    )
    if isinstance(route.by, RecordName) and not is_one:
        what = "by record names, the schemas of the registry are those of one type, value.record_name"
        yield Problem("shape.route", what, "Write routes(…)")


def _key_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what a table whose rows have a key cannot be."""
    topic, mode = pipeline.topic, pipeline.write
    if pipeline.table.metadata_columns is not MetadataColumns.FLAT:
        what = f"the columns that {'an upsert' if isinstance(mode, Upsert) else 'a changelog'} compares are not in a struct"
        yield Problem("table.metadata_columns", what, "Choose flat")
    if isinstance(mode, Upsert) and mode.on_truncate is Truncation.DELETE_ALL and pipeline.envelope is None:
        what = "no record without an envelope is a truncate"
        yield Problem("write.on_truncate", what, "Remove it, or declare the envelope")
    names = mode.key or ()
    if isinstance(topic.key, Json) and not topic.key.columns and not names:
        do = "Declare its columns, choose text if all producers write a key the same way, or name columns in write.key"
        yield Problem("topic.key", "two texts of JSON can be one key", do)
    yield from _key_column_problems(topic, names)
    if names and topic.value.subject_strategy is SubjectStrategy.RECORD and topic.value.record_name is None:
        what = "columns are known only after a record has them, and the table needs those of its key at once"
        yield Problem("write.key", what, "Declare the topic's record_name")
    ordered = [name for name in mode.order_columns if name != "_kafka_timestamp"]
    if ordered and topic.value.subject_strategy is SubjectStrategy.RECORD and topic.value.record_name is None:
        what = "columns are known only after a record has them, and the table needs their order at once"
        yield Problem("write.order_by", what, "Declare the topic's record_name, or choose _kafka_timestamp")
    for index, name in enumerate(names):
        if not pipeline.shape.selected and (refusal := value_key_refusal(name, topic.value)):
            yield Problem(f"write.key[{index}]", *refusal)


def _envelope_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what change data cannot be landed as."""
    if isinstance(pipeline.write, Append):
        what = "a table that only grows would hold deletes as rows without values"
        yield Problem(
            "envelope", what, "Choose write=Upsert() or Changelog(), or remove envelope to land the events as they are"
        )
    yield from _format_problems(pipeline.topic, pipeline.envelope)
    if pipeline.topic.value.keeps_unknown:
        what = "an event has other fields than those of the row, and the columns are those of the row"
        yield Problem("topic.value.unknown_fields", what, "Remove it: a connector writes all columns of the source")
    yield from _connector_problems(pipeline.write)
    if isinstance(pipeline.write, Changelog) and pipeline.envelope is not None and pipeline.envelope.operation_column:
        yield Problem("envelope.operation_column", "a changelog has the column _op without it", "Remove it")
    if isinstance(pipeline.write, Upsert) and pipeline.envelope is not None and pipeline.envelope.has_before:
        what = "an upsert table has the row before a change itself"
        yield Problem("envelope.replica_identity", what, "Remove it, or choose write=Changelog()")


def _connector_problems(write: WriteMode) -> Iterator[Problem]:
    """Yield what Debezium's changes do not have: an order of their own, and another key than the record's."""
    if write.order_columns:
        what = "a value that a change leaves out is that of the change before it, by offset"
        yield Problem("write.order_by", what, "Remove it: a connector writes the changes of a key in their order")
    if write.key is not None:
        what = "a change of another column than those of the source's key says nothing of the row before it"
        yield Problem(
            "write.key", what, "Remove it: the key is that of the record, the connector's message.key.columns"
        )


def _format_problems(topic: Topic, envelope: Envelope | None) -> Iterator[Problem]:
    if topic.value.kind not in _READ:
        what = f"change data of format {topic.value.kind} has no types that are read"
        if isinstance(topic.value, Protobuf):
            what = (
                "converters to Protobuf write null as 0 or empty text by default, and leave out the types of the source"
            )
        yield Problem(
            "topic.value", what, f"Choose avro, json_schema or connect_json, {_CONVERTER}, or json with columns"
        )
    if topic.key.kind not in _READ:
        what = f"a delete names its row by the fields of the record's key, which {topic.key.kind} does not give"
        yield Problem(
            "topic.key",
            what,
            f"Choose avro, json_schema or connect_json, {_CONVERTER}, or json with columns",
        )
    if topic.value.columns is None and topic.value.kind != "json":
        return
    if not topic.value.columns:
        what = f"change data of format {topic.value.kind} has the columns that are declared, and none are"
        yield Problem(
            "topic.value.columns", what, 'Write those of the source\'s table, like columns=("id long", "name string")'
        )
    if envelope is not None and envelope.source_column:
        what = "the fields of the source block are known from a schema, and with declared columns none is read"
        yield Problem(
            "envelope.source_column", what, "Remove it, or choose avro, json_schema, or connect_json without columns"
        )
    declared = columns(topic.value.columns or ())
    for index, each in enumerate(declared):
        if each.type.name == JSON:
            what = f"a connector writes JSON as text, so {each.name} is text, also if its value is omitted"
            yield Problem(f"topic.value.columns[{index}]", what, f"Write {each.name} string")
    names = {each.name for each in declared}
    if envelope is not None and envelope.has_before and not names.isdisjoint({"__deleted", "__op"}):
        what = "flattened events do not have the row before a change"
        yield Problem(
            "envelope.replica_identity", what, "Remove it, or have the connector write events that are not flattened"
        )
    if envelope is not None and envelope.operation_column and "__deleted" in names and "__op" not in names:
        what = "flattened events have their operation in the field __op, which is not among the columns"
        yield Problem("envelope.operation_column", what, "Declare the column __op string, or remove operation_column")


_HAS_A_SAY = {
    "topic": {"name", "value"},
    "table": {"identifier"},
    "write": set(),
    "": {"topic", "table", "name", "engine", "on_error"},
}
"""The fields that Tableflow respects. It decides all else itself, so a declaration of that would be a promise not kept."""


def _tableflow_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what Tableflow would not do as the pipeline declares it."""
    topic, table = pipeline.topic, pipeline.table
    if not topic.value.has_schema:
        what = f"Tableflow needs a schema, and values of format {topic.value.kind} have none"
        yield Problem("topic.value", what, "Choose avro, json_schema or protobuf, or engine spark")
    if not re.fullmatch(GLUE_NAME, topic.name):
        what = f"Tableflow's role may write one table by its name, and Confluent documents no name of a Glue table for {topic.name}"
        do = f"Use a topic with {GLUE_NAME_WORDS} in its name, or choose engine spark, which takes any topic"
        yield Problem("topic.name", what, do)
    elif table.name != topic.name:
        what = f"Tableflow names a table after its topic, {topic.name}"
        yield Problem("table.identifier", what, "Name the table so, in letters that Glue takes; or choose engine spark")
    if topic.value.subject_strategy is not SubjectStrategy.TOPIC:
        what = "Tableflow takes a topic's schema from the subject of its name"
        yield Problem("topic.value.subject_strategy", what, "Remove it, or choose engine spark")
    parts: dict[str, Any] = {"topic": topic, "table": table, "": pipeline}
    is_state = isinstance(pipeline.write, Upsert)
    for part, instance in (parts | {"write": pipeline.write} if is_state else parts).items():
        for field in fields(instance):
            if field.name == "write" and is_state:
                continue  # a state by the record's key, of a topic that Kafka compacts: each option is another state
            if field.name not in _HAS_A_SAY[part] and getattr(instance, field.name) != field.default:
                path = f"{part}.{field.name}" if part else field.name
                yield Problem(path, "Tableflow decides this itself", "Remove it, or choose engine spark")


_NO_KEYS = {
    "float": "two numbers that look equal may not be",
    "double": "two numbers that look equal may not be",
    "list": "a key is one value",
    "map": "a key is one value",
    "struct": "a key is one value",
    JSON: "two texts of JSON can be one key",
    "io.debezium.data.VariableScaleDecimal": "each number has a scale of its own, and equal ones can differ",
}
_DO = "Keys are integers, text, bytes, booleans, dates, timestamps and decimals: declare such a type if it is the producers'"


def _key_column_problems(topic: Topic, names: Sequence[str]) -> Iterator[Problem]:
    """Yield the declared columns of a table's key that cannot be one: those of the record's key, or of the value by `names`."""
    for index, each in enumerate(map(if_valid, topic.key.columns or ())):
        if each is not None and (not names or _folded(each.name) in names):
            yield from _problem(
                f"topic.key.columns[{index}]", each.name, each.type.name, "another key, or write=Append()"
            )
    found = {
        _folded(each.name): each.type.name for each in map(if_valid, topic.value.columns or ()) if each is not None
    }
    for index, name in enumerate(names):
        yield from _problem(f"write.key[{index}]", name, found.get(name, ""), "another column")


def _problem(path: str, name: str, kind: str, other: str) -> Iterator[Problem]:
    if why := _NO_KEYS.get(kind):
        yield Problem(
            path, f"{name} is of type {kind}, which cannot be a key: {why}", f"{_DO}. Otherwise choose {other}"
        )


def _folded(name: str) -> str:
    return re.sub("[^a-z0-9_]", "_", name.lower())
