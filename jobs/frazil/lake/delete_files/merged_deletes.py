"""Merge the delete files of a snapshot: many small ones, and the rest of those whose data files have gone. Nothing is committed."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from frazil.errors import RowsWouldChange
from frazil.lake.data_location import has_vectors
from frazil.lake.delete_files import java_writers
from frazil.lake.delete_files import position_deletes as position_files
from frazil.lake.delete_files.java_manifests import DeleteFile, Partition, data_paths, position_deletes
from frazil.lake.delete_files.position_deletes import Positions
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.read.data_files import each
from frazil.lake.rewrite import DELETED_SHARE

BYTES_AT_MOST = 32 << 20
"""So much of a partition's delete files is read and merged; of what is more, files go only if all their data files have gone."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Delete files that go, and those that were written in their place, with the sequence number of their deletes."""

    planned_on: int
    removed: tuple[DeleteFile, ...]
    added: tuple[tuple[Java, int], ...]


def merges(
    iceberg: Iceberg,
    table: Java,
    snapshot_id: int,
    *,
    many: int,
    wanted: Callable[[Partition, int], bool] = lambda partition, named: True,
) -> Iterator[Merge]:
    """Yield what is to do about the delete files of a snapshot, a few files of a partition at a time.

    `many` is as in `merge`. A partition is examined if it is `wanted`: the number is how many delete files may name rows of one of
    its data files.
    """
    partitions: dict[Partition, list[DeleteFile]] = {}
    for file in position_deletes(iceberg, table, snapshot_id):
        partitions.setdefault(file.partition, []).append(file)
    chosen = [files for partition, files in partitions.items() if wanted(partition, named_most(files))]
    if not chosen:
        return
    data = data_paths(iceberg, table, snapshot_id)
    writes = not has_vectors(iceberg, table)

    def named(file: DeleteFile) -> Positions | None:
        return position_files.read(table, file.location) if file.bytes <= BYTES_AT_MOST else None

    for files in chosen:
        vectors = frozenset(file.of for file in files if file.is_vector and file.of is not None)
        if gone := without_data(files, data):
            yield Merge(gone)
        # A vector has all deletes of its data file: older ones next to it do not count.
        for part in _parts([file for file in files if not file.is_vector and file not in gone]):
            known = [(file, at) for file, at in zip(part, each(named, part), strict=True) if at is not None]
            if (found := merge(known, data - vectors, many=many, writes=writes)) is not None:
                yield found


def write(iceberg: Iceberg, table: Java, snapshot_id: int, found: Merge) -> list[tuple[Java, int]]:
    """Write the files of a merge, in no snapshot yet; return them with the sequence number of their deletes.

    It must be one of this snapshot.
    Raises `RowsWouldChange` if one does not have what was written to it.
    """
    if not found.positions:
        return []
    tasks = java_writers.tasks(iceberg, table, snapshot_id, found.positions.keys())
    rows = {path: int(task.file().recordCount()) for path, task in tasks.items()}
    return [(_file(iceberg, table, found, paths), found.sequence) for paths in in_files(found.positions, rows)]


def _parts(files: Sequence[DeleteFile]) -> Iterator[list[DeleteFile]]:
    """Yield the files in parts that are read at a time."""
    part, size = list[DeleteFile](), 0
    for file in sorted(files, key=lambda file: (file.bytes, file.location)):
        if part and size + file.bytes > BYTES_AT_MOST:
            yield part
            part, size = [], 0
        part, size = [*part, file], size + file.bytes
    if part:
        yield part


def _file(iceberg: Iceberg, table: Java, found: Merge, paths: tuple[str, ...]) -> Java:
    """Write one of them, and read it back."""
    import numpy as np

    of, payload = found.removed[0].java, position_files.payload(found.positions, paths)
    location = java_writers.write_bytes(table, of, f"deletes-{uuid.uuid4().hex}.parquet", payload)
    size, written = len(payload), {path: found.positions[path] for path in paths}
    rows = sum(map(len, written.values()))
    read = position_files.read(table, location) or {}
    if read.keys() != written.keys() or not all(np.array_equal(read[path], at) for path, at in written.items()):
        raise RowsWouldChange(
            f"the delete file {location} does not have the {rows} deletes that were written to it; nothing of it was committed",
            where=f"table {table.name()}",
            do="Run again; if it persists, look at the object store",
        )
    return java_writers.position_delete_file(iceberg, table, of, location, size=size, rows=rows, paths=list(paths))


OWN_FILES = 100
"""So many data files of a partition get a delete file of their own at most."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A partition's delete files that go, and the positions that new files must name instead, each once."""

    removed: tuple[DeleteFile, ...]
    positions: Positions = field(default_factory=dict)

    @property
    def sequence(self) -> int:
        """The sequence number of the new files: the highest, as a delete counts for data files of its own number and older ones."""
        return max(file.sequence for file in self.removed)


def named_most(files: Iterable[DeleteFile]) -> int:
    """Return how many Parquet files of one partition may name rows of one data file: so many a reader of it opens."""
    parquet = [file for file in files if not file.is_vector]
    own = Counter(file.of for file in parquet if file.of is not None)
    return sum(file.of is None for file in parquet) + max(own.values(), default=0)


def without_data(files: Iterable[DeleteFile], data: Set[str]) -> tuple[DeleteFile, ...]:
    """Return the files, each of one data file, whose data file is none of `data`."""
    return tuple(file for file in files if file.of is not None and file.of not in data)


def merge(named: Sequence[tuple[DeleteFile, Positions]], data: Set[str], *, many: int, writes: bool) -> Merge | None:
    """Decide about Parquet files of one partition, by the positions that they name; None if all stay.

    Files go that name rows of none of the `data` files. If these are not all, and `many` files name rows of one data file, or more
    deletes than not name rows of none, the others are merged, except those that are their data file's only one. Without `writes`,
    none are.
    """
    gone = tuple(file for file, at in named if not at.keys() & data)
    left = [(file, at) for file, at in named if at.keys() & data]
    count = Counter(path for _, at in left for path in at if path in data)
    total = sum(len(positions) for _, at in left for positions in at.values())
    live = sum(len(positions) for _, at in left for path, positions in at.items() if path in data)
    is_due = max(count.values(), default=0) >= many or 2 * live < total
    # One of several data files may be opened for others too, whose paths are between those that it names.
    merged = [(file, at) for file, at in left if file.of is None or any(count[path] > 1 for path in at)]
    if not (writes and is_due and merged):
        return Merge(gone) if gone else None
    return Merge((*gone, *(file for file, _ in merged)), _united([at for _, at in merged], data))


def in_files(positions: Positions, rows: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Return of which data files each new delete file names rows; `rows` are those of the data files, deleted ones included.

    Data files of which many rows are deleted get one of their own, so that manifests say how many these are: they are the next ones
    to be rewritten. The others share one.
    """
    share = {path: len(at) / rows[path] if rows.get(path) else 0.0 for path, at in positions.items()}
    most = sorted(share, key=lambda path: (-share[path], path))
    own = sorted(path for path in most[:OWN_FILES] if share[path] >= float(DELETED_SHARE))
    others = tuple(sorted(positions.keys() - set(own)))
    return [*((path,) for path in own), *([others] if others else [])]


def _united(named: Sequence[Positions], data: Set[str]) -> dict[str, Any]:
    import numpy as np

    parts: dict[str, list[Any]] = {}
    for at in named:
        for path in at.keys() & data:
            parts.setdefault(path, []).append(at[path])
    return {path: np.unique(np.concatenate(arrays)) for path, arrays in parts.items()}
