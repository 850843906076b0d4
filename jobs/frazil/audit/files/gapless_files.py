"""Gapless files, for which the manifest alone says which records they hold.

All rows of such a file are of one partition, and its offsets span exactly as many as it has rows. The manifest cannot
show a file in which one offset occurs twice and another one between is missing; `verify --deep` reads gapless files too.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.lake.read.data_files import Bounds, DataFile


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that say which record a row was; nested ones with dots."""

    topic: str
    partition: str
    offset: str

    @property
    def all(self) -> tuple[str, str, str]:
        """The three of them."""
        return self.topic, self.partition, self.offset


def is_dense(file: DataFile, columns: Columns, topic: str) -> bool:
    """Return whether the manifest alone says which records a file holds."""
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
    """Return whether all rows of a file are the topic's. Names that metrics cut say nothing: two topics may begin alike."""
    return bounds is not None and bounds.nulls == 0 and bounds.low == bounds.high == topic


def is_foreign(bounds: Bounds | None, topic: str) -> bool:
    """Return whether no row of a file is the topic's."""
    if bounds is None or bounds.nulls != 0 or bounds.low is None or bounds.high is None:
        return False
    return bool(topic < bounds.low or topic > bounds.high)
