"""The hash of a key without Spark is Spark's."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.upsert.key_hash import hashes
from frazil.upsert.resolver_protocol import key_hash

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
    both = (key_hash(rows, keys).alias("h"), key_hash(rows, keys, is_second=True).alias("h2"))
    found = rows.select(*keys, *both).toArrow()
    columns = [found[name].combine_chunks() for name in keys]
    assert [int(h) for h in hashes(columns).astype("i8")] == found["h"].to_pylist()
    assert [int(h) for h in hashes(columns, is_second=True).astype("i8")] == found["h2"].to_pylist()


@pytest.mark.parametrize(
    "columns", [["id"], ["concat('k', id)"], ["CAST(id AS decimal(20, 2))"], ["id % 10", "concat(id, '-')"]], ids=str
)
def test_the_second_hash_of_a_key_says_nothing_of_the_first(spark: SparkSession, columns: list[str]) -> None:
    """Thousands of 20,000 keys share the first 16 bits of one hash with another key; none shares those of both."""
    rows = spark.range(20_000).selectExpr(*(f"{column} AS k{number}" for number, column in enumerate(columns)))
    found = rows.select(
        *(key_hash(rows, rows.columns, is_second=is_second).alias(str(is_second)) for is_second in (False, True))
    ).toArrow()
    first, second = ((found[str(is_second)].to_numpy() >> 48).tolist() for is_second in (False, True))
    assert len(set(first)) < 18_000
    assert len(set(second)) < 18_000
    assert len(set(zip(first, second, strict=True))) == 20_000
