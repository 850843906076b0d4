"""Write modes: how a record becomes rows. A mode is a value with its own parameters; a document tags it by `type`.

Each mode says of its rows what other code asks: whether they have a key (`has_key`), whether a row takes the place of the one
before it (`replaces_rows`), and whether each says what a record changed (`keeps_changes`). `key` is the declared columns of the
value, None for the record's key, or without a key; `order_by` the columns that order the records of a key. What a mode makes of
records is in `frazil.write`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, ClassVar

from frazil.declaration.checks.column_rules import (
    KEY_COLUMN_PATTERN,
    key_column_refusal,
    order_refusal,
)
from frazil.declaration.checks.constraints import ALONE, Rule, notation, seconds_of
from frazil.declaration.checks.declared import Chosen, declared, default
from frazil.declaration.checks.problems import Problem
from frazil.declaration.options import (
    Deletion,
    ErrorMode,
    Tombstones,
    Truncation,
)
from frazil.declaration.start import Earliest

if TYPE_CHECKING:
    from frazil.declaration.pipeline import Pipeline


@declared
class Append:
    """Every record is one more row; the table only grows."""

    kind: ClassVar[str] = "append"
    has_key: ClassVar[bool] = False
    replaces_rows: ClassVar[bool] = False
    keeps_changes: ClassVar[bool] = False
    key: ClassVar[tuple[str, ...] | None] = None
    order_columns: ClassVar[tuple[str, ...]] = ()

    on_tombstone: Annotated[Chosen[Tombstones], "How to handle a record without a value."] = default(
        Tombstones.DEAD_LETTER
    )


_Key = Annotated[
    Chosen[tuple[Annotated[str, Rule(key_column_refusal, {"pattern": KEY_COLUMN_PATTERN})], ...] | None],
    "The columns of the value that are the key: a name, or a tuple of names. Default: the record's key.",
    ALONE,
]
_OrderColumns = Annotated[
    Chosen[tuple[Annotated[str, Rule(order_refusal, {"pattern": KEY_COLUMN_PATTERN})], ...]],
    "The columns that say which of a key's records is the newer one; `_kafka_timestamp` may be one. Default: offsets.",
    ALONE,
]


@declared
class Order:
    """The order of a key's records, whenever they come, and how long deleted keys are remembered."""

    columns: _OrderColumns = field(kw_only=False)
    remember_deletes: Annotated[
        str, "How long an older record does not bring a deleted row back.", notation(seconds_of)
    ] = "7 days"  # as long as Kafka keeps records by default

    def _contradictions(self) -> Iterator[Problem]:
        if not self.columns:
            yield Problem("columns", "no column is named", "Name one, or remove order_by")
        yield from _twice("columns", self.columns)


@declared
class Upsert:
    """The table is the topic's current state: one row a key, that of the key's last record. A record without a value deletes it.

    The last record is the one of the highest offset; with `order_by`, the one of the highest order, whenever it comes. Then deleted
    keys are remembered for a time: after it, an older record brings its row back.

    Without `key`, the key is the record's: its fields are columns, and a key of one value is the column `_kafka_key`.
    """

    kind: ClassVar[str] = "upsert"
    has_key: ClassVar[bool] = True
    replaces_rows: ClassVar[bool] = True
    keeps_changes: ClassVar[bool] = False

    key: _Key = default(None)
    order_by: Annotated[
        Chosen[Order | None],
        "The columns that say which of a key's records is the newer one, alone or in an Order. Default: offsets.",
        ALONE,
    ] = default(None)
    on_tombstone: Annotated[
        Chosen[Deletion], "Whether a record without a value deletes the row, or marks it as deleted."
    ] = default(Deletion.DELETE)
    on_truncate: Annotated[
        Chosen[Truncation],
        "With an envelope: whether a truncate of the source's table stops the pipeline, or deletes all rows.",
    ] = default(Truncation.REFUSE)

    @property
    def order_columns(self) -> tuple[str, ...]:
        """The columns that order the records of a key; none where offsets do."""
        return self.order_by.columns if self.order_by is not None else ()

    def _contradictions(self) -> Iterator[Problem]:
        yield from _key_problems(self.key)
        if self.on_truncate is Truncation.DELETE_ALL and self.on_tombstone is Deletion.SOFT_DELETE:
            what = "a truncate would write each row of the table again, marked as deleted"
            yield Problem("on_truncate", what, "Choose refuse, or on_tombstone delete")


@declared
class Changelog:
    """The table is the history of the topic's keys: every record is one more row, which says what it changed.

    `_op` says what a record did, `_changed_at` when. A record without a value is a delete: its row has the key, and null elsewhere.
    """

    kind: ClassVar[str] = "changelog"
    has_key: ClassVar[bool] = True
    replaces_rows: ClassVar[bool] = False
    keeps_changes: ClassVar[bool] = True

    key: _Key = default(None)
    order_by: _OrderColumns = default(())

    @property
    def order_columns(self) -> tuple[str, ...]:
        """The columns that order the records of a key; none where offsets do."""
        return self.order_by

    def _contradictions(self) -> Iterator[Problem]:
        yield from _key_problems(self.key)
        yield from _twice("order_by", self.order_by)


def _key_problems(key: tuple[str, ...] | None) -> Iterator[Problem]:
    if key == ():
        yield Problem("key", "a key without columns is one key for all records", "Name a column, or remove it")
    yield from _twice("key", key or ())


def _twice(path: str, names: tuple[str, ...]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Problem(f"{path}[{index}]", f"{name} is named twice", "Remove one of the two")


WriteMode = Append | Upsert | Changelog
"""The union of the write modes; `frazil.write.mode_of` chooses what each makes of records."""


def tombstones(mode: WriteMode) -> Tombstones:
    """Return how records without a value are decoded: in a table whose rows have a key they have that, and no values."""
    match mode:
        case Append(on_tombstone=on_tombstone):
            return on_tombstone
        case Upsert() | Changelog():
            return Tombstones.NULL_ROW


def deletes_all(mode: WriteMode) -> bool:
    """Return whether a truncate of the source's table deletes all rows."""
    return isinstance(mode, Upsert) and mode.on_truncate is Truncation.DELETE_ALL


def marks_deletes(mode: WriteMode) -> bool:
    """Return whether a deleted row stays, marked as deleted."""
    return isinstance(mode, Upsert) and mode.on_tombstone is Deletion.SOFT_DELETE


def identity(pipeline: Pipeline, key: Sequence[str] = ()) -> str:
    """Return what of a pipeline's write mode and envelope never changes in a table, as text; with its `key` if that is given."""
    mode, envelope = pipeline.write, pipeline.envelope
    order, of = ", ".join(mode.order_columns), f" of {envelope.kind} events" if envelope is not None else ""
    by = f" by {', '.join(key)}" if key else ""
    return f"{mode.kind}{of}{by}{f' ordered by {order}' if order else ''}"


def remembered_seconds(mode: Upsert) -> int:
    """Return how long deleted keys are remembered, in seconds; 0 if offsets order the records."""
    return seconds_of(mode.order_by.remember_deletes) if mode.order_by is not None else 0


def default_error_mode(mode: WriteMode) -> ErrorMode:
    """Return the error mode of a pipeline that declares none. Without one record, a state may be that of an earlier one."""
    return ErrorMode.DEAD_LETTER if isinstance(mode, Append) else ErrorMode.SUSPEND


def gaps_of_start(pipeline: Pipeline) -> Iterator[str]:
    """Yield why a table that begins at the declared start will not have the last record of every key, or each change of it."""
    if pipeline.write.has_key and not isinstance(pipeline.start, Earliest):
        what = "history" if pipeline.write.keeps_changes else "state"
        yield f"the table is not the complete {what}: it begins at {pipeline.start.kind}, later than older keys"


def gaps_of_state(pipeline: Pipeline) -> Iterator[str]:
    """Yield why a table will not have the last record of every key, or each change of it, though nothing fails."""
    yield from gaps_of_start(pipeline)
    row = "last row" if pipeline.write.keeps_changes else "row"
    if pipeline.write.has_key and pipeline.on_error is not ErrorMode.SUSPEND:
        yield f"with on_error={pipeline.on_error}, the {row} of a key whose last record is rejected is of an earlier record"
