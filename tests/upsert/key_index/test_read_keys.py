"""A table in no catalog reads files as the table does that has them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.lake.iceberg_java import Iceberg
from frazil.upsert.key_index.read_keys import positioned_table

pytestmark = pytest.mark.spark


def test_what_a_table_says_of_reads_holds_for_its_positions(spark: SparkSession, iceberg: Iceberg, name: str) -> None:
    """A user may have switched vectorised reads off because of a fault in them."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.positioned")
    spark.sql(
        f"CREATE TABLE lake.positioned.{name} (id INT) USING iceberg TBLPROPERTIES "
        "('format-version' = '3', 'read.parquet.vectorization.enabled' = 'false', 'comment' = 'of a user')"
    )
    table = iceberg.load(f"positioned.{name}")
    made = positioned_table(iceberg, table, iceberg.schema_json(table)["fields"])
    assert dict(made.properties()) == {"read.parquet.vectorization.enabled": "false"}
    assert made.operations().current().formatVersion() == 2
