"""Deletes that other engines commit: positions of a data file, and values of a column, as Flink does."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.lake.delete_files.position_deletes import payload
from frazil.lake.java_classes import Java
from tests.support.keyed_table import KeyedTable


def delete_positions(table: KeyedTable, path: str, *positions: int) -> None:
    """Commit a delete file of version 2 that is of one data file, without a check of what others deleted."""
    body = payload({path: np.array(positions)}, [path])
    builder = _builder(table).ofPositionDeletes().withReferencedDataFile(path)
    _commit(table, builder, body, len(positions))


def delete_ids(table: KeyedTable, *ids: int) -> None:
    """Commit an equality delete file of ids."""
    kind = pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "1"})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([pa.array(ids)], schema=pa.schema([kind])), sink)
    gateway: Any = table.spark.sparkContext._gateway
    fields = gateway.new_array(gateway.jvm.int, 1)
    fields[0] = 1
    _commit(table, _builder(table).ofEqualityDeletes(fields), bytes(sink.getvalue().to_pybytes()), len(ids))


def _builder(table: KeyedTable) -> Java:
    classes, loaded = table.iceberg.classes, table.iceberg.load(table.name)
    spec = ("PartitionSpec", loaded.spec())
    return classes.static("FileMetadata", "deleteFileBuilder", spec)


def _commit(table: KeyedTable, builder: Java, body: bytes, rows: int) -> None:
    loaded = table.iceberg.load(table.name)
    location = f"{loaded.location()}/data/{uuid.uuid4().hex}.parquet"
    Path(urlparse(location).path).write_bytes(body)
    made = builder.withPath(location).withFileSizeInBytes(len(body)).withRecordCount(rows).build()
    table.is_alone = False
    loaded.newRowDelta().addDeletes(made).commit()
