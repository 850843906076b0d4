"""The files of a folded batch."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.lake import tables
from frazil.lake.deletes.positions import IS_DELETE
from frazil.lake.deletes.staged_changes import ROWS_A_TASK, stage_changes
from frazil.lake.iceberg_java import Iceberg
from frazil.schemas.types import Field, Kind, Primitive, Struct

pytestmark = pytest.mark.spark

ROW = Struct(
    tuple(
        Field(name, Primitive(kind))
        for name, kind in (("id", Kind.LONG), ("_kafka_partition", Kind.INT), ("_kafka_offset", Kind.LONG))
    )
)


@pytest.mark.parametrize(("records", "files"), [(10, 1), (ROWS_A_TASK + 1, 2)])
def test_a_batch_has_as_many_files_as_its_records_need(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, records: int, files: int
) -> None:
    table, count = f"folded.{name}", 500
    tables.create(iceberg, table, ROW, properties={"write.distribution-mode": "none"})
    columns = [
        pa.array(range(count)),
        pa.array([0] * count, pa.int32()),
        pa.array(range(count)),
        pa.array([False] * count),
    ]
    given = pa.table(columns, names=["id", "_kafka_partition", "_kafka_offset", IS_DELETE])
    rows = spark.createDataFrame(
        given, schema=f"id long, _kafka_partition int, _kafka_offset long, {IS_DELETE} boolean"
    )
    staged = stage_changes(
        iceberg,
        table,
        rows,
        key=["id"],
        pipeline="p",
        new_id=lambda: uuid.uuid4().hex,
        at=1000.0,
        records=records,
    )
    assert (len(staged.files.files), staged.files.rows, staged.records) == (files, count, count)
