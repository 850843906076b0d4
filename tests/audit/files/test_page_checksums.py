"""Damages that leave a file's size as it was: what a deep verification finds in pages and vectors, and what has no checksum."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from frazil.audit.files.count import files_of
from frazil.audit.files.file_scan import Columns as PlaceColumns
from frazil.audit.files.file_scan import Source
from frazil.audit.files.page_checksums import Columns, check_vectors, read_pages
from frazil.audit.files.window import Role
from frazil.audit.finding import Depth, Flaw, Outcome
from frazil.errors import CatalogUnavailable
from tests.audit.accounts.test_state_rows import delete_file
from tests.audit.audited_table import Landed, path

FLAT = PlaceColumns("_kafka_topic", "_kafka_partition", "_kafka_offset")


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Landed:
    """A table whose writer stores checksums, as Spark and Iceberg do."""
    writer = pq.ParquetWriter

    def with_checksums(*files: Any, **options: Any) -> pq.ParquetWriter:
        return writer(*files, **{**options, "write_page_checksum": True})

    for module in ("pyarrow.parquet", "pyarrow.parquet.core"):
        monkeypatch.setattr(f"{module}.ParquetWriter", with_checksums)
    lake = Landed(tmp_path, partitions=1)
    lake.land({0: 40}, rejected={(0, 7): b"\x00bad"})
    return lake


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0x10
    file.write_bytes(bytes(content))


def ends_of_pages(file: Path) -> list[int]:
    """The last byte of each column, which is of a page."""
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    starts = [c.dictionary_page_offset if c.has_dictionary_page else c.data_page_offset for c in columns]
    return [start + c.total_compressed_size - 1 for start, c in zip(starts, columns, strict=True)]


@pytest.mark.parametrize("is_dead", [False, True])
def test_a_changed_byte_in_a_page_of_any_column_is_found(checked: Landed, *, is_dead: bool) -> None:
    (file,) = checked.paths(checked.dead if is_dead else checked.table)
    whole = checked.verify(deep=True)
    assert (whole.outcome, whole.depth, whole.cautions) == (Outcome.PROVEN, Depth.VALUES_READ, ())
    for at in ends_of_pages(file):
        flip(file, at)
        found = checked.verify(deep=True)
        damaged = [one.what for one in found.findings if one.flaw is Flaw.FILE_UNREADABLE]
        assert len(damaged) == 1, at
        assert str(file) in damaged[0]
        flip(file, at)


def test_files_without_checksums_are_said(landed: Landed) -> None:
    found = landed.verify(deep=True)
    assert found.outcome is Outcome.PROVEN
    assert [text.split(", so")[0] for text in found.cautions] == [
        "table shop.orders: 4 files have no checksums",
        "table shop.orders__dead_letters: 1 files have no checksums",
    ]


def test_a_footer_has_no_checksum(checked: Landed) -> None:
    """So a changed byte there may be unseen, as docs/exactly-once.md says: here it is the name of the writer."""
    (file,) = checked.paths()
    flip(file, file.read_bytes().rindex(b"parquet-cpp") + 2)
    assert checked.verify(deep=True).outcome is Outcome.PROVEN


def test_columns_of_a_footer_are_those_of_the_table(checked: Landed) -> None:
    """An engine reads a column whose id it does not find as null, and one with another id as that column."""
    table = source_of(checked)
    names = {1: {"id"}, 2: {"s"}, 4: {"element"}, 3: {"tags"}}

    def field(name: str, number: int, of: pa.DataType | None = None) -> pa.Field:
        return pa.field(name, of or pa.int64(), metadata={"PARQUET:field_id": str(number)})

    right = [field("id", 1), field("tags", 3, pa.list_(field("element", 4))), pa.field("own", pa.int64())]
    Columns(9, names).check([*right, field("_row_id", 2147483540)])  # of a compaction, in version 3
    for wrong in (
        [field("id", 10)],
        [field("id", 2)],
        [field("id", 2147483540)],
        [field("id", 1), field("id", 1)],
        [field("tags", 3, pa.list_(field("element", 9)))],
    ):
        with pytest.raises(ValueError, match="which the table never had"):
            Columns(9, names).check(wrong)
    Columns(4, {1: {"m²"}}).check([field("m_xB2", 1)])  # as Java writes it
    after_cleaning = Columns(4, None)
    after_cleaning.check([field("earlier_name", 1)])
    with pytest.raises(ValueError, match="which the table never had"):
        after_cleaning.check([field("id", 5)])
    (file,) = checked.paths()
    content = file.read_bytes()
    assert not read_pages(table).findings
    file.write_bytes(content.replace(b"_kafka_offset", b"_kafka_offsex"))
    assert [one.flaw for one in read_pages(table).findings] == [Flaw.FILE_UNREADABLE]


@pytest.mark.parametrize("kind", ["manifest list", "manifest", "data file"])
def test_a_changed_byte_anywhere_is_found_or_unseen_and_ends_no_verification(checked: Landed, kind: str) -> None:
    """What has no checksum may be unseen; whatever is thrown at damaged bytes becomes a finding of that file."""
    head = checked.table.current_snapshot()
    assert head is not None
    file = {
        "manifest list": path(head.manifest_list),
        "manifest": path(head.manifests(checked.table.io)[0].manifest_path),
        "data file": checked.paths()[0],
    }[kind]
    content, drawn = file.read_bytes(), random.Random(7)
    flaws = Counter[Flaw]()
    for at in drawn.sample(range(len(content)), 40):
        flip(file, at)
        found = checked.verify(deep=True)
        flaws.update({one.flaw for one in found.findings})
        assert found.outcome is not Outcome.UNCHECKED
        file.write_bytes(content)
    assert flaws[Flaw.FILE_UNREADABLE if kind == "data file" else Flaw.MANIFEST_LOST] >= 10, flaws


def test_a_damaged_metadata_file_is_named_with_a_way_out(checked: Landed) -> None:
    path(checked.table.metadata_location).write_text('{"format-version": 2')
    with pytest.raises(CatalogUnavailable, match="metadata file cannot be read: .* Restore it"):
        checked.verify()


def source_of(lake: Landed) -> Source:
    table = lake.lake.table(lake.pipeline.table.identifier)
    assert table is not None
    return files_of(Role.TABLE, table, table.head, FLAT)[0]


def test_files_of_deletes_and_of_remembered_deletes_are_read(checked: Landed, tmp_path: Path) -> None:
    source = source_of(checked)
    deletes = delete_file(tmp_path, 0, [(source.files[0].path, position) for position in range(9)])
    remembered = tmp_path / "deletes-1.parquet"
    delete_file(tmp_path, 1, [("key", 1)])
    source = replace(source, files=(replace(source.files[0], deletes=(deletes,)),))
    assert read_pages(source, [f"file://{remembered}"]).findings == ()
    for file in (tmp_path / "deletes-0.parquet", remembered):
        flip(file, ends_of_pages(file)[-1])
    found = read_pages(source, [f"file://{remembered}"])
    assert [one.flaw for one in found.findings] == [Flaw.FILE_UNREADABLE] * 2


def vector_file(positions: list[int]) -> tuple[bytes, range]:
    """A Puffin file with one deletion vector; and where that is."""
    body = b"\xd1\xd3\x39\x64" + (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + BitMap(positions).serialize()
    blob = len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    named = {"type": "deletion-vector-v1", "fields": [], "snapshot-id": 1, "sequence-number": 1, "offset": 4}
    footer = json.dumps(
        {"blobs": [{**named, "length": len(blob), "properties": {"referenced-data-file": "f"}}]}
    ).encode()
    end = len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    return b"PFA1" + blob + b"PFA1" + footer + end, range(4, 4 + len(blob))


def test_a_changed_byte_of_a_deletion_vector_is_found() -> None:
    content, vector = vector_file([1, 5, 70_000])
    check_vectors(content)
    for at in vector:
        with pytest.raises(ValueError, match="differs from its checksum"):
            check_vectors(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
