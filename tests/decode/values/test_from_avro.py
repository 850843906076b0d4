"""`from_avro` reads as Spark's does, and its options are no expression that threads share."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro import functions as sparks

from frazil.decode.values.from_avro import from_avro
from frazil.schemas.avro.reader_schema import OPTIONS

pytestmark = pytest.mark.spark

WRITER = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "long", "string"]}]})
READER = json.dumps({"type": "record", "name": "r", "fields": [{"name": "b", "type": "int", "default": 7}]})


@pytest.mark.parametrize("options", [OPTIONS, {**OPTIONS, "avroSchema": READER}, {"mode": "PERMISSIVE"}])
def test_it_reads_as_sparks_does(spark: SparkSession, options: dict[str, str]) -> None:
    bodies = [bytearray(b"\x02\x06"), bytearray(b"\x04\x02x"), bytearray(b"\x00"), bytearray(b"\x0c"), None]
    records = spark.createDataFrame([(body,) for body in bodies], "body binary")
    ours, theirs = (
        records.select(function(F.col("body"), WRITER, dict(options)).alias("row"))
        for function in (from_avro, sparks.from_avro)
    )
    assert ours.schema == theirs.schema
    assert ours.collect() == theirs.collect()


def test_the_options_are_a_literal(spark: SparkSession) -> None:
    """A plan's copies share its expressions, and `map(…)` has a buffer that each evaluation fills."""
    records = spark.range(1).select(from_avro(F.lit(b"").cast("binary"), WRITER, OPTIONS).alias("row"))
    plan = records._jdf.queryExecution().analyzed()
    options = plan.expressions().head().child().options()
    assert options.getClass().getSimpleName() == "Literal"
