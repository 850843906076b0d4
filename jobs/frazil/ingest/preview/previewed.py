"""What some records of a topic would become, as values: rows, rejected records, and the changes of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedRow:
    """A record that would land: its place, its values as JSON has them, and what it does to the row of its key.

    `operation` is `write`, `delete` or `truncate`; empty in an append table. `left_out` are the columns whose value comes from the
    table's row. The row of a deleted key has the columns of the key only.
    """

    partition: int
    offset: int
    values: Mapping[str, Any]
    operation: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedReject:
    """A record that would be rejected, and the reason; `is_skipped` says that the declaration lets it go."""

    partition: int
    offset: int
    reason: str
    message: str
    schema_id: int | None
    is_skipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What some records would become. `changes` is what a run would do to the table's columns before they land.

    `waiting` says what a pipeline waits for whose topic has no schema; then there are no rows. `notes` are versions of the schema
    that do not land, properties that land in no column, how the table differs from its declaration, and a warning about many small
    files.
    """

    columns: tuple[tuple[str, str], ...] = ()
    key: tuple[str, ...] = ()
    rows: tuple[PreviewedRow, ...] = ()
    rejected: tuple[PreviewedReject, ...] = ()
    table_exists: bool = False
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    waiting: str = ""
