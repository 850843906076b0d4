"""The number of live rows by manifests: deletes that name rows twice, rows that are not there, and files that are gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.typedef import Record

from frazil.audit.finding import Finding, Flaw
from frazil.audit.snapshot_files import files_of
from frazil.audit.state_rows import StateRows, by_manifest, read_keys
from frazil.audit.verify import FLAT
from frazil.audit.window import Role
from frazil.clients.secrets import Secrets
from frazil.lake.read.stored_tables import Lake
from tests.audit.audited_table import Landed

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
