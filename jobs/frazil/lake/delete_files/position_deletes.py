"""Position delete files of version 2: Parquet files of paths and positions, read and made by the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import closing
from typing import Any

from frazil.lake.java_classes import Java

PATH_ID, POSITION_ID = 2147483546, 2147483545
"""Field ids of a position delete file (https://iceberg.apache.org/spec/#position-delete-files)."""
Positions = Mapping[str, Any]
"""Sorted positions by path of the data file, as arrays of NumPy."""


def read(table: Java, location: str, paths: Set[str] | None = None) -> dict[str, Any] | None:
    """Return the positions that a delete file names, by path of the data file; None if it is no such file.

    They are in the order of the file. Of `paths`, if given, only those are returned.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with closing(table.io().newInputFile(location).newStream()) as stream:
        payload = bytes(stream.readAllBytes())
    try:
        schema = pq.read_schema(pa.BufferReader(payload))
        path, position = (_name(schema, number) for number in (PATH_ID, POSITION_ID))
        if path is None or position is None:
            return None
        # Another engine may store the deleted rows next to their positions. A path is there once for each position.
        found = pq.read_table(pa.BufferReader(payload), columns=[path, position], read_dictionary=[path])
        named = _by_path(found.select([path, position]).rename_columns(["path", "position"]))
        return named if paths is None else {path: named[path] for path in named.keys() & paths}
    except (pa.ArrowException, OSError):  # the second if bytes cannot be decompressed
        return None


def payload(at: Positions, paths: Sequence[str]) -> bytes:
    """Return a Parquet file of the positions of sorted `paths`, sorted by path and position as the specification demands."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    def column(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
        return pa.field(name, kind, nullable=False, metadata={"PARQUET:field_id": str(field_id)})

    schema = pa.schema([column("file_path", pa.string(), PATH_ID), column("pos", pa.int64(), POSITION_ID)])
    # In chunks, as one array of text holds 2 GiB.
    names = pa.chunked_array([pa.repeat(pa.scalar(path), len(at[path])) for path in paths])
    positions = pa.array(np.concatenate([at[path] for path in paths]))
    sink = pa.BufferOutputStream()
    how = {"compression": "zstd", "use_dictionary": ["file_path"], "write_page_checksum": True}
    pq.write_table(pa.table([names, positions], schema=schema), sink, **how)
    return bytes(sink.getvalue().to_pybytes())


def _by_path(found: Any) -> dict[str, Any]:
    import numpy as np

    if not found.num_rows:
        return {}
    column = found["path"].unify_dictionaries().combine_chunks()
    codes, positions = column.indices.to_numpy(zero_copy_only=False), found["position"].to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    names = column.dictionary.to_pylist()
    parts = np.split(positions[order], starts[1:])
    return {str(names[codes[order[start]]]): part for start, part in zip(starts, parts, strict=True)}


def _name(schema: Any, number: int) -> str | None:
    """Return the column with this field id."""
    is_it = (f for f in schema if f.metadata and f.metadata.get(b"PARQUET:field_id") == str(number).encode())
    return next((str(field.name) for field in is_it), None)
