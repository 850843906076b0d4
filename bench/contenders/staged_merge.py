"""Staging and `MERGE` as they are usually written: small batches, each counted before and after, with Spark's default settings."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.contenders.keyed_rows import NAMES
from bench.contenders.merge_text import merge_statement
from frazil.upsert.resolver_protocol import IS_DELETE

RECORDS = 10_000
"""Of a batch: `maxOffsetsPerTrigger` in many an example."""


def staged_merge(spark: SparkSession, table: str, changes: DataFrame, count: int) -> None:
    """Put so many changes into a table by batches of `RECORDS`; each is staged, counted, merged, and the table is counted.

    Records of a key come once, so any division into batches gives the same rows.
    """
    batches, staging = max(round(count / RECORDS), 1), f"{table}_staging"
    statement = merge_statement(table, staging, NAMES, key="id", is_delete=IS_DELETE)
    for number in range(batches):
        batch = changes.where(F.pmod(F.hash("id"), F.lit(batches)) == number)
        batch.count()
        batch.writeTo(staging).using("iceberg").createOrReplace()
        spark.sql(statement)
        spark.table(table).count()
    spark.sql(f"DROP TABLE {staging} PURGE")
