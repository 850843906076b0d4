"""The rows of a table of current state: how many there are, and the sum of their keys' hashes, read from its data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from frazil.audit.file_scan import Source, noted
from frazil.audit.finding import Finding
from frazil.lake.key_hash import U64, hashes
from frazil.lake.read.data_files import DataFile, each
from frazil.lake.read.row_groups import deletes_by_file, open_file

READERS = 4
"""Files that are read at a time."""
AT_ONCE = 1 << 25
"""Keys that are compared with each other at a time: 256 MiB of hashes. A larger table is read several times."""


@dataclass(frozen=True, slots=True)
class StateRows:
    """The live rows of a table. `hash` is the sum of their keys' hashes modulo 2^64; `doubled` are rows too many of a key.

    Both are None if only manifests were read.
    """

    rows: int
    hash: int | None = None
    doubled: int | None = None


def by_manifest(source: Source, problems: list[Finding]) -> StateRows:
    """Return the number of live rows by the manifests, without opening a data file.

    Parquet files of deletes are read: they may name rows of files that compaction has removed, rows that a file does not have, and
    a row twice, so their number alone could hide as many rows too many. Of a data file with a vector only that counts, as the
    specification says. `problems` get what cannot be read.
    """
    from pyroaring import BitMap64

    files = source.files
    vectors = {file.path: [delete for delete in file.deletes if _is_vector(delete)] for file in files}
    shared: dict[str, tuple[object, list[str]]] = {}
    for file in files:
        for delete in file.deletes if not vectors[file.path] else ():
            shared.setdefault(delete.file_path, (delete, []))[1].append(file.path)

    def of(named: tuple[object, list[str]]) -> list[tuple[str, BitMap64]]:
        delete, paths = named
        with noted(source, str(getattr(delete, "file_path", "")), problems):
            positions = deletes_by_file(source.table, delete)
            return [(path, BitMap64(positions[path].to_numpy())) for path in paths if path in positions]
        return []

    deleted: dict[str, BitMap64] = {}
    for found in each(of, list(shared.values()), parallel=READERS):
        for path, positions in found:
            deleted[path] = deleted[path] | positions if path in deleted else positions
    rows = sum(file.rows for file in files)
    of_vectors = sum(delete.record_count for found in vectors.values() for delete in found)
    return StateRows(
        rows
        - of_vectors
        - sum(deleted[file.path].range_cardinality(0, file.rows) for file in files if file.path in deleted)
    )


def read_keys(source: Source, key: Sequence[str], problems: list[Finding]) -> StateRows:
    """Read the key columns of all rows, without deleted ones. `problems` get what cannot be read."""
    written = sum(file.rows for file in source.files)
    passes = max(1, -(-written // AT_ONCE))
    rows = total = doubled = 0
    for number in range(passes):
        kept: list[U64] = []
        for found in _hashes(source, key, problems if number == 0 else []):
            if number == 0:
                rows += len(found)
                total += int(found.sum(dtype=np.uint64))
            kept.append(found if passes == 1 else found[found % np.uint64(passes) == number])
        every = np.concatenate(kept) if kept else np.empty(0, np.uint64)
        doubled += len(every) - len(np.unique(every))
    return StateRows(rows, total % 2**64, doubled)


def _hashes(source: Source, key: Sequence[str], problems: list[Finding]) -> Iterator[U64]:
    def of(file: DataFile) -> list[U64]:
        with noted(source, file.path, problems), open_file(source.table, file, key) as opened:
            read = [batch for group in opened.groups for batch in opened.read(group) if batch.num_rows]
            return [hashes([batch.column(name) for name in key]) for batch in read]
        return []

    for found in each(of, source.files, parallel=READERS):
        yield from found


def _is_vector(delete: object) -> bool:
    return str(getattr(delete, "file_format", "")).upper().endswith("PUFFIN")
