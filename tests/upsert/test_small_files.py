"""The keys of small data files that the driver reads are those that Spark reads."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.lake.delete_files.java_writers import tasks
from frazil.lake.iceberg_java import Iceberg
from frazil.upsert.key_index import read_keys, small_files
from frazil.upsert.key_index.read_keys import KeyColumns, keyed_rows
from frazil.upsert.key_index.small_files import read_here
from tests.support.variants import first_short
from tests.upsert.test_key_hash import COLUMNS

pytestmark = pytest.mark.spark

NAMES = {
    "string": "string",
    "int": "int",
    "decimal(30,9)": "decimal",
    "bigint": "long",
    "date": "date",
    "timestamp": "instant",
    "timestamp_ntz": "local time",
    "binary": "bytes",
    "boolean": "boolean",
}
KINDS = {kind: COLUMNS[name] for kind, name in NAMES.items()}


def rows_of(iceberg: Iceberg, table: str, by: str, monkeypatch: pytest.MonkeyPatch) -> tuple[set[Any], int]:
    """Return the rows of a table's files as the driver or Spark reads them, and how many files the driver read."""
    loaded = iceberg.load(table)
    columns = KeyColumns.of(iceberg.schema_json(loaded), ["k", "text"], 0)
    assert columns is not None
    read = list[str]()

    def here(of: Any, path: str, *given: Any) -> Any:
        found = read_here(of, path, *given)
        read.extend([path] if found is not None else [])
        return found

    monkeypatch.setattr(read_keys, "read_here", here)
    monkeypatch.setattr(read_keys, "MOST_FILES", 8 if by == "driver" else -1)
    found = set()
    of_head = tasks(iceberg, loaded, loaded.currentSnapshot().snapshotId(), None)
    for some in keyed_rows(iceberg, loaded, of_head, columns, unique_id=f"{table}-{by}"):
        paths = [some.paths[number] for number in some.file]
        found |= set(
            zip(
                some.high.tolist(),
                some.low.tolist(),
                paths,
                some.position.tolist(),
                some.partition.tolist(),
                strict=True,
            )
        )
    return found, len(read)


@pytest.mark.parametrize("kind", first_short(KINDS, short=2))
@pytest.mark.parametrize("version", first_short((2, 3)))
def test_the_driver_reads_what_spark_reads(
    spark: SparkSession, iceberg: Iceberg, name: str, kind: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows without a key, and those that a delete file names, are no rows; Spark reads deletion vectors."""
    table = f"small.{name}"
    iceberg.create_namespace("small")
    properties = f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read'"
    spark.sql(
        f"CREATE TABLE lake.{table} (n bigint, k {kind}, text string, _kafka_partition int) USING iceberg "
        f"TBLPROPERTIES ({properties})"
    )
    for first in (0, 100):
        values = f"id, IF(id % 9 = 0, NULL, {KINDS[kind]}), concat('t', id), IF(id % 4 = 0, NULL, CAST(id % 3 AS int))"
        spark.sql(f"INSERT INTO lake.{table} SELECT /*+ COALESCE(1) */ {values} FROM range({first}, {first + 50})")
    spark.sql(f"DELETE FROM lake.{table} WHERE n IN (3, 4, 9, 103)")
    spark.sql(f"INSERT INTO lake.{table} SELECT /*+ COALESCE(1) */ {values} FROM range(200, 230)")
    by_driver, files = rows_of(iceberg, table, "driver", monkeypatch)
    by_spark, none = rows_of(iceberg, table, "spark", monkeypatch)
    assert (len(by_spark), none) == (130 - 14 - 3, 0)
    assert by_driver == by_spark
    assert files == (3 if version == 2 else 1)


def test_spark_reads_what_the_driver_may_not(
    spark: SparkSession, iceberg: Iceberg, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"small.{name}"
    iceberg.create_namespace("small")
    spark.sql(f"CREATE TABLE lake.{table} (n bigint, k string, text string, _kafka_partition int) USING iceberg")
    spark.sql(f"INSERT INTO lake.{table} SELECT id, CAST(id AS string), 't', 0 FROM range(0, 20, 1, 1)")
    spark.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.format.default' = 'orc')")
    spark.sql(f"INSERT INTO lake.{table} SELECT id, CAST(id AS string), 't', 0 FROM range(20, 40, 1, 1)")
    spark.sql(f"ALTER TABLE lake.{table} SET TBLPROPERTIES ('write.format.default' = 'parquet')")
    spark.sql(f"INSERT INTO lake.{table} SELECT id, uuid(), 't', 0 FROM range(40, 1040, 1, 1)")
    monkeypatch.setattr(small_files, "MOST_BYTES", 10_000)
    found, files = rows_of(iceberg, table, "driver", monkeypatch)
    assert found == rows_of(iceberg, table, "spark", monkeypatch)[0]
    assert (len(found), files) == (1040, 1)
