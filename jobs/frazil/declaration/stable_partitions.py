"""Tables of current state whose keys never change their partition: what can promise that, and which fields it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from frazil.declaration.column_rules import KEY_SOURCE, STATE_COLUMNS, is_reserved
from frazil.declaration.envelopes import added_columns
from frazil.declaration.partitioning import PartitionField
from frazil.declaration.problems import Problem
from frazil.declaration.write_modes import Upsert, order_by

if TYPE_CHECKING:
    from frazil.declaration.pipeline import Pipeline


def stable_fields(pipeline: Pipeline) -> tuple[PartitionField, ...]:
    """Return the partition fields whose values the rows of a key keep; none unless `stable_partition` is declared."""
    write = pipeline.write
    return pipeline.table.partition_fields if isinstance(write, Upsert) and write.stable_partition else ()


def stable_partition_problems(pipeline: Pipeline) -> Iterator[Problem]:
    """Yield why the declared partition fields cannot keep their values for a key: later records of it change them."""
    write = pipeline.write
    if not isinstance(write, Upsert) or not write.stable_partition:
        return
    if not pipeline.table.partition_fields:
        what = "a table without partition fields has no partitions that could be searched alone"
        yield Problem("write.stable_partition", what, "Declare partition_by, or remove stable_partition")
    added = {*STATE_COLUMNS, *added_columns(pipeline.envelope)}
    for field in pipeline.table.partition_fields:
        column = field.source.partition(".")[0]
        what = ""
        if column in added or (is_reserved(column) and field.source != KEY_SOURCE):
            what = (
                f"{field.source} is of a key's last record, so that a later record moves the row to another partition"
            )
        elif field.source in order_by(write) and field.source not in (write.key or ()):
            what = (
                f"{field.source} orders the records of a key, so that a later record moves the row to another partition"
            )
        if what:
            do = "Remove stable_partition, or partition by columns that a key keeps, such as the time when it was made"
            yield Problem("write.stable_partition", what, do)
