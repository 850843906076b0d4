"""Envelopes: how a record of change data holds a row, and what the change is. A document tags an envelope by `type`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Unpack

from frazil.declaration.column_notation import JSON, columns
from frazil.declaration.constraints import matching
from frazil.declaration.declared import Chosen, declared, default
from frazil.declaration.options import ReplicaIdentity, ValueFormat
from frazil.declaration.problems import Problem
from frazil.declaration.write_modes import Append, Changelog, Upsert, WriteMode, declared_key, order_by

if TYPE_CHECKING:
    from frazil.declaration.captured_tables import Shared
    from frazil.declaration.pipeline import Pipeline
    from frazil.declaration.topic import Topic

_READ = ("avro", "json_schema", "json", "connect_json")
_CONVERTER = "and the converter of that format in the connector"
_PLACEHOLDER = matching(
    r"[\s\S]{1,1000}", "a placeholder", "Write the connector's unavailable.value.placeholder, 1 to 1000 characters"
)


@declared
class Debezium:
    """Change events of a Debezium connector for one table, plain or flattened by `ExtractNewRecordState`.

    A row has the columns of the source's table: the fields of `after`. `before` is read only with `replica_identity="full"`.
    """

    kind: ClassVar[str] = "debezium"

    operation_column: Annotated[
        bool, "Add the column `_op`: the operation that made the row what it is, r, c, u or d."
    ] = False
    source_column: Annotated[
        bool,
        "Add the column `_source`: what the event says of its place in the source, like transaction and log position.",
    ] = False
    unavailable_value: Annotated[
        str,
        "What the connector writes for a value that it does not know: its unavailable.value.placeholder.",
        _PLACEHOLDER,
    ] = "__debezium_unavailable_value"
    replica_identity: Annotated[
        Chosen[ReplicaIdentity],
        "In a changelog: with full, add the column `_before`, the row before an update or delete, as the event has it.",
    ] = default(ReplicaIdentity.DEFAULT)

    @property
    def has_before(self) -> bool:
        """Whether events have the row before a change."""
        return self.replica_identity is ReplicaIdentity.FULL

    def tables(self, prefix: str, *tables: str, **shared: Unpack[Shared]) -> tuple[Pipeline, ...]:
        """Return a pipeline for each table of one connector, all with this envelope.

        `prefix` is the connector's `topic.prefix`, and a table is what follows in its topic's name, like `public.orders`. The
        pipeline is named after the topic, and lands in the table of the same name in `namespace`. Other named arguments are
        fields of `Topic`, `Table` and `Pipeline` that all share; `overrides` has those of single tables, by table.
        """
        from frazil.declaration.captured_tables import pipelines  # it imports this module

        return pipelines(self, prefix, tables, shared)


Envelope = Debezium
"""The union of the envelopes. Code that depends on the envelope matches on it."""
OPERATION_COLUMN, SOURCE_COLUMN, BEFORE_COLUMN = "_op", "_source", "_before"
"""Columns that an envelope adds if they are declared."""


def added_columns(envelope: Envelope | None) -> tuple[str, ...]:
    """Return the columns that an envelope adds to those of the row."""
    if envelope is None:
        return ()
    declared = {
        OPERATION_COLUMN: envelope.operation_column,
        SOURCE_COLUMN: envelope.source_column,
        BEFORE_COLUMN: envelope.has_before,
    }
    return tuple(name for name, is_declared in declared.items() if is_declared)


def envelope_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what change data cannot be landed as."""
    if isinstance(pipeline.write, Append):
        what = "a table that only grows would hold deletes as rows without values"
        yield Problem(
            "envelope", what, "Choose write=Upsert() or Changelog(), or remove envelope to land the events as they are"
        )
    yield from _format_problems(pipeline.topic, pipeline.envelope)
    if pipeline.topic.keeps_unknown:
        what = "an event has other fields than those of the row, and the columns are those of the row"
        yield Problem("topic.unknown_fields", what, "Remove it: a connector writes all columns of the source")
    yield from _connector_problems(pipeline.write)
    if isinstance(pipeline.write, Changelog) and pipeline.envelope is not None and pipeline.envelope.operation_column:
        yield Problem("envelope.operation_column", "a changelog has the column _op without it", "Remove it")
    if isinstance(pipeline.write, Upsert) and pipeline.envelope is not None and pipeline.envelope.has_before:
        what = "a table of current state has the row before a change itself"
        yield Problem("envelope.replica_identity", what, "Remove it, or choose write=Changelog()")


def _connector_problems(write: WriteMode) -> Iterator[Problem]:
    """Yield what Debezium's changes do not have: an order of their own, and another key than the record's."""
    if order_by(write):
        what = "a value that a change leaves out is that of the change before it, by offset"
        yield Problem("write.order_by", what, "Remove it: a connector writes the changes of a key in their order")
    if declared_key(write) is not None:
        what = "a change of another column than those of the source's key says nothing of the row before it"
        yield Problem(
            "write.key", what, "Remove it: the key is that of the record, the connector's message.key.columns"
        )


def _format_problems(topic: Topic, envelope: Envelope | None) -> Iterator[Problem]:
    if topic.value_format.value not in _READ:
        what = f"change data of format {topic.value_format} has no types that are read"
        if topic.value_format is ValueFormat.PROTOBUF:
            what = (
                "converters to Protobuf write null as 0 or empty text by default, and leave out the types of the source"
            )
        yield Problem(
            "topic.value_format", what, f"Choose avro, json_schema or connect_json, {_CONVERTER}, or json with columns"
        )
    if topic.key_format.value not in _READ:
        what = f"a delete names its row by the fields of the record's key, which {topic.key_format} does not give"
        yield Problem(
            "topic.key_format",
            what,
            f"Choose avro, json_schema or connect_json, {_CONVERTER}, or json with key_columns",
        )
    if topic.columns is None and topic.value_format.value != "json":
        return
    if not topic.columns:
        what = f"change data of format {topic.value_format} has the columns that are declared, and none are"
        yield Problem(
            "topic.columns", what, 'Write those of the source\'s table, like columns=("id long", "name string")'
        )
    if envelope is not None and envelope.source_column:
        what = "the fields of the source block are known from a schema, and with declared columns none is read"
        yield Problem(
            "envelope.source_column", what, "Remove it, or choose avro, json_schema, or connect_json without columns"
        )
    declared = columns(topic.columns or ())
    for index, each in enumerate(declared):
        if each.type.name == JSON:
            what = f"a connector writes JSON as text, so {each.name} is text, also where its value is left out"
            yield Problem(f"topic.columns[{index}]", what, f"Write {each.name} string")
    names = {each.name for each in declared}
    if envelope is not None and envelope.has_before and not names.isdisjoint({"__deleted", "__op"}):
        what = "flattened events do not have the row before a change"
        yield Problem(
            "envelope.replica_identity", what, "Remove it, or have the connector write events that are not flattened"
        )
    if envelope is not None and envelope.operation_column and "__deleted" in names and "__op" not in names:
        what = "flattened events have their operation in the field __op, which is not among the columns"
        yield Problem("envelope.operation_column", what, "Declare the column __op string, or remove operation_column")
