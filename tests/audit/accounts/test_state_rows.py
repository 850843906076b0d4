"""The live rows of a state, by manifests and by its keys: deletes of many kinds, many keys, and what is read of them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.typedef import Record

from frazil.audit.accounts import state_rows
from frazil.audit.accounts.state_rows import StateRows, _comparable, by_manifest, read_keys
from frazil.audit.files.count import files_of
from frazil.audit.files.file_scan import Columns, Source
from frazil.audit.files.window import Role
from frazil.audit.finding import Finding, Flaw, Outcome
from frazil.clients.secrets import Secrets
from frazil.lake.read import row_groups
from frazil.lake.read.data_files import DataFile
from frazil.lake.read.stored_tables import Lake
from tests.audit.audited_table import Landed
from tests.audit.landed_state import KEY, LandedState, hash_of

FLAT = Columns("_kafka_topic", "_kafka_partition", "_kafka_offset")

HERE, OTHER = "here", "file:/elsewhere/gone.parquet"
VECTOR = "vector"


def delete_file(folder: Path, number: int, named: list[tuple[str, int]]) -> Any:
    """A position delete file of version 2."""
    path = folder / f"deletes-{number}.parquet"
    fields = [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
    columns = [pa.array([path for path, _ in named]), pa.array([at for _, at in named], pa.int64())]
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path)
    return of_format(FileFormat.PARQUET, f"file://{path}", len(named), path.stat().st_size)


def of_format(kind: FileFormat, path: str, rows: int, size: int = 1) -> Any:
    return IcebergFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=kind,
        partition=Record(),
        record_count=rows,
        file_size_in_bytes=size,
    )


@pytest.mark.parametrize(
    ("deletes", "live"),
    [
        ([], 40),
        ([[(HERE, 0), (HERE, 7)]], 38),
        ([[(HERE, 3), (HERE, 3)]], 39),
        ([[(HERE, 3), (HERE, 4)], [(HERE, 4), (HERE, 5)]], 37),
        ([[(HERE, 39), (HERE, 40), (HERE, 41)]], 39),
        ([[(OTHER, 1), (HERE, 1), (OTHER, 2)]], 39),
        ([[(OTHER, 1)]], 40),
        ([VECTOR], 35),
        ([VECTOR, [(HERE, 3), (HERE, 4)]], 35),
    ],
)
def test_each_row_is_deleted_once(tmp_path: Path, deletes: list[Any], live: int) -> None:
    """So neither a doubled delete, nor one of a compacted file, hides as many rows too many."""
    landed = Landed(tmp_path, partitions=1)
    landed.land({0: 40})
    table = Lake(landed.environment, Secrets({}).read).table(landed.pipeline.table.identifier)
    assert table is not None
    source, wrong = files_of(Role.TABLE, table, table.head, FLAT)
    (file,), problems = source.files, list[Finding]()
    made = [
        of_format(FileFormat.PUFFIN, "file:/never/read.puffin", 5)
        if one is VECTOR
        else delete_file(tmp_path, number, [(file.path if path == HERE else path, at) for path, at in one])
        for number, one in enumerate(deletes)
    ]
    source = replace(source, files=(replace(file, deletes=tuple(made)),))
    assert by_manifest(source, problems) == StateRows(live)
    assert wrong == problems == []
    if VECTOR not in deletes:
        assert read_keys(source, ["_kafka_offset"], problems).rows == live


def test_deletes_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    landed = Landed(tmp_path, partitions=1)
    landed.land({0: 4})
    table = Lake(landed.environment, Secrets({}).read).table(landed.pipeline.table.identifier)
    assert table is not None
    source, _ = files_of(Role.TABLE, table, table.head, FLAT)
    problems = list[Finding]()
    lost = of_format(FileFormat.PARQUET, f"file://{tmp_path}/gone.parquet", 1)
    by_manifest(replace(source, files=(replace(source.files[0], deletes=(lost,)),)), problems)
    assert [problem.flaw for problem in problems] == [Flaw.FILE_LOST]


def spoil(state: LandedState) -> None:
    """Overwrite all data files with as many bytes that are no Parquet."""
    for file in state.paths():
        file.write_bytes(b"x" * file.stat().st_size)


def test_manifests_are_enough_for_the_number_of_rows(tmp_path: Path) -> None:
    """No data file is read: none of them has anything to read."""
    state = LandedState(tmp_path)
    state.change(range(30))
    state.change(range(20, 40), range(5))
    spoil(state)
    found = state.verify()
    assert (found.outcome, found.findings) == (Outcome.PROVEN, ())
    read = found.reads[0]
    assert (read.files_by_manifest, read.rows_by_manifest) == (len(state.paths()), 35)
    assert (read.files_by_scan, read.rows_by_scan) == (0, 0)
    assert {finding.flaw for finding in state.verify(deep=True).findings} == {Flaw.FILE_UNREADABLE}


def test_keys_are_read_if_the_manifests_have_another_number_of_rows(tmp_path: Path) -> None:
    state = LandedState(tmp_path)
    state.change(range(30))
    state.add_rows([7])
    found = state.verify()
    assert [(finding.flaw, finding.count) for finding in found.findings] == [(Flaw.DOUBLED, 1)]
    assert (found.reads[0].files_by_scan, found.reads[0].rows_by_scan) == (2, 31)


def moved(state: LandedState) -> None:
    state.table.delete(f"{KEY} = 3")
    state.add_rows([1003])


@pytest.mark.parametrize(
    ("change", "flaws"),
    [
        (lambda state: None, []),
        (lambda state: state.add_rows([3, 4, 5, 5, 5]), [(Flaw.DOUBLED, 5)]),
        (lambda state: state.table.delete(f"{KEY} < 7"), [(Flaw.MISSING, 7)]),
        (lambda state: state.add_rows([1000, 1001]), [(Flaw.EXCESS, 2)]),
        (lambda state: state.add_rows([3, 1000]), [(Flaw.DOUBLED, 1), (Flaw.EXCESS, 1)]),
        (moved, [(Flaw.OTHER_KEYS, None)]),
    ],
    ids=["nothing", "doubled", "missing", "excess", "doubled and excess", "other"],
)
def test_several_passes_find_what_one_pass_finds(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[LandedState], None],
    flaws: list[tuple[Flaw, int | None]],
) -> None:
    state = LandedState(tmp_path)
    state.change(range(60))
    change(state)
    for at_once in (state_rows.AT_ONCE, 30, 7):
        monkeypatch.setattr(state_rows, "AT_ONCE", at_once)
        found = state.verify(deep=True)
        assert [(finding.flaw, finding.count) for finding in found.findings] == flaws, at_once


def test_two_keys_of_one_hash_are_two_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a third row is one too many; more rows than can share a hash by chance are not read again."""
    source, problems, real = many_keys(tmp_path, 100, 1), list[Finding](), state_rows.hashes

    def colliding(columns: Any) -> Any:
        found = real(columns).copy()
        found[(columns[0].to_numpy() == 7) | (columns[0].to_numpy() == 9)] = 5
        return found

    monkeypatch.setattr(state_rows, "hashes", colliding)
    assert (state_rows.read_keys(source, [KEY], problems).doubled, problems) == (0, [])
    monkeypatch.setattr(state_rows, "AT_ONCE", 30)
    twice = replace(source, files=source.files * 2)
    assert (state_rows.read_keys(twice, [KEY], problems).doubled, problems) == (100, [])
    monkeypatch.setattr(state_rows, "BY_CHANCE", 0)
    assert (state_rows.read_keys(source, [KEY], problems).doubled, problems) == (1, [])


def many_keys(folder: Path, keys: int, files: int) -> Source:
    """Return so many files of the same keys, in row groups of 250 rows."""
    state = LandedState(folder)
    with state.table.transaction() as transaction:
        transaction.set_properties({"write.parquet.row-group-limit": "250"})
    state.change(range(keys))
    table = state.lake.table("shop.orders")
    assert table is not None
    source, _ = files_of(Role.TABLE, table, table.head, FLAT)
    return replace(source, files=source.files * files)


class Live:
    """How many values of watched objects exist, and how many did at most."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def watch(self, one: Any, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(one, self._gone, size)

    def _gone(self, size: int) -> None:
        self.now -= size


def test_what_is_held_of_the_keys_does_not_grow_with_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the rows only batches, and of the hashes only those that a pass compares; of all columns only the key."""
    source, at_once = many_keys(tmp_path, 1_000, 20), 4_000
    batches, numbers, columns = Live(), Live(), set[tuple[str, ...]]()

    class Watched(np.ndarray[Any, Any]):
        def __array_finalize__(self, made_of: object) -> None:
            numbers.watch(self, self.size if self.base is None else 0)

    def watched_read(self: Any, group: Any) -> Iterator[pa.RecordBatch]:
        for batch in read(self, group):
            batches.watch(batch, batch.num_rows)
            columns.add(tuple(batch.schema.names))
            yield batch

    def watched_columns(self: Any, *arguments: Any, **options: Any) -> Any:
        columns.add(tuple(options["columns"]))
        return iter_batches(self, *arguments, **options)

    read, iter_batches, real = row_groups._Parquet.read, pq.ParquetFile.iter_batches, state_rows.hashes
    monkeypatch.setattr(row_groups._Parquet, "read", watched_read)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched_columns)
    monkeypatch.setattr(state_rows, "hashes", lambda keys: np.array(real(keys)).view(Watched).copy())
    monkeypatch.setattr(state_rows, "AT_ONCE", at_once)
    problems = list[Finding]()
    found = state_rows.read_keys(source, [KEY], problems)
    assert (found.rows, found.doubled, problems) == (20_000, 19_000, [])
    assert found.hash == 20 * hash_of(range(1_000)) % 2**64
    assert columns == {(KEY,)}
    assert batches.most <= state_rows.READERS * 2 * 250
    assert numbers.most <= 1.25 * at_once + state_rows.READERS * 4 * 250


def test_a_file_that_is_lost_between_two_passes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, problems = many_keys(tmp_path, 100, 1), list[Finding]()
    monkeypatch.setattr(state_rows, "AT_ONCE", 50)
    opened = list[str]()

    def losing(table: Any, file: DataFile, key: Any) -> Any:
        opened.append(file.path)
        if len(opened) == 2:
            Path(file.path.removeprefix("file://")).unlink()
        return open_file(table, file, key)

    open_file = state_rows.open_file
    monkeypatch.setattr(state_rows, "open_file", losing)
    state_rows.read_keys(source, [KEY], problems)
    assert [problem.flaw for problem in problems] == [Flaw.FILE_LOST]


def test_a_timestamp_is_the_same_in_each_unit_and_beyond_the_year_9999() -> None:
    us = pa.array([1_767_225_600_000_000, 1_767_225_600_000_000_000, None], pa.timestamp("us", "UTC"))
    assert _comparable(us).to_pylist() == [1_767_225_600_000_000, 1_767_225_600_000_000_000, None]
    for unit in ("ms", "ns"):
        assert _comparable(us[:1].cast(pa.timestamp(unit, "UTC"))).to_pylist() == [1_767_225_600_000_000]
    assert _comparable(pa.array([5_000_000], pa.date32())).to_pylist() == [5_000_000]
    assert _comparable(pa.array(["a"])).to_pylist() == ["a"]
