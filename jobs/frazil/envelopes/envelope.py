"""The interface of an envelope: from the type of a record to the type of its row, and from a decoded record to a change.

An envelope is asked for each writer schema (`unwrapped`). The schema's records are decoded into what that answers (`decoded`), and
each of them is a `Change`. A new envelope is a module with these two classes, a value in `declaration/envelopes.py`, a branch in
`chosen_envelope`, and a case in the conformance suite (tests/envelopes/conformance.py). `decode/changes_in_rows.py` makes rows of
changes. It reads neither `key` nor `order` so far, as Debezium has both outside the record: one that has them adds it there.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pyspark.sql import Column

from frazil.schemas.types import Struct


class Operation(StrEnum):
    """What a change does to the row of its key.

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
    `WRITE`, by name, and `about` those that the envelope adds, which a `DELETE` has, too. `key` has the columns of the row's key,
    by name, also for a `DELETE`; None: the record's key has them. `before` is the row before, a struct of columns by name, null if
    the change has none; None: the source is not believed. `order` says which change of a key is the later one; None: offsets do,
    as all changes of a key are in one partition. `time` is when the source made the change, null or None if it does not say.
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
    order: Column | None = None
    time: Column | None = None
    unavailable: Mapping[str, Column] = field(default_factory=dict)


class Unwrapped(Hashable, Protocol):
    """How the records of one writer schema are unwrapped. It is hashable: writers that are unwrapped alike share a decoder."""

    @property
    def row(self) -> Struct:
        """The type of the rows, by the names of the source."""
        ...

    def decoded(self, target: Struct) -> Struct:
        """Return what a record is decoded into, for rows of type `target`: a table's, with the sources of its fields."""
        ...

    def change(self, record: Column, target: Struct) -> Change:
        """Return the change that a record is, decoded into that; nothing of it may fail for any record."""
        ...


class Envelope(Protocol):
    """A kind of change data."""

    def unwrapped(self, record: Struct) -> Unwrapped:
        """Return how records of this type are unwrapped. Raises `InvalidInput` if they are no changes of a table's rows."""
        ...

    def record(self, row: Struct) -> Struct:
        """Return the type of records without a schema, whose rows have these declared columns."""
        ...
