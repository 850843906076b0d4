"""The `MERGE` that puts a batch of changes into a table, with the settings that suit it, and as it is usually written."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.upsert.resolver_protocol import IS_DELETE

MERGE_SETTINGS = {"spark.sql.adaptive.enabled": "true", "spark.sql.shuffle.partitions": "4"}
"""The settings that suit a `MERGE` best on few cores."""
RECORDS = 10_000
"""Of a batch: `maxOffsetsPerTrigger` in many an example."""


def merge_statement(table: str, batch: str, columns: Sequence[str], *, key: str, is_delete: str) -> str:
    """Return the statement. `batch` has the columns of the table and `is_delete`, and each `key` once."""
    sets = ", ".join(f"t.{column} = s.{column}" for column in columns)
    values = ", ".join(f"s.{column}" for column in columns)
    return (
        f"MERGE INTO {table} t USING {batch} s ON t.{key} = s.{key} "
        f"WHEN MATCHED AND s.{is_delete} THEN DELETE WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.{is_delete} THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )


def staged_merge(spark: SparkSession, table: str, changes: DataFrame, count: int, columns: Sequence[str]) -> None:
    """Put so many changes into a table by batches of `RECORDS`; each is staged, counted, merged, and the table is counted.

    Spark has its default settings. Records of a key come once, so any division into batches gives the same rows.
    """
    batches, staging = max(round(count / RECORDS), 1), f"{table}_staging"
    statement = merge_statement(table, staging, columns, key="id", is_delete=IS_DELETE)
    for number in range(batches):
        batch = changes.where(F.pmod(F.hash("id"), F.lit(batches)) == number)
        batch.count()
        batch.writeTo(staging).using("iceberg").createOrReplace()
        spark.sql(statement)
        spark.table(table).count()
    spark.sql(f"DROP TABLE {staging} PURGE")
