"""Write modes: how a record becomes rows. A mode is a value with its own parameters; a document tags it by `type`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from frazil.declaration.chosen import Chosen, default
from frazil.declaration.column_rules import KEY_COLUMN_PATTERN, key_column_refusal, order_refusal, value_key_refusal
from frazil.declaration.constraints import ALONE, Rule
from frazil.declaration.declared import Declared
from frazil.declaration.options import Deletion, ErrorMode, KeyFormat, MetadataColumns, SubjectStrategy, Tombstones
from frazil.declaration.problems import Problem
from frazil.declaration.start import Earliest
from frazil.declaration.validation import validate

if TYPE_CHECKING:
    from frazil.declaration.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(metaclass=Declared):
    """Every record is one more row; the table only grows."""

    kind: ClassVar[str] = "append"

    on_tombstone: Annotated[Chosen[Tombstones], "How to handle a record without a value."] = default(
        Tombstones.DEAD_LETTER
    )

    def __post_init__(self) -> None:
        validate(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert(metaclass=Declared):
    """The table is the topic's current state: one row a key, that of the key's last record. A record without a value deletes it.

    The last record is the one of the highest offset; with `order_by`, the one of the highest order, whenever it comes.

    Without `key`, the key is the record's: its fields are columns, and a key of one value is the column `_kafka_key`.
    """

    kind: ClassVar[str] = "upsert"

    key: Annotated[
        Chosen[tuple[Annotated[str, Rule(key_column_refusal, {"pattern": KEY_COLUMN_PATTERN})], ...] | None],
        "The columns of the value that are the key: a name, or a tuple of names. Default: the record's key.",
        ALONE,
    ] = default(None)
    order_by: Annotated[
        Chosen[tuple[Annotated[str, Rule(order_refusal, {"pattern": KEY_COLUMN_PATTERN})], ...]],
        "The columns that say which of a key's records is the newer one; `_kafka_timestamp` may be one. Default: offsets.",
        ALONE,
    ] = default(())
    on_tombstone: Annotated[
        Chosen[Deletion], "Whether a record without a value deletes the row, or marks it as deleted."
    ] = default(Deletion.DELETE)

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    def _contradictions(self) -> Iterator[Problem]:
        if self.key == ():
            yield Problem("key", "a key without columns is one key for all records", "Name a column, or remove it")
        for field, names in (("key", self.key or ()), ("order_by", self.order_by)):
            for index, name in enumerate(names):
                if name in names[:index]:
                    yield Problem(f"{field}[{index}]", f"{name} is named twice", "Remove one of the two")
        if self.order_by and self.on_tombstone is not Deletion.SOFT_DELETE:
            what = "with order_by, an older update would bring a deleted row back"
            yield Problem("on_tombstone", what, "Choose soft_delete: the deleted row keeps its order")


WriteMode = Append | Upsert
"""The union of the write modes. Code that depends on the mode matches on it."""


def tombstones(mode: WriteMode) -> Tombstones:
    """Return how records without a value are decoded: in a table of current state they have a key, and no values."""
    match mode:
        case Append(on_tombstone=on_tombstone):
            return on_tombstone
        case Upsert():
            return Tombstones.NULL_ROW


def order_by(mode: WriteMode) -> tuple[str, ...]:
    """Return the columns that order the records of a key; none where offsets do."""
    return mode.order_by if isinstance(mode, Upsert) else ()


def identity(pipeline: Pipeline) -> str:
    """Return what of a pipeline's write mode and envelope never changes in a table, as text."""
    mode, envelope = pipeline.write, pipeline.envelope
    order, of = ", ".join(order_by(mode)), f" of {envelope.kind} events" if envelope is not None else ""
    return f"{mode.kind}{of}{f' ordered by {order}' if order else ''}"


def default_error_mode(mode: WriteMode) -> ErrorMode:
    """Return the error mode of a pipeline that declares none. Without one record, a state may be that of an earlier one."""
    return ErrorMode.SUSPEND if isinstance(mode, Upsert) else ErrorMode.LOG


def gaps_of_state(pipeline: Pipeline) -> Iterator[str]:
    """Yield why a table of current state will not have the last record of every key, though nothing fails."""
    if not isinstance(pipeline.write, Upsert):
        return
    if not isinstance(pipeline.start, Earliest):
        yield f"the table is not the complete state: it begins at {pipeline.start.kind}, later than older keys"
    if pipeline.on_error is not ErrorMode.SUSPEND:
        yield f"with on_error={pipeline.on_error}, the row of a key whose last record is rejected is of an earlier record"


def upsert_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield what a table of current state cannot be."""
    if pipeline.table.metadata_columns is not MetadataColumns.FLAT:
        what = "the columns that an upsert compares are not in a struct"
        yield Problem("table.metadata_columns", what, "Choose flat")
    topic, mode = pipeline.topic, pipeline.write
    names = (mode.key if isinstance(mode, Upsert) else None) or ()
    if topic.key_format is KeyFormat.JSON and not names:
        do = "Choose json_schema, text if all producers write a key the same way, or name columns with Upsert(key=…)"
        yield Problem("topic.key_format", "two texts of JSON can be one key", do)
    if names and topic.subject_strategy is SubjectStrategy.RECORD and topic.record_name is None:
        what = "columns are known only after a record has them, and the table needs those of its key at once"
        yield Problem("write.key", what, "Declare the topic's record_name")
    ordered = [name for name in order_by(mode) if name != "_kafka_timestamp"]
    if ordered and topic.subject_strategy is SubjectStrategy.RECORD and topic.record_name is None:
        what = "columns are known only after a record has them, and the table needs their order at once"
        yield Problem("write.order_by", what, "Declare the topic's record_name, or choose _kafka_timestamp")
    for index, name in enumerate(names):
        if refusal := value_key_refusal(name, topic.value_format):
            yield Problem(f"write.key[{index}]", *refusal)
