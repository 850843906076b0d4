"""The rows of a table of current state: how many there are, and the sum of their keys' hashes, read from its data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from frazil.audit.file_scan import Source, noted
from frazil.audit.finding import Finding
from frazil.lake.key_hash import U64, hashes
from frazil.lake.read.data_files import DataFile, each
from frazil.lake.read.row_groups import deletes_by_file
from frazil.lake.read.scan import batches

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

    Parquet files of deletes are read: they may name rows of files that compaction has removed, so their number alone could hide
    as many rows too many. `problems` get what cannot be read.
    """
    shared: dict[str, tuple[object, list[str]]] = {}
    files = source.files
    for file in files:
        for delete in file.deletes:
            if not _is_vector(delete):
                shared.setdefault(delete.file_path, (delete, []))[1].append(file.path)

    def of(named: tuple[object, list[str]]) -> int:
        delete, paths = named
        with noted(source, str(getattr(delete, "file_path", "")), problems):
            positions = deletes_by_file(source.table, delete)
            return sum(len(positions[path]) for path in paths if path in positions)
        return 0

    vectors = sum(delete.record_count for file in files for delete in file.deletes if _is_vector(delete))
    return StateRows(
        sum(file.rows for file in files) - vectors - sum(each(of, list(shared.values()), parallel=READERS))
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
        with noted(source, file.path, problems):
            read = [batch for batch in batches(source.table, file, key) if batch.num_rows]
            return [hashes([batch.column(name) for name in key]) for batch in read]
        return []

    for found in each(of, source.files, parallel=READERS):
        yield from found


def _is_vector(delete: object) -> bool:
    return str(getattr(delete, "file_format", "")).upper().endswith("PUFFIN")
