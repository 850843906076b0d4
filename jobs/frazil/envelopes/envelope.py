"""The interface of an envelope: from the type of a record to the type of its row, and from a decoded record to a change.

An envelope is asked for each writer schema (`unwrapped`). The schema's records are decoded into what that answers (`decoded`), and
each of them is a `Change`. A new envelope is a module with these two classes, a value in `declaration/envelopes.py` with the rules
of what it is declared with, a branch in `chosen_envelope`, and cases in the conformance suite (tests/envelopes/conformance.py).
`decode/changes_in_rows.py` makes rows of changes. The tests have an envelope of records with a field for the operation
(tests/envelopes/fields_envelope.py). Where the record's key lacks fields of the
row's key, as with Maxwell, AWS DMS and MongoDB, a change has them as `key`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol

from pyspark.sql import Column

from frazil.schemas.types import Struct


class Operation(StrEnum):
    """The effect of a change on the row of its key.

    `WRITE`: the row is what the change says, whether it was there before or not. `DELETE`: it goes. `TRUNCATE`: all rows go, and
    the change has no key. `NOTHING`: the record is no change of a row. `LACKS_BEFORE`: it is one, and does not have the row
    before it though that is declared.
    """

    WRITE = "write"
    DELETE = "delete"
    TRUNCATE = "truncate"
    NOTHING = "nothing"
    LACKS_BEFORE = "lacks_before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A record as a change of a row; each part is a column.

    `operation` is the text of an `Operation`, null if the source's own is unknown. `after` has each column of the row after a
    `WRITE`, by name, and `about` those that the envelope adds, which a `DELETE` has, too. `key` has columns of the row that are its
    key, by name, also for a `DELETE`, so that `key` of a write mode can name them; None: the record's key has them. `before` is the
    row before, a struct of columns by name, null if the change has none; None: the source is not believed. `order` has the columns
    that say which change of a key is the later one, by name, also for a `DELETE`: the envelope's `order`. It is None where that
    names none. With it no value may be `unavailable`. `time` is when the source made the change, null or None if it does not say.
    `unavailable` says for columns of the row, by name, whether the source left their value out of a `WRITE` though the row has one;
    what `after` has then means nothing. `kind` is what a `WRITE` was for the source: c an insert, u an update, r a row that was
    read. It is null or None if the source does not say.
    """

    operation: Column
    kind: Column | None = None
    after: Mapping[str, Column]
    about: Mapping[str, Column] = field(default_factory=dict)
    key: Mapping[str, Column] | None = None
    before: Column | None = None
    order: Mapping[str, Column] | None = None
    time: Column | None = None
    unavailable: Mapping[str, Column] = field(default_factory=dict)


class Unwrapped(Hashable, Protocol):
    """The unwrapping of the records of one writer schema. It is hashable: writers that are unwrapped alike share a decoder."""

    @property
    def row(self) -> Struct:
        """The type of the rows, by the names of the source."""

    def decoded(self, target: Struct) -> Struct:
        """Return what a record is decoded into, for rows of type `target`: a table's, with the sources of its fields."""

    def change(self, record: Column, target: Struct) -> Change:
        """Return the change that a record is, decoded into that; nothing of it may fail for any record."""


class Envelope(Protocol):
    """A kind of change data."""

    @property
    def has_changes(self) -> bool:
        """True if records are changes of rows; else a record is its row."""

    @property
    def order(self) -> tuple[str, ...]:
        """The columns of the row that order the changes of a key, and that `order_by` must name.

        Empty: offsets do, as all changes of a key are in one partition, and `order_by` is refused.
        """

    def unwrapped(self, record: Struct) -> Unwrapped:
        """Return how records of this type are unwrapped. Raises `InvalidInput` if they are no changes of a table's rows."""

    def record(self, row: Struct) -> Struct:
        """Return the type of records without a schema, whose rows have these declared columns."""


@dataclass(frozen=True, slots=True)
class NoEnvelope:
    """Records that are their rows."""

    has_changes: ClassVar[bool] = False
    order: ClassVar[tuple[str, ...]] = ()

    def unwrapped(self, record: Struct) -> Unwrapped:
        """Raise an error: there is nothing to unwrap."""
        raise AssertionError("a record without an envelope is its row")

    def record(self, row: Struct) -> Struct:
        """Return the type itself."""
        return row


NO_ENVELOPE = NoEnvelope()
