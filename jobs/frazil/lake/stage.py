"""Staging: write rows to data files that no snapshot refers to.

The files are written by Iceberg's own Spark writer through the catalog that its rewrite procedures use
(`SparkRewriteTableCatalog`), which hands the files over instead of committing them. Without a commit they are
orphans, and orphan removal deletes them after days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.schemas.iceberg import field_ids

CATALOG = "staged"
OPTIONS = {
    "write-format": "parquet",
    "use-table-distribution-and-ordering": "false",
    "fanout-enabled": "true",
    "check-nullability": "false",
}
"""Options of every write: the format, and how rows are dealt to files and ordered, whatever properties other engines set."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Data files in no snapshot, and the table they fit: publishing checks that it still is that table.

    `at` is when staging began, in seconds since 1970, by the driver's clock.
    """

    table: str
    table_uuid: str
    field_ids: dict[str, int]
    files: tuple[Java, ...]
    rows: int
    bytes: int
    at: float
    documents: tuple[dict[str, Any], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to append."""
        return not self.files and not self.documents


def stage(
    iceberg: Iceberg, table: str, rows: DataFrame, *, unique_id: str, at: float, sort: Sequence[Column] = ()
) -> Staged:
    """Write `rows`, whose columns are the table's, to data files of `table`.

    `sort` orders rows within a task's files only: a global order would run the plan twice to sample it. `unique_id` is an
    id that no other staging of this driver has.
    """
    target = iceberg.load(table)
    files = write_files(iceberg, target, rows.sortWithinPartitions(*sort) if sort else rows, unique_id=unique_id)
    return Staged(
        table=table,
        table_uuid=str(target.uuid()),
        field_ids=field_ids(iceberg.schema_json(target)),
        files=files,
        rows=sum(f.recordCount() for f in files),
        bytes=sum(f.fileSizeInBytes() for f in files),
        at=at,
    )


def write_files(iceberg: Iceberg, target: Java, rows: DataFrame, *, unique_id: str) -> tuple[Java, ...]:
    """Write `rows` to data files of a loaded table, which no snapshot refers to; return these."""
    cache, coordinator = iceberg.table_cache(), iceberg.coordinator()
    cache.add(unique_id, target)
    try:
        rows.writeTo(f"{CATALOG}.`{unique_id}`").options(**OPTIONS).append()
        return items(coordinator.fetchNewFiles(target, unique_id))
    finally:
        cache.remove(unique_id)
        coordinator.clearRewrite(target, unique_id)


def empty_commit(iceberg: Iceberg, table: str, *, at: float) -> Staged:
    """Return a staged batch without rows: its commit still moves the offsets."""
    target = iceberg.load(table)
    return Staged(table, str(target.uuid()), field_ids(iceberg.schema_json(target)), (), 0, 0, at)
