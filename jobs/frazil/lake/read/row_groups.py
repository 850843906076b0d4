"""Read columns of a data file one row group at a time, in batches of a bounded size.

Row groups whose statistics say that they have none of the rows that are wanted need not be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from frazil.lake.read.catalog_errors import translated_errors
from frazil.lake.read.data_files import Bounds, DataFile, field_ids
from frazil.lake.read.scan import batches, flattened
from frazil.lake.read.stored_tables import StoredTable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

BATCH = 131_072
"""Rows that are decoded at a time."""

BUFFER = 4 * 1024 * 1024
"""Bytes that are asked of the object store at a time, for each file that is read."""

KEPT_DELETES = 100_000
"""Positions of a delete file up to which it is kept for the next data file."""

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Consecutive rows of a file. `bounds` are what the file itself states of the columns, as far as it does."""

    index: int
    first_row: int
    rows: int
    bounds: Mapping[str, Bounds] = field(default_factory=dict)


class OpenFile:
    """An open data file. `rows` is what its own footer counts, deleted ones too; None if it does not say."""

    def __init__(self, groups: Sequence[RowGroup], rows: int | None) -> None:
        self.groups, self.rows = tuple(groups), rows

    def read(self, group: RowGroup) -> Iterator[pa.RecordBatch]:
        """Return the columns of a row group, without deleted rows. Raises `pyarrow.ArrowInvalid`, or `OSError`."""
        raise NotImplementedError


@contextmanager
def open_file(table: StoredTable, file: DataFile, columns: Sequence[str]) -> Iterator[OpenFile]:
    """Open a data file to read `columns`; nested ones are named with dots.

    Raises `FileNotFoundError`, and `pyarrow.ArrowInvalid` for a file that is not what it was.
    """
    if file.format != "PARQUET":
        yield _Other(table, file, columns)
        return
    import pyarrow.parquet as pq

    with translated_errors(file.path):
        stream = table.iceberg.io.new_input(file.path).open()
    with stream:
        parquet: Any = pq.ParquetFile(stream, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)
        ids = field_ids(table, columns)
        paths = _paths(parquet.schema_arrow)
        if any(number not in paths for number, _ in ids.values()):
            yield _Other(table, file, columns)
        else:
            yield _Parquet(parquet, {name: paths[ids[name][0]] for name in columns}, _deleted(table, file))


class _Other(OpenFile):
    """A file that PyIceberg reads as one piece: not Parquet, or columns without ids."""

    def __init__(self, table: StoredTable, file: DataFile, columns: Sequence[str]) -> None:
        super().__init__([RowGroup(0, 0, file.rows)], None)
        self._table, self._file, self._columns = table, file, columns

    def read(self, group: RowGroup) -> Iterator[pa.RecordBatch]:
        yield from batches(self._table, self._file, self._columns)


class _Parquet(OpenFile):
    """A Parquet file whose columns have Iceberg's ids. `deleted` are positions of rows that delete files take away."""

    def __init__(self, parquet: Any, paths: Mapping[str, str], deleted: npt.NDArray[np.int64] | None) -> None:
        self._parquet, self._paths, self._deleted = parquet, paths, deleted
        groups, first = [], 0
        leaves = {parquet.schema.column(i).path: i for i in range(len(parquet.schema))}
        for index in range(parquet.num_row_groups):
            meta = parquet.metadata.row_group(index)
            bounds = {name: _bounds(meta.column(leaves[path])) for name, path in paths.items() if path in leaves}
            groups.append(RowGroup(index, first, meta.num_rows, bounds))
            first += meta.num_rows
        super().__init__(groups, parquet.metadata.num_rows)

    def read(self, group: RowGroup) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow as pa

        at = group.first_row
        for batch in self._parquet.iter_batches(
            BATCH, row_groups=[group.index], columns=list(self._paths.values()), use_threads=False
        ):
            found = flattened(batch, self._paths)
            if self._deleted is not None:
                begin, end = np.searchsorted(self._deleted, [at, at + len(batch)])
                kept = np.ones(len(batch), np.bool_)
                kept[self._deleted[begin:end] - at] = False
                found = found.filter(pa.array(kept))
            at += len(batch)
            yield found


def _bounds(column: Any) -> Bounds:
    found = column.statistics
    if found is None:
        return Bounds(None, None, None)
    nulls = found.null_count if found.has_null_count else None
    return Bounds(found.min, found.max, nulls) if found.has_min_max else Bounds(None, None, nulls)


def _paths(schema: pa.Schema) -> dict[int, str]:
    """Return the path of each column of a file, by its Iceberg id."""
    found: dict[int, str] = {}

    def walk(fields: Any, before: str) -> None:
        import pyarrow as pa

        for one in fields:
            if one.metadata and _FIELD_ID in one.metadata:
                found[int(one.metadata[_FIELD_ID])] = before + one.name
            if pa.types.is_struct(one.type):
                walk([one.type.field(i) for i in range(one.type.num_fields)], f"{before}{one.name}.")

    walk(schema, "")
    return found


def _deleted(table: StoredTable, file: DataFile) -> npt.NDArray[np.int64] | None:
    """Return the positions that delete files take away, in order; None if no delete file applies."""
    if not file.deletes:
        return None
    import numpy as np

    found = []
    for deletes in file.deletes:
        is_small = deletes.record_count <= KEPT_DELETES
        by_file = _small_deletes(table, deletes) if is_small else deletes_by_file(table, deletes)
        if file.path in by_file:
            found.append(np.asarray(by_file[file.path].to_numpy(), np.int64))
    together: npt.NDArray[np.int64] = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
    return together


def deletes_by_file(table: StoredTable, deletes: Any) -> Mapping[str, Any]:
    """Return the positions that a delete file takes away, by data file."""
    from pyiceberg.io.pyarrow import _read_deletes

    with translated_errors(deletes.file_path):
        return _read_deletes(table.iceberg.io, deletes)


_small_deletes = lru_cache(maxsize=16)(deletes_by_file)
"""One file of deletes is about many data files, which are read one after the other."""
