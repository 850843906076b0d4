"""Read the keys of a small data file in the driver, which costs less than a Spark job."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from frazil.lake.delete_files import position_deletes
from frazil.lake.java_classes import Java, items
from frazil.upsert.key_hash import hashes
from frazil.upsert.key_index.index import NOWHERE, KeyedRows

if TYPE_CHECKING:
    import pyarrow as pa

    from frazil.upsert.key_index.read_keys import KeyColumns

MOST_FILES, MOST_DELETES, MOST_BYTES = 8, 4, 1 << 20
"""So many data files, one after the other, so many delete files of each, and so large a file are read in the driver."""
_ID = b"PARQUET:field_id"


def read_here(table: Java, path: str, task: Java, columns: KeyColumns) -> KeyedRows | None:
    """Return the live rows of the data file that a scan task of the loaded `table` reads, but for those without a key.

    None if Spark has to read it: it is large, or no Parquet, or a column has no id or another type, or its deletes are not named
    by a few small files.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    deleted = None if columns.until or not _is_small(task.file()) else _deleted(table, path, task)
    if deleted is None:
        return None
    with closing(table.io().newInputFile(path).newStream()) as stream:
        payload = pa.BufferReader(bytes(stream.readAllBytes()))
    fields = [*columns.key, *([columns.partition] if columns.partition is not None else [])]
    try:
        schema = pq.read_schema(payload)
        named = {int(of.metadata[_ID]): of for of in schema if of.metadata and _ID in of.metadata}
        found = [named.get(field["id"]) for field in fields]
        if any(
            of is None or "." in of.name or not _is(of.type, field) for of, field in zip(found, fields, strict=True)
        ):
            return None
        names = [of.name for of in found if of is not None]
        read = pq.read_table(payload, columns=names).select(names)
    except (pa.ArrowException, OSError):  # Spark says what is wrong with it
        return None
    if read.num_rows != int(task.file().recordCount()):
        return None
    keys = [read[name].combine_chunks() for name in names[: len(columns.key)]]
    there: npt.NDArray[np.bool_] = np.logical_and.reduce(
        [key.is_valid().to_numpy(zero_copy_only=False) for key in keys]
    )
    if not there.all() and all(field["required"] for field in columns.key):
        return None
    there[deleted[deleted < len(there)]] = False
    keys, count = [key.filter(pa.array(there)) for key in keys], int(there.sum())
    partition = np.full(count, NOWHERE, np.int32)
    if columns.partition is not None:
        partition = read[names[-1]].fill_null(NOWHERE).to_numpy()[there]
    return KeyedRows(
        [path],
        hashes(keys),
        hashes(keys, is_second=True),
        np.zeros(count, np.int64),
        np.flatnonzero(there),
        partition,
    )


def _is_small(file: Java) -> bool:
    return int(file.fileSizeInBytes()) <= MOST_BYTES and str(file.format()) == "PARQUET"


def _deleted(table: Java, path: str, task: Java) -> npt.NDArray[np.int64] | None:
    """Return the positions of a data file that its delete files name; None if they are not read here."""
    found = [np.empty(0, np.int64)]
    for number, delete in enumerate(items(task.deletes())):
        if number == MOST_DELETES or str(delete.content()) != "POSITION_DELETES" or not _is_small(delete):
            return None
        named = position_deletes.read(table, str(delete.location()), {path})
        if named is None:
            return None
        found.append(named.get(path, found[0]))
    return np.concatenate(found)


def _is(kind: pa.DataType, field: Mapping[str, Any]) -> bool:
    """Return whether Parquet's values have the type of a table's column, or one that hashes alike."""
    import pyarrow as pa

    of = str(field["type"])
    if of.startswith("decimal"):
        return bool(pa.types.is_decimal128(kind)) and of.endswith(f", {kind.scale})")
    types = {
        "int": (pa.int32(), pa.int64()),
        "long": (pa.int32(), pa.int64()),
        "boolean": (pa.bool_(),),
        "date": (pa.date32(),),
        "timestamp": (pa.timestamp("us"),),
        "timestamptz": (pa.timestamp("us", "UTC"),),
        "string": (pa.string(),),
        "binary": (pa.binary(),),
    }
    return kind in types.get(of, ())
