"""The rows of an upsert table: how many there are, and the sum of their keys' hashes, read from its data files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from frazil.audit.accounts.balance import PartitionAccount
from frazil.audit.files.count import Read
from frazil.audit.files.file_scan import Source, noted
from frazil.audit.finding import SHOWN, Finding, Flaw
from frazil.declaration import Pipeline
from frazil.errors import WriteModeDiffers
from frazil.lake.layout import Layout, key_type
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.lake.read.data_files import READERS, DataFile, each, lengths
from frazil.lake.read.row_groups import deletes_by_file, open_file
from frazil.lake.read.stored_tables import StoredTable
from frazil.schemas.evolution.field_ids import is_union
from frazil.schemas.types import Struct
from frazil.upsert.key_hash import U64, hashes

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
    vectors = {f.path: [one for one in f.deletes if str(one.file_format).upper().endswith("PUFFIN")] for f in files}
    shared: dict[str, tuple[Any, list[str]]] = {}
    for file in files:
        for delete in file.deletes if not vectors[file.path] else ():
            shared.setdefault(delete.file_path, (delete, []))[1].append(file.path)

    def of(named: tuple[Any, list[str]]) -> list[tuple[str, BitMap64]]:
        delete, paths = named
        with noted(source, delete.file_path, problems):
            positions = deletes_by_file(source.table, delete)
            return [(path, BitMap64(positions[path].to_numpy())) for path in paths if path in positions]
        return []

    deleted: dict[str, BitMap64] = {}
    for found in each(of, list(shared.values()), parallel=READERS):
        for path, positions in found:
            deleted[path] = deleted[path] | positions if path in deleted else positions
    of_vectors = sum(delete.record_count for found in vectors.values() for delete in found)
    of_files = sum(deleted[file.path].range_cardinality(0, file.rows) for file in files if file.path in deleted)
    return StateRows(sum(file.rows for file in files) - of_vectors - of_files)


def read_keys(source: Source, key: Sequence[str], problems: list[Finding]) -> StateRows:
    """Read the key columns of all rows, without deleted ones. `problems` get what cannot be read."""
    written = sum(file.rows for file in source.files)
    passes = max(1, -(-written // AT_ONCE))
    rows = total = doubled = 0
    shared = list[U64]()
    for number in range(passes):
        kept, wrong = [], list[Finding]()
        for of_file, hash_of_file, kept_of_file in _keys(source, key, number, passes, wrong):
            kept += kept_of_file
            if number == 0:
                rows, total = rows + of_file, total + hash_of_file
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


def _keys(
    source: Source, key: Sequence[str], number: int, passes: int, problems: list[Finding]
) -> Iterator[tuple[int, int, list[U64]]]:
    """Yield of each file the number and sum of its keys' hashes, and those that one pass compares."""

    def of(file: DataFile) -> tuple[int, int, list[U64]]:
        rows = total = 0
        kept: list[U64] = []
        with noted(source, file.path, problems), open_file(source.table, file, key) as opened:
            for batch in (batch for group in opened.groups for batch in opened.read(group) if batch.num_rows):
                found = hashes([batch.column(name) for name in key])
                rows += len(found)
                total += int(found.sum(dtype=np.uint64))
                # Here and not where they are compared: the keys of many files wait there, with all of their hashes.
                kept.append(found if passes == 1 else found[found % np.uint64(passes) == number])
        return rows, total, kept

    yield from each(of, source.files, parallel=READERS)


_OF_RECORDS = (Flaw.MISSING, Flaw.EXCESS)


@dataclass(frozen=True, slots=True)
class State:
    """An upsert table: its files, and the account of its newest commit. `reads_keys`: every key is read."""

    source: Source
    account: KeyAccount
    reads_keys: bool

    def accounts(
        self, partitions: Iterable[PartitionAccount], findings: Iterable[Finding]
    ) -> tuple[tuple[PartitionAccount, ...], list[Finding]]:
        """Return the partitions with the records that landed, and what is wrong with all of them together.

        `partitions` and `findings` are of a count that saw no row, so to which all landed records are missing.
        """
        found = tuple(
            replace(one, landed=one.read - one.dead_lettered - one.pending - one.skipped - one.filtered - one.gaps)
            for one in partitions
        )
        wrong = [finding for finding in findings if finding.flaw not in _OF_RECORDS]
        missing = sum(one.landed for one in found) - self.account.records
        if missing:
            flaw = Flaw.MISSING if missing > 0 else Flaw.EXCESS
            what = f"its commits landed {self.account.records} records, which is {abs(missing)} too "
            what += "few for the offsets that were read" if missing > 0 else "many for the offsets that were read"
            wrong.append(Finding(flaw=flaw, where=self._where, what=what, count=abs(missing)))
        return found, wrong

    def rows(self) -> tuple[Read, StateRows | None, list[Finding]]:
        """Return how the rows were counted, what they are if they could be read, and what is wrong with them.

        Manifests are enough if they give the number of the account; else, and if that is asked for, the keys are read.
        """
        files, table = self.source.files, self.source.table
        read = Read(table.identifier, None, files_with_deletes=sum(bool(file.deletes) for file in files))
        problems: list[Finding] = []
        known = by_manifest(self.source, problems)
        if problems:
            return read, None, problems
        if known.rows == self.account.rows and not self.reads_keys and not self.source.altered:
            return replace(read, files_by_manifest=len(files), rows_by_manifest=known.rows), known, []
        schema = table.iceberg.schema()
        # By id, as the driver has them: another engine may move a column, and the hash depends on their order.
        key: Sequence[str] = [schema.find_field(number).name for number in sorted(schema.identifier_field_ids)]
        found = read_keys(self.source, key, problems)
        read = replace(read, files_by_scan=len(files), rows_by_scan=found.rows)
        return read, None if problems else found, problems or self._compared(found)

    def _compared(self, found: StateRows) -> list[Finding]:
        findings = []
        if found.doubled:
            what = f"{found.doubled} rows too many: their keys have another row"
            findings.append(Finding(flaw=Flaw.DOUBLED, where=self._where, what=what, count=found.doubled))
        if (found.rows, found.hash) == (self.account.rows, self.account.hash):
            return findings  # the commits themselves left both rows of a key
        apart = found.rows - (found.doubled or 0) - self.account.rows
        if apart:
            what = f"it has {found.rows} rows, and its commits count {self.account.rows}"
            flaw = Flaw.EXCESS if apart > 0 else Flaw.MISSING
            findings.append(Finding(flaw=flaw, where=self._where, what=what, count=abs(apart)))
        elif not findings and found.hash != self.account.hash:
            what = "the keys of its rows are not those that its commits count, though there are as many"
            findings.append(Finding(flaw=Flaw.OTHER_KEYS, where=self._where, what=what))
        return findings

    @property
    def _where(self) -> str:
        return f"table {self.source.table.identifier}"


def check_key(pipeline: Pipeline, actual: Layout) -> None:
    """Raise `WriteModeDiffers` if an upsert table has other identifier fields than its key has columns, by their number."""
    of, key = key_type(actual), pipeline.write.key
    fields = (
        tuple(field.name for field in of.fields) if isinstance(of, Struct) and not is_union(of) else ("_kafka_key",)
    )
    names, required = key or fields, {field.name for field in actual.row.fields if field.required}
    if len(names) != len(actual.identifiers):  # another engine, or a schema, may have renamed them
        raise WriteModeDiffers.of_key(
            pipeline.name,
            pipeline.table.identifier,
            kind=pipeline.write.kind,
            key=names,
            made_for=actual.identifiers,
            is_of_records=key is None,
            may_identify=required.issuperset(names),
        )


def of_remembered_deletes(table: StoredTable, pipeline: str, known: RememberedDeletes) -> list[Finding]:
    """Return the files that do not exist, and those of another size than was written."""
    sizes = lengths(table, known.locations)
    lost = [file.location for file in known.files if sizes[file.location] is None]
    altered = [file.location for file in known.files if sizes[file.location] not in (None, file.bytes)]
    do = f"restore them, or `frazil accept {pipeline} remembered-deletes-lost --reason …` continues without them"
    return [
        Finding(
            flaw=flaw,
            where=f"table {table.identifier}",
            what=f"{len(files)} files of remembered deletes {what}: {', '.join(files[:SHOWN])}; {do}",
            count=len(files),
        )
        for flaw, files, what in (
            (Flaw.FILE_LOST, lost, "do not exist"),
            (Flaw.FILE_ALTERED, altered, "have another size than was written"),
        )
        if files
    ]
