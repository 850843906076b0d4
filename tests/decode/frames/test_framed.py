"""A table of many keys as one literal gives what a dict gives."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.frames.framed import lookup

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("count", [0, 1, 20_000])
def test_what_a_key_has_is_found_and_of_another_nothing(spark: SparkSession, count: int) -> None:
    random = Random(1)
    entries = {random.randbytes(random.randint(1, 20)): random.choice(["unknown_schema", "7"]) for _ in range(count)}
    asked = [*list(entries)[:50], *(key + b"\0" for key in list(entries)[:50]), b"", b"\0", None]
    records = spark.createDataFrame([(key,) for key in asked], "key binary").coalesce(1)
    found = records.select(lookup(F.col("key"), entries).alias("text")).collect()
    assert [row.text for row in found] == [entries.get(key) if key is not None else None for key in asked]
