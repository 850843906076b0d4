"""A Spark session with Spark's defaults, and rows decoded by hand, for all contenders except Frazil."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from bench.shapes import Format, Shape
from bench.topics import Job, Topic
from frazil.lake.catalogs import spark_options
from frazil.local.toolchain import class_path

Offsets = dict[int, int]
COORDINATES = ("topic", "partition", "offset", "timestamp")


@contextmanager
def session(job: Job) -> Iterator[SparkSession]:
    """Start the session, with the same cores, heap, jars, catalog and local file system as Frazil."""
    builder = SparkSession.builder.appName(job.contender).master(f"local[{job.cores}]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **class_path.LOCAL_FILES,
        **spark_options(job.environment, lambda secret: ""),
        "spark.driver.memory": job.heap,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    with class_path.of_new_jvms(class_path.driver_jars(aws=False)):
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("create namespace if not exists lake.bench")
    try:
        yield spark
    finally:
        spark.stop()


def read(
    spark: SparkSession,
    job: Job,
    topic: Topic,
    start: Offsets,
    end: Offsets,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read a topic between offsets of its partitions."""
    reader = spark.read.format("kafka").options(**(options or {}))
    reader = reader.option("kafka.bootstrap.servers", job.environment.kafka.bootstrap).option("subscribe", topic.name)
    for name, offsets in (("startingOffsets", start), ("endingOffsets", end)):
        reader = reader.option(name, json.dumps({topic.name: {str(p): offset for p, offset in offsets.items()}}))
    return reader.load()


def decoded(records: DataFrame, shape: Shape) -> DataFrame:
    """Return the row as one column, `row`, and the record's coordinates. Cuts off the frame and ignores its id."""
    body = F.expr("substring(value, 6)")
    row = from_avro(body, shape.schema) if shape.format is Format.AVRO else F.from_json(body.cast("string"), shape.ddl)
    return records.select(row.alias("row"), *(F.col(name).alias(f"_kafka_{name}") for name in COORDINATES))


def columns(rows: DataFrame) -> DataFrame:
    """Return the row's fields as columns, and the coordinates."""
    return rows.select("row.*", *(f"_kafka_{name}" for name in COORDINATES))


def create(spark: SparkSession, rows: DataFrame, table: str) -> None:
    """Create a table for the rows, with Iceberg's defaults."""
    spark.createDataFrame([], rows.schema).writeTo(f"lake.{table}").create()
