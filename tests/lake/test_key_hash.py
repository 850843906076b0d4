"""The hash of a key without Spark is Spark's."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.lake.key_hash import hashes
from frazil.lake.spark_key_hash import key_hash

pytestmark = pytest.mark.spark

COLUMNS = {
    "int": "CAST(id * 7 - 300 AS int)",
    "long": "id * 1234567890123 - 5",
    "string": "repeat(CAST(id AS string), CAST(id % 40 AS int))",
    "letters": "concat('ä€', id, 'x')",
    "bytes": "unhex(repeat('0f', CAST(id % 70 AS int)))",
    "boolean": "id % 2 = 0",
    "date": "date_add(DATE'1969-12-01', CAST(id AS int))",
    "instant": "timestamp_micros(id * 86399999999 - 77)",
    "local time": "CAST(timestamp_micros(id * 86399999999 - 77) AS timestamp_ntz)",
    "decimal": "CAST(id AS decimal(30, 9)) / 8 - 3",
    "small decimal": "CAST(id / 1000 AS decimal(12, 10))",
}


@pytest.mark.parametrize("names", [*([name] for name in COLUMNS), ["int", "string", "date"], ["string", "letters"]])
def test_the_hash_is_that_of_spark(spark: SparkSession, names: list[str]) -> None:
    rows = spark.range(200).select(*(F.expr(COLUMNS[name]).alias(name.replace(" ", "_")) for name in names))
    keys = [name.replace(" ", "_") for name in names]
    found = rows.select(*keys, key_hash(rows, keys).alias("h")).toArrow()
    ours = hashes([found[name].combine_chunks() for name in keys])
    assert [int(h) for h in ours.astype("i8")] == found["h"].to_pylist()
