"""Read all pages of files, and compare them with the checksums that their writers put there.

Parquet has a CRC-32 for each page if its writer stores one: Spark and Iceberg do, PyArrow does not by default. A deletion vector
has one, too. Headers of pages, statistics, page indexes, Bloom filters and footers have none. Of footers, the ids and names of
columns are compared with those of the table's schemas: an engine reads a column that it does not find there as null.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frazil.audit.files.file_scan import Source, noted
from frazil.audit.finding import Finding
from frazil.lake.read.catalog_errors import translated_errors
from frazil.lake.read.data_files import READERS, each
from frazil.lake.read.row_groups import BATCH, BUFFER

LINEAGE = {2147483540: "_row_id", 2147483539: "_last_updated_sequence_number"}
"""Reserved columns that engines write into data files of format version 3 (Iceberg, "Reserved Field IDs")."""
BATCH_BYTES = 64 * 1024 * 1024
"""Bytes of rows that are decoded at a time, about."""

_MAGIC = b"\xd1\xd3\x39\x64"
_I32 = 0x15
"""A 32-bit number whose field follows the one before it, in Thrift's compact protocol."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The findings of files, and the files without checksums, in which a changed byte may be unseen."""

    findings: tuple[Finding, ...] = ()
    unchecked: tuple[str, ...] = ()


def read_pages(source: Source, remembered: Sequence[str] = ()) -> Pages:
    """Read all columns of a table's data and delete files, and of the files of its `remembered` deletes."""
    formats = {file.path: file.format for file in source.files if file.path not in source.altered}
    formats |= {d.file_path: str(d.file_format.value) for file in source.files for d in file.deletes}
    formats |= dict.fromkeys(remembered, "PARQUET")
    problems, data = list[Finding](), {file.path for file in source.files}
    columns = Columns.of(source.table.iceberg.metadata)

    def has_checksums(path: str) -> bool:
        import pyarrow as pa

        with noted(source, path, problems):
            with translated_errors(path):
                stream = source.table.iceberg.io.new_input(path).open()
            with stream:
                if formats[path].upper() == "PUFFIN":
                    check_vectors(stream.read())
                    return True
                try:
                    return formats[path].upper() == "PARQUET" and _read_parquet(
                        stream, columns if path in data else None
                    )
                except pa.ArrowNotImplementedError:  # a type or an encoding that Arrow does not read
                    return False
        return True  # what is wrong with it is in `problems`

    paths = list(formats)
    found = list(each(has_checksums, paths, parallel=READERS))
    return Pages(tuple(problems), tuple(path for path, checked in zip(paths, found, strict=True) if not checked))


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields that a table has had: its last id, and names by id, as Parquet files have them.

    Names are None if another engine removed schemas from the metadata: files of these may have any.
    """

    last: int
    names: Mapping[int, set[str]] | None

    @classmethod
    def of(cls, metadata: Any) -> Columns:
        """Return the fields of all schemas in a table's metadata."""
        from pyiceberg.schema import index_by_id, make_compatible_name

        if {schema.schema_id for schema in metadata.schemas} != set(range(len(metadata.schemas))):
            return cls(metadata.last_column_id, None)
        found: dict[int, set[str]] = {}
        for schema in metadata.schemas:
            for number, field in index_by_id(schema).items():
                found.setdefault(number, set()).update((field.name, make_compatible_name(field.name)))
        return cls(metadata.last_column_id, found)

    def check(self, fields: Sequence[Any]) -> None:
        """Raise `ValueError` if Arrow fields of a file have an id twice, or one that the table never had by that name.

        Engines differ in writing letters that Avro forbids: a name with such letters is compared with other columns' only.
        """
        seen = set[int]()
        for number, name in _identified(fields):
            if number in seen or not (self._may_have(number, name) or LINEAGE.get(number) == name):
                raise ValueError(f"its footer has a column {name} with id {number}, which the table never had")
            seen.add(number)

    def _may_have(self, number: int, name: str) -> bool:
        if self.names is None:
            return number <= self.last
        known = self.names.get(number, set())
        is_sure = all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", one) for one in known)
        return name in known or not (is_sure or any(name in names for names in self.names.values()))


def _identified(fields: Sequence[Any]) -> Iterator[tuple[int, str]]:
    for field in fields:
        if number := (field.metadata or {}).get(b"PARQUET:field_id"):
            yield int(number), field.name
        yield from _identified([field.type.field(index) for index in range(field.type.num_fields)])


def _read_parquet(stream: Any, columns: Columns | None) -> bool:
    """Decode all columns, comparing checksums, and those of a data file with `columns`; return whether pages have checksums."""
    import pyarrow.parquet as pq

    parquet: Any = pq.ParquetFile(stream, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)
    if columns is not None:
        columns.check(list(parquet.schema_arrow))
    groups = [parquet.metadata.row_group(index) for index in range(parquet.num_row_groups)]
    for index, group in enumerate(groups):
        rows = max(1, min(BATCH, BATCH_BYTES * group.num_rows // max(1, group.total_byte_size)))
        for _ in parquet.iter_batches(rows, row_groups=[index], use_threads=False):
            pass
    if not groups or not groups[0].num_columns:
        return True
    first = groups[0].column(0)
    stream.seek(first.dictionary_page_offset if first.has_dictionary_page else first.data_page_offset)
    return is_with_checksum(stream.read(32))


def is_with_checksum(header: bytes) -> bool:
    """Return whether the header of a page has a checksum: it is the fourth field, and optional; three numbers come before it."""
    at = 0
    for _ in range(3):
        if header[at : at + 1] != bytes([_I32]):
            return False
        at += 1
        while header[at] & 0x80:
            at += 1
        at += 1
    return header[at : at + 1] == bytes([_I32])


def check_vectors(payload: bytes) -> None:
    """Compare the deletion vectors of a Puffin file with their checksums. Raises `ValueError`."""
    from pyiceberg.table.puffin import PuffinFile

    puffin = PuffinFile(payload)
    for blob in puffin.footer.blobs:
        vector = puffin.get_blob_payload(blob)
        body, checksum = vector[4:-4], int.from_bytes(vector[-4:], "big")
        if int.from_bytes(vector[:4], "big") != len(body) or body[:4] != _MAGIC or zlib.crc32(body) != checksum:
            raise ValueError("a deletion vector differs from its checksum")
