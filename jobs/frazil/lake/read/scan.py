"""Read columns of rows: of one data file, or of those rows of a table that meet conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from frazil.errors import CatalogUnavailable
from frazil.lake.read.catalog_errors import translated_errors
from frazil.lake.read.data_files import DataFile
from frazil.lake.read.stored_tables import StoredTable

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A condition on one column: `equal` to a value, `at_least` one, and `below` another, as far as these are given."""

    column: str
    equal: Any = None
    at_least: Any = None
    below: Any = None


def rows(table: StoredTable, columns: Sequence[str], conditions: Sequence[Where] = ()) -> Iterator[pa.RecordBatch]:
    """Yield columns of the rows that meet all conditions, in no order; files that cannot have such rows are not read."""
    from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan, Reference

    wanted: BooleanExpression = AlwaysTrue()
    for condition in conditions:
        name = Reference(condition.column)
        if condition.equal is not None:
            wanted &= EqualTo(term=name, value=_literal(condition.equal))
        if condition.at_least is not None:
            wanted &= GreaterThanOrEqual(term=name, value=_literal(condition.at_least))
        if condition.below is not None:
            wanted &= LessThan(term=name, value=_literal(condition.below))
    with translated_errors(f"table {table.identifier}"):
        try:
            yield from table.iceberg.scan(row_filter=wanted, selected_fields=tuple(columns)).to_arrow_batch_reader()
        except FileNotFoundError as error:
            raise CatalogUnavailable(
                f"a file of the table does not exist: {error}",
                where=f"table {table.identifier}",
                do="`frazil verify PIPELINE` lists what is lost",
            ) from None


def batches(table: StoredTable, file: DataFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of a file's rows, without deleted ones. A nested column is named with dots and becomes a column of
    its own.

    Raises `FileNotFoundError`, and `pyarrow.ArrowInvalid` for a file that is no longer what it was.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.manifest import DataFile as IcebergFile
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.table import FileScanTask

    found = IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.path,
        file_format=FileFormat(file.format),
        partition=file.partition,
        record_count=file.rows,
        file_size_in_bytes=file.bytes,
    )
    found.spec_id = file.spec_id
    iceberg = table.iceberg
    scan = ArrowScan(iceberg.metadata, iceberg.io, iceberg.schema().select(*columns), AlwaysTrue())
    with translated_errors(file.path):
        for batch in scan.to_record_batches([FileScanTask(found, delete_files=set(file.deletes))]):
            yield flattened(batch, {name: name for name in columns})


def flattened(batch: pa.RecordBatch, paths: Mapping[str, str]) -> pa.RecordBatch:
    """Return columns by name, each from its path in the batch, which has dots where it is nested."""
    import pyarrow as pa
    import pyarrow.compute as pc

    steps = (path.split(".") for path in paths.values())
    arrays = [reduce(pc.struct_field, inner, batch.column(first)) for first, *inner in steps]
    return pa.RecordBatch.from_arrays(arrays, names=list(paths))


def _literal(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
