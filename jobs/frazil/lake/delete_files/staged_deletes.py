"""Write the positions of rows to delete files that no snapshot refers to: version 2 to Parquet, version 3 to deletion vectors."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from frazil.errors import CommitRefused
from frazil.lake.data_location import has_vectors
from frazil.lake.delete_files import java_writers
from frazil.lake.delete_files import position_deletes as position_files
from frazil.lake.delete_files.java_manifests import Partition, partitions_of
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The live rows of a batch's keys on one snapshot.

    `at` is the sorted positions by path of the data file, each once. `updated` and `deleted` count the keys that are there and that
    the batch writes or deletes; `hash` is the sum of all these rows' hashes, modulo 2^64. `moved` rows are of another Kafka
    partition than the batch's record of their key.
    """

    at: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    updated: int = 0
    deleted: int = 0
    hash: int = 0
    moved: int = 0
    late: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()
    ties: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(map(len, self.at.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedDeletes:
    """Delete files in no snapshot, which fit one snapshot only: `snapshot_id`, the table's head when they were made.

    `removed` are vectors that the new ones contain, and `referenced` the paths of the data files that lose rows. If it `clears`,
    all rows of the snapshot go instead. `beside` are other new files that the commit names.
    """

    snapshot_id: int
    found: Found = field(default_factory=Found)
    added: tuple[Java, ...] = ()
    removed: tuple[Java, ...] = ()
    referenced: tuple[str, ...] = ()
    clears: bool = False
    beside: tuple[str, ...] = ()

    @property
    def made(self) -> tuple[str, ...]:
        """The locations of new files that a search writes, and another search on the same snapshot writes again."""
        return tuple(dict.fromkeys(str(file.location()) for file in self.added))


def write(iceberg: Iceberg, table: Java, snapshot_id: int, found: Found) -> StagedDeletes:
    """Write the deletes of the rows that were found. Raises `CommitRefused` if a data file would have two vectors."""
    if not found.at:
        return StagedDeletes(snapshot_id=snapshot_id, found=found)
    tasks = java_writers.tasks(iceberg, table, snapshot_id, found.at.keys())
    made = _vectors if has_vectors(iceberg, table) else _parquet
    added, removed = made(iceberg, table, found, tasks)
    return StagedDeletes(
        snapshot_id=snapshot_id, found=found, added=added, removed=removed, referenced=tuple(sorted(found.at))
    )


def _vectors(
    iceberg: Iceberg, table: Java, found: Found, tasks: Mapping[str, Java]
) -> tuple[tuple[Java, ...], tuple[Java, ...]]:
    from pyroaring import BitMap64

    writer = java_writers.VectorWriter(iceberg, table, {path: tasks[path] for path in found.at})
    bitmaps = {path: BitMap64(positions) for path, positions in found.at.items()}
    for bitmap in bitmaps.values():
        bitmap.run_optimize()
    writer.delete({path: bitmap.serialize() for path, bitmap in bitmaps.items()})
    added, removed = writer.close()
    if len(removed) != writer.old:
        # Iceberg would commit two vectors of one data file, and then no engine can read the table.
        raise CommitRefused(
            f"{len(removed)} of {writer.old} old deletion vectors were merged into the new ones",
            where=f"table {table.name()}",
            do="Nothing was added: the data files would have two vectors each. Report it with the versions of Frazil and Iceberg",
        )
    return added, removed


def _parquet(
    iceberg: Iceberg, table: Java, found: Found, tasks: Mapping[str, Java]
) -> tuple[tuple[Java, ...], tuple[Java, ...]]:
    """Write one file for each partition spec and partition: a delete file belongs to one."""
    classes, named = iceberg.classes, sorted(found.at)
    files = classes.each(classes.list_of(tasks[path] for path in named), classes.function("ContentScanTask", "file"))
    groups: dict[Partition, list[int]] = {}
    for place, partition in enumerate(partitions_of(iceberg, table, files)):
        groups.setdefault(partition, []).append(place)
    added = []
    for places in groups.values():
        paths, first = [named[place] for place in places], files.get(places[0])
        payload = position_files.payload(found.at, paths)
        location = java_writers.write_bytes(table, first, f"deletes-{uuid.uuid4().hex}.parquet", payload)
        rows = sum(len(found.at[path]) for path in paths)
        added.append(
            java_writers.position_delete_file(
                iceberg, table, first, location, size=len(payload), rows=rows, paths=paths
            )
        )
    return tuple(added), ()
