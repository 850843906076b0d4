"""The check of a table of changes, against the records as they were sent."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.bodies import pool
from bench.contents import Contents, found, wanted
from bench.fill import produce
from bench.shapes import SHAPES
from bench.topics import Topic

SHAPE = SHAPES["changes_avro"]
TOPIC = Topic(name="t", shape=SHAPE.name, rows=400, partitions=4, schema_id=1, keys=80, key_schema_id=2)
COLUMNS = pa.schema(
    {"id": pa.int64(), "total": pa.float64(), "_kafka_partition": pa.int32(), "_kafka_offset": pa.int64()}
)
Row = Mapping[str, Any]


class Sent:
    """A producer that keeps what it sends, as rows of an event table; a delete has the key alone."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._value = fastavro.parse_schema(json.loads(SHAPE.schema))

    def produce(self, topic: str, value: bytes | None, key: bytes, partition: int) -> None:
        row: dict[str, Any] = {"id": fastavro.schemaless_reader(io.BytesIO(key[5:]), "long", None), "total": None}
        if value is not None:
            row = fastavro.schemaless_reader(io.BytesIO(value[5:]), self._value, None)["after"]
        offset = sum(other["_kafka_partition"] == partition for other in self.rows)
        self.rows.append({**row, "_kafka_partition": partition, "_kafka_offset": offset})

    def poll(self, seconds: float) -> None:
        pass


@pytest.fixture(scope="module")
def sent() -> list[Row]:
    """Return the changes of a topic, partition by partition."""
    made = pool(SHAPE, seed=1, size=TOPIC.rows)
    producer: Any = Sent()
    for partition in range(TOPIC.partitions):
        produce(producer, TOPIC, partition, 0, made)
    rows: list[Row] = producer.rows
    return rows


def held(folder: Path, rows: Iterable[Row]) -> Contents:
    file = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([{name: row[name] for name in COLUMNS.names} for row in rows], COLUMNS), file)
    return found([str(file)], TOPIC, COLUMNS.names)


def versions(sent: Iterable[Row]) -> dict[int, list[Row]]:
    of: dict[int, list[Row]] = {}
    for row in sent:
        of.setdefault(row["id"], []).append(row)
    return of


def test_a_row_of_an_older_change_is_found(sent: list[Row], tmp_path: Path) -> None:
    """Check an older row, and values of an older one beside the place of the newer."""
    live = [rows for rows in versions(sent).values() if rows[-1]["total"] is not None]
    older = next(row for row in reversed(live[0][:-1]) if row["total"] is not None)
    rest = [rows[-1] for rows in live[1:]]
    right = wanted(TOPIC, seed=1, state=True)
    assert held(tmp_path, [live[0][-1], *rest]) == right
    assert held(tmp_path, [older, *rest])[:3] == right[:3]
    assert held(tmp_path, [older, *rest])[3] < right[3]
    assert held(tmp_path, [{**live[0][-1], "total": older["total"]}, *rest])[4] != right[4]
