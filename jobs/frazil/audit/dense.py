"""Dense files: those whose manifest alone tells which records they hold.

All rows of such a file are of one partition, and its offsets span exactly as many as it has rows. What the manifest
cannot tell is a file in which one offset stands twice and another one between is missing; `verify --deep` reads dense
files too.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.lake.data_files import Bounds, DataFile

CUT = 16  # characters of a string that metrics keep, by Iceberg's default


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a row of a table tells which record it was; nested ones with dots."""

    topic: str
    partition: str
    offset: str

    @property
    def all(self) -> tuple[str, str, str]:
        """The three of them."""
        return self.topic, self.partition, self.offset


def is_dense(file: DataFile, columns: Columns, topic: str) -> bool:
    """Whether the manifest alone tells which records a file holds."""
    try:
        of_topic, partition, offset = (file.bounds[name] for name in columns.all)
    except KeyError:
        return False
    if file.deletes or not file.rows or None in (partition.low, offset.low):
        return False
    return (
        is_of(of_topic, topic)
        and partition.nulls == offset.nulls == 0
        and partition.low == partition.high
        and offset.high - offset.low + 1 == file.rows
    )


def is_of(bounds: Bounds | None, topic: str) -> bool:
    """Whether all rows of a file are the topic's, as far as metrics keep its name."""
    return (
        bounds is not None
        and bounds.nulls == 0
        and bounds.low == topic[:CUT]
        and bounds.high in (topic, _cut_upper(topic))
    )


def _cut_upper(topic: str) -> str | None:
    """The upper bound that a metric keeps of a long name: cut, its last character one higher."""
    return topic[: CUT - 1] + chr(ord(topic[CUT - 1]) + 1) if len(topic) > CUT else None
