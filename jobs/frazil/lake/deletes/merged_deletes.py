"""Merge the delete files of a snapshot: many small ones, and what is left of those that name rows of no data file. Nothing is
committed here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from frazil.errors import RowsWouldChange
from frazil.lake.deletes import java_writers, position_files
from frazil.lake.deletes.java_manifests import DeleteFile, Partition, data_paths, position_deletes
from frazil.lake.deletes.merging import Merge, in_files, merge, named_most, without_data
from frazil.lake.deletes.position_files import Positions
from frazil.lake.deletes.staged_deletes import VECTORS_FROM
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java

BYTES_AT_MOST = 32 << 20
"""So much of a partition's delete files is read and merged; of what is more, files go only if all their data files have gone."""
READERS = 8


@dataclass(frozen=True, slots=True)
class Merged:
    """Delete files that go, and those that were written in their place, with the sequence number of their deletes."""

    planned_on: int
    removed: tuple[DeleteFile, ...]
    added: tuple[tuple[Java, int], ...]

    @property
    def written(self) -> int:
        """The bytes of the new files."""
        return sum(int(file.fileSizeInBytes()) for file, _ in self.added)


def write(
    iceberg: Iceberg,
    table: Java,
    snapshot_id: int,
    *,
    many: int,
    wanted: Callable[[Partition, int], bool] = lambda partition, named: True,
    hold: Callable[[], bool] = lambda: True,
) -> Merged:
    """Write what is left of delete files that go, in no snapshot yet.

    `many` is as in `merge`. A partition of which at most `named` delete files name rows of one data file is examined if it is `wanted`,
    and as long as `hold` says so. Raises `RowsWouldChange` if a new file does not have what it must have.
    """
    partitions: dict[Partition, list[DeleteFile]] = {}
    for file in position_deletes(iceberg, table, snapshot_id):
        partitions.setdefault(file.partition, []).append(file)
    chosen = [files for partition, files in partitions.items() if wanted(partition, named_most(files))]
    if not chosen:
        return Merged(snapshot_id, (), ())
    data = data_paths(iceberg, table, snapshot_id)
    writes = int(iceberg.metadata(table)["format-version"]) < VECTORS_FROM
    removed, added = list[DeleteFile](), list[tuple[Java, int]]()
    with ThreadPoolExecutor(READERS, thread_name_prefix="deletes") as threads:

        def named(file: DeleteFile) -> Positions | None:
            return position_files.read(table, file.location) if file.bytes <= BYTES_AT_MOST else None

        for files in chosen:
            if not hold():
                break
            vectors = frozenset(file.of for file in files if file.is_vector and file.of is not None)
            gone = without_data(files, data)
            rest = [file for file in files if not file.is_vector and file not in gone]
            removed += gone
            for one in _in_parts(rest):
                read = zip(one, threads.map(named, one), strict=True)
                known = [(file, at) for file, at in read if at is not None]
                # A vector has all deletes of its data file: older ones beside it do not count.
                found = merge(known, data - vectors, many=many, writes=writes)
                if found is not None:
                    removed += found.removed
                    added += _written(iceberg, table, snapshot_id, found)
    return Merged(snapshot_id, tuple(removed), tuple(added))


def _in_parts(files: Sequence[DeleteFile]) -> Iterable[list[DeleteFile]]:
    """Yield the files in parts that are read at a time."""
    part, size = list[DeleteFile](), 0
    for file in sorted(files, key=lambda file: (file.bytes, file.location)):
        if part and size + file.bytes > BYTES_AT_MOST:
            yield part
            part, size = [], 0
        part, size = [*part, file], size + file.bytes
    if part:
        yield part


def _written(iceberg: Iceberg, table: Java, snapshot_id: int, found: Merge) -> list[tuple[Java, int]]:
    """Write the new files."""
    tasks = java_writers.tasks(table, snapshot_id, found.positions.keys())
    rows = {path: int(task.file().recordCount()) for path, task in tasks.items()}
    return [(_file(iceberg, table, found, paths), found.sequence) for paths in in_files(found.positions, rows)]


def _file(iceberg: Iceberg, table: Java, found: Merge, paths: tuple[str, ...]) -> Java:
    """Write one of them, and read it back."""
    of, payload = found.removed[0].java, position_files.payload(found.positions, paths)
    location = java_writers.write_bytes(table, of, f"deletes-{uuid.uuid4().hex}.parquet", payload)
    size, written = len(payload), {path: found.positions[path] for path in paths}
    rows = sum(map(len, written.values()))
    if not _is_same(position_files.read(table, location), written):
        raise RowsWouldChange(
            f"the delete file {location} does not have the {rows} deletes that were written to it; nothing of it was committed",
            where=f"table {table.name()}",
            do="Run again; if it persists, look at the object store",
        )
    return java_writers.position_delete_file(iceberg, table, of, location, size=size, rows=rows, paths=list(paths))


def _is_same(read: Positions | None, written: Positions) -> bool:
    import numpy as np

    return (
        read is not None
        and read.keys() == written.keys()
        and all(np.array_equal(read[path], written[path]) for path in written)
    )
