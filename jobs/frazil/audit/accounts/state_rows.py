"""The rows of an upsert table: how many there are, and the sum of their keys' hashes, read from its data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from frazil.audit.files.file_scan import Source, noted
from frazil.audit.finding import Finding
from frazil.lake.read.data_files import DataFile, each
from frazil.lake.read.row_groups import deletes_by_file, open_file
from frazil.upsert.key_hash import U64, hashes

READERS = 4
"""Files that are read at a time."""
AT_ONCE = 1 << 25
"""Keys that are compared with each other at a time: 256 MiB of hashes. A larger table is read several times."""

BY_CHANCE = 1_000
"""So many rows of which other keys have the hash are looked at by their keys. Of 2^37 keys about 500 pairs share one of 64 bits."""


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
    shared = list[U64]()
    for number in range(passes):
        kept, wrong = [], list[Finding]()
        for found in _keys(source, key, number, passes, wrong):
            kept += found.kept
            if number == 0:
                rows += found.rows
                total += found.hash
        every = np.concatenate(kept) if kept else np.empty(0, np.uint64)
        each_once, numbers = np.unique(every, return_counts=True)
        doubled += len(every) - len(each_once)
        shared.append(each_once[numbers > 1][: BY_CHANCE + 1])
        problems += [problem for problem in wrong if problem not in problems]  # a file may be lost between two passes
    if 0 < doubled <= BY_CHANCE and not problems:
        doubled -= _of_other_keys(source, key, np.concatenate(shared), problems)
    return StateRows(rows, total % 2**64, doubled)


def _of_other_keys(source: Source, key: Sequence[str], shared: U64, problems: list[Finding]) -> int:
    """Return how many different keys there are beyond the number of the hashes that they share."""

    def of(file: DataFile) -> set[tuple[object, ...]]:
        found = set[tuple[object, ...]]()
        with noted(source, file.path, problems), open_file(source.table, file, key) as opened:
            for batch in (batch for group in opened.groups for batch in opened.read(group) if batch.num_rows):
                columns = [batch.column(name) for name in key]
                rows = np.flatnonzero(np.isin(hashes(columns), shared))
                found.update(zip(*(_comparable(column.take(rows)).to_pylist() for column in columns), strict=True))
        return found

    return len(set[tuple[object, ...]]().union(*each(of, source.files, parallel=READERS))) - len(shared)


def _comparable(column: pa.Array) -> pa.Array:
    """Return times as numbers, timestamps as microseconds: Python's own end with the year 9999."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    elif not pa.types.is_temporal(column.type):
        return column
    return column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys of a file: number and sum of all their hashes, and the hashes that one pass compares."""

    rows: int
    hash: int
    kept: list[U64]


def _keys(source: Source, key: Sequence[str], number: int, passes: int, problems: list[Finding]) -> Iterator[_Keys]:
    def of(file: DataFile) -> _Keys:
        rows = total = 0
        kept: list[U64] = []
        with noted(source, file.path, problems), open_file(source.table, file, key) as opened:
            for batch in (batch for group in opened.groups for batch in opened.read(group) if batch.num_rows):
                found = hashes([batch.column(name) for name in key])
                rows += len(found)
                total += int(found.sum(dtype=np.uint64))
                # Here and not where they are compared: the keys of many files wait there, with all of their hashes.
                kept.append(found if passes == 1 else found[found % np.uint64(passes) == number])
        return _Keys(rows, total, kept)

    yield from each(of, source.files, parallel=READERS)


def _is_vector(delete: object) -> bool:
    return str(getattr(delete, "file_format", "")).upper().endswith("PUFFIN")
