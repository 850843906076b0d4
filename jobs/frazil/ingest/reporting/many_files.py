"""Warn of partitions that make many files of few rows, each of which a reader opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.declaration import Pipeline
from frazil.declaration.partitioning import PartitionField, Transform

MANY, FEW_ROWS = 100, 10_000
"""A batch makes too many files if it makes more than `MANY`, with fewer than `FEW_ROWS` in each on average."""
_SAMPLE = 10
"""Records of a preview in so many partitions show that a batch has many."""
_LETTERS = {Transform.YEARS: 4, Transform.MONTHS: 7, Transform.DAYS: 10, Transform.HOURS: 13}


def of_batch(pipeline: Pipeline, files: int, rows: int) -> str:
    """Return a warning about a batch that made so many data files; empty if that is fine."""
    if files <= MANY or rows >= files * FEW_ROWS:
        return ""
    return f"a batch of {rows:,} rows made {files:,} data files: {_advice(pipeline)}"


def of_preview(pipeline: Pipeline, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a warning about rows, as JSON has their values, most of which are in a partition of their own; empty if few are."""
    fields = pipeline.table.partition_fields
    found = len({tuple(_partition(field, row) for field in fields) for row in rows})
    if found < _SAMPLE or found * 2 <= len(rows):
        return ""
    return f"{len(rows)} records are in {found} partitions, so a batch makes many small files: {_advice(pipeline)}"


def _advice(pipeline: Pipeline) -> str:
    fields = pipeline.table.partition_by
    larger = "land larger batches, with a longer target_seconds"
    if not fields:
        return larger
    return f"the table is partitioned by {', '.join(fields)}. Declare fewer partitions, such as months for days, or {larger}"


def _partition(field: PartitionField, row: Mapping[str, Any]) -> Any:
    """Return a value that all rows of one partition have."""
    value: Any = row
    for name in field.source.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if field.transform in _LETTERS:
        return str(value)[: _LETTERS[field.transform]]
    match field.transform, field.argument, value:
        case Transform.BUCKET, int(number), _:
            return hash(str(value)) % number
        case Transform.TRUNCATE, int(width), int() | float():
            return value // width
        case Transform.TRUNCATE, width, _:
            return str(value)[:width]
    return str(value)
