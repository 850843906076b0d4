"""Read the keys of data files, with the deletes that they have on a snapshot: hash, position and Kafka partition of each row.

Iceberg's scan tasks read the files for a table that is in no catalog and has only the columns that are needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.row_offsets import tasks_read
from frazil.upsert.key_hash import U64, hashes
from frazil.upsert.key_index.index import NOWHERE, KeyedRows
from frazil.upsert.key_index.small_files import MOST_FILES, read_here
from frazil.upsert.resolver_protocol import FILE, POSITION, key_hash

ROWS_AT_ONCE = 1_000_000
"""About so many rows are read by one Spark job: the driver takes 0.2 GB of memory for them. A larger data file is read at once."""
_PARTITION, _INGESTED_AT = "_kafka_partition", "_ingested_at"
_HIGH, _LOW, _OF_FILE = "high", "low", "file"


class RowsLacking(Exception):  # it says what happened
    """Other rows were read of a data file than it has."""


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The columns of a table that an index is made of, as Iceberg's JSON has them: the key's in their order.

    Rows that were staged up to `until`, microseconds since 1970, have no Kafka partition that counts.
    """

    key: tuple[Mapping[str, Any], ...]
    partition: Mapping[str, Any] | None
    ingested_at: Mapping[str, Any] | None
    until: int

    @classmethod
    def of(cls, schema: Mapping[str, Any], names: Sequence[str], until: int) -> KeyColumns | None:
        """Return the columns of a table's schema; None if it lacks one of the key's."""
        fields = {field["name"]: field for field in schema["fields"]}
        if not set(names) <= fields.keys():
            return None
        return cls(tuple(fields[n] for n in names), fields.get(_PARTITION), fields.get(_INGESTED_AT), until)

    @property
    def identity(self) -> tuple[object, ...]:
        """The ids of fields, and their types but for promotions: if they change, hashes and partitions are not comparable."""
        key = tuple((field["id"], _stable(field["type"])) for field in self.key)
        others = (field["id"] if field is not None else None for field in (self.partition, self.ingested_at))
        return key, *others, self.until


def _stable(kind: Any) -> str:
    if kind in ("int", "long"):
        return "long"
    return "decimal" + str(kind).rpartition(",")[2] if str(kind).startswith("decimal") else str(kind)


def keyed_rows(
    iceberg: Iceberg, table: Java, tasks: Mapping[str, Java], columns: KeyColumns, *, unique_id: str
) -> Iterator[KeyedRows]:
    """Yield the live rows of the data files that scan tasks of the loaded `table` read, some files at a time.

    Raises `RowsLacking`, and what Spark raises.
    """
    if len(tasks) <= MOST_FILES:
        by_driver = {path: one for path, task in tasks.items() if (one := read_here(table, path, task, columns))}
        yield from by_driver.values()
        tasks = {path: task for path, task in tasks.items() if path not in by_driver}
    if not tasks:
        return
    fields = {field["id"]: f"c{field['id']}" for field in _fields(columns)}
    needed = {field["id"]: {**field, "name": fields[field["id"]], "required": False} for field in _fields(columns)}
    here = positioned_table(iceberg, table, list(needed.values()))
    keys = [fields[field["id"]] for field in columns.key]
    for number, paths in enumerate(_grouped(tasks)):
        some = iceberg.classes.list_of(tasks[path] for path in paths)
        with tasks_read(iceberg, here, some, unique_id=f"{unique_id}-{number}") as rows:
            partition = F.lit(None).cast("int") if columns.partition is None else F.col(fields[columns.partition["id"]])
            if columns.until and columns.ingested_at is not None:
                at = F.unix_micros(F.col(fields[columns.ingested_at["id"]]))
                partition = F.when(at > columns.until, partition)
            elif columns.until:
                partition = F.lit(None).cast("int")
            is_there = reduce(Column.__and__, (F.col(key).isNotNull() for key in keys))
            read = rows.select(
                F.when(is_there, key_hash(rows, keys)).alias(_HIGH),
                key_hash(rows, keys, is_second=True).alias(_LOW),
                F.xxhash64(FILE).alias(_OF_FILE),  # a path for each row would be most of what is read
                F.col(POSITION),
                F.coalesce(partition, F.lit(NOWHERE)).alias(_PARTITION),
            ).toArrow()
        if nulls := read[_HIGH].null_count:
            if all(field["required"] for field in columns.key):
                raise RowsLacking(f"{nulls} keys were read as null")
            read = read.filter(read[_HIGH].is_valid())  # a join does not find them either
        found = KeyedRows(
            paths,
            read[_HIGH].to_numpy().view("u8"),
            read[_LOW].to_numpy().view("u8"),
            _numbers_of(paths, read[_OF_FILE].to_numpy().view("u8")),
            read[POSITION].to_numpy(),
            read[_PARTITION].to_numpy(),
        )
        _check(found, nulls, tasks)
        yield found


def _fields(columns: KeyColumns) -> list[Mapping[str, Any]]:
    return [field for field in (*columns.key, columns.partition, columns.ingested_at) if field is not None]


def _grouped(tasks: Mapping[str, Java]) -> Iterator[list[str]]:
    some, rows = list[str](), 0
    for path, task in tasks.items():
        count = int(task.file().recordCount())
        if some and rows + count > ROWS_AT_ONCE:
            yield some
            some, rows = [], 0
        some, rows = [*some, path], rows + count
    if some:
        yield some


def _numbers_of(paths: Sequence[str], found: U64) -> Any:
    """Return the number of each row's file, by the hash of its path."""
    import numpy as np
    import pyarrow as pa

    known = hashes([pa.array(paths, pa.string())])
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, found, sorter=order), len(paths) - 1)
    if len(np.unique(known)) < len(paths) or not (known[order[at]] == found).all():
        raise RowsLacking("the data files that rows are of are not known")
    return order[at]


def _check(found: KeyedRows, nulls: int, tasks: Mapping[str, Java]) -> None:
    """Raise `RowsLacking` if other rows were read of a data file than it has, or more are missing than its deletes name."""
    import numpy as np

    counts = np.bincount(found.file, minlength=len(found.paths))
    for path, count in zip(found.paths, counts, strict=True):
        rows, deletes = int(tasks[path].file().recordCount()), items(tasks[path].deletes())
        least = rows - nulls - sum(int(delete.recordCount()) for delete in deletes)
        if not least <= count <= rows:
            raise RowsLacking(f"{count} of {rows} keys were read of {path}")


_PROPERTIES = (
    "schema.name-mapping.default",  # gives columns of files without field ids their ids
    *(f"read.{of}.vectorization.{what}" for of in ("parquet", "orc") for what in ("enabled", "batch-size")),
)
"""The properties of the table that say how its files are read; how they are split is said by the scan tasks."""


def positioned_table(iceberg: Iceberg, table: Java, fields: Sequence[Mapping[str, Any]]) -> Java:
    """Return a table of these columns, as Iceberg's JSON has them, whose files are those of the loaded `table`."""
    classes, properties = iceberg.classes, table.properties()
    document = {
        "format-version": 2,
        "table-uuid": str(table.uuid()),
        "location": str(table.location()),
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": int(table.operations().current().lastColumnId()),
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": list(fields)}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {name: value for name in _PROPERTIES if (value := properties.get(name)) is not None},
        "snapshots": [],
    }
    metadata = classes.static("TableMetadataParser", "fromJson", ("java.lang.String", json.dumps(document)))
    operations = classes.new("StaticTableOperations", ("TableMetadata", metadata), ("io.FileIO", table.io()))
    name = ("java.lang.String", f"{table.name()}.positioned")
    return classes.new("BaseTable", ("TableOperations", operations), name)
