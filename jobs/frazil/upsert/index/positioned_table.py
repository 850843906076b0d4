"""A table in no catalog, through which Spark reads data files of a table with the path and the position of each row.

Spark gives no positions of rows that it reads by scan tasks from a table of format version 3. So this one has version 2. The scan
tasks bring the deletes, deletion vectors included, and columns are found by their field ids, so what is read is the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import ICEBERG, Java

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
    string = classes.load("java.lang.String")
    metadata = classes.static("TableMetadataParser", "fromJson", (string, json.dumps(document)))
    operations = classes.new(
        "StaticTableOperations",
        (classes.load(ICEBERG + "TableMetadata"), metadata),
        (classes.load(ICEBERG + "io.FileIO"), table.io()),
    )
    return classes.new(
        "BaseTable", (classes.load(ICEBERG + "TableOperations"), operations), (string, f"{table.name()}.positioned")
    )
