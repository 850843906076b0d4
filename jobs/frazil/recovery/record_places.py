"""The places in the topic, partition and offset, of the records that a pipeline's two tables hold."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame

from frazil.declaration import Pipeline
from frazil.declaration.options import KeyFormat, MetadataColumns
from frazil.job.context import JobContext
from frazil.lake.row_offsets import places

FLAT, STRUCT = "_kafka_", "_kafka."  # what the columns of a row's place begin with
LETTERS = ""  # what the columns of a dead letter's place begin with


def prefix(pipeline: Pipeline) -> str:
    """Return what the columns of a row's place begin with."""
    return STRUCT if pipeline.table.metadata_columns is MetadataColumns.STRUCT else FLAT


def places_of_both(pipeline: Pipeline, job: JobContext, topic: str) -> DataFrame:
    """Return the places of all rows and dead letters of a topic, as `row_offsets.places` does."""
    table = pipeline.table
    has_key = pipeline.topic.key_format is KeyFormat.BYTES
    rows = job.spark.table(f"{job.iceberg.name}.{table.identifier}")
    both = [places(rows, topic, prefix(pipeline), has_key=has_key)]
    if job.iceberg.exists(table.dead_letters):
        letters = job.spark.table(f"{job.iceberg.name}.{table.dead_letters}")
        both.append(places(letters, topic, LETTERS, has_key=True))
    return reduce(DataFrame.unionByName, both)
