"""The files of a folded batch."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from frazil.declaration.environment import Environment
from frazil.lake import tables
from frazil.lake.commit.fence import StageAgain
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.prepared_plan import planned_anew
from frazil.lake.stage import TableWriter
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.upsert.key_changes import ROWS_A_TASK, UpsertBatch
from frazil.upsert.resolver_protocol import IS_DELETE
from frazil.upsert.staged_changes import StagedChanges, folded, stage_changes

pytestmark = pytest.mark.spark

ROW = Struct(
    tuple(
        Field(name, Primitive(kind))
        for name, kind in (("id", Kind.LONG), ("_kafka_partition", Kind.INT), ("_kafka_offset", Kind.LONG))
    )
)


def staged_of(writer: TableWriter, changed: DataFrame, records: int) -> StagedChanges:
    batch = UpsertBatch(at=1000.0, records=records)
    run = planned_anew(changed, lambda rows, observed: folded(rows, ["id"], batch, observed))
    return stage_changes(writer, run, ["id"], batch)


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
    staged = staged_of(TableWriter(iceberg, table, lambda: uuid.uuid4().hex, "p"), rows, records)
    assert (len(staged.files.files), staged.files.rows, staged.records) == (files, count, count)


@pytest.mark.parametrize(
    "second", [[0, 1, 3], *(pytest.param(rows, marks=pytest.mark.long) for rows in ([0, 1, 2, 3], [0, 1, 2]))]
)
def test_rows_and_keys_of_two_readings_are_not_committed(
    spark: SparkSession,
    iceberg: Iceberg,
    lake_environment: Environment,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: list[int],
) -> None:
    """What Spark kept is lost between the two jobs, and the topic was compacted meanwhile. Offset 2 is a delete."""
    table, held = f"folded.{name}", tmp_path / "topic.json"
    tables.create(iceberg, table, ROW, properties={"write.distribution-mode": "none"})
    held.write_text("[0, 1, 2, 3]")
    path = str(held)

    def read(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ids = json.loads(Path(path).read_text())
        yield pa.record_batch(
            [pa.array(ids), pa.array([0] * len(ids), pa.int32()), pa.array(ids), pa.array([n == 2 for n in ids])],
            names=["id", "_kafka_partition", "_kafka_offset", IS_DELETE],
        )

    stage = TableWriter.stage

    def staged(*given: Any, **named: Any) -> Any:
        found = stage(*given, **named)
        spark.catalog.clearCache()
        held.write_text(json.dumps(second))
        return found

    monkeypatch.setattr(TableWriter, "stage", staged)
    rows = spark.range(0, 1, numPartitions=1).mapInArrow(
        read, f"id long, _kafka_partition int, _kafka_offset long, {IS_DELETE} boolean"
    )

    def again() -> StagedChanges:
        writer = TableWriter(iceberg, table, lambda: uuid.uuid4().hex, "p")
        return staged_of(writer, rows, ROWS_A_TASK)

    if second == [0, 1, 2, 3]:
        assert again().records == 4
        return
    with pytest.raises(StageAgain, match="one reading"):
        again()
