"""Which change of a key is its last one, and what a soft delete keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from frazil.upsert.fold import Rules, fold, value_columns
from frazil.upsert.resolver_protocol import IS_DELETE, LACKS, OF_VALUES

pytestmark = pytest.mark.spark
COLUMNS = ("id", "word", "_order", "_kafka_partition", "_kafka_offset", IS_DELETE)
Change = tuple[int, str | None, int, int, int]
"""Key, word (None deletes), order, partition, offset."""


def folded(
    spark: SparkSession, rules: Rules, *changes: Change, timeless: Sequence[int] = ()
) -> tuple[dict[int, Any], dict[str, int]]:
    """Fold the changes; the timestamp of a record is its offset in seconds, and none at offsets that are `timeless`."""
    columns = [*zip(*changes, strict=True)]
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.int32(), pa.int64())
    arrays = [pa.array(list(c), kind) for c, kind in zip(columns, kinds, strict=True)]
    table = pa.table([*arrays, pa.array([word is None for word in columns[1]])], names=list(COLUMNS))
    at = F.timestamp_seconds("_kafka_offset")
    changed = spark.createDataFrame(table).withColumns(
        {
            "_kafka_timestamp": F.when(~F.col("_kafka_offset").isin(list(timeless)), at),
            "_deleted_at": F.lit(None).cast("timestamp"),
        }
    )
    observed = Observation()
    values = value_columns(changed.columns, ["id"], rules)
    rows = fold(changed, ["id"], values, rules, observed).toArrow().to_pylist()
    return {row["id"]: row for row in rows}, observed.get


def test_the_values_of_a_soft_delete_are_those_of_the_record_before_it(spark: SparkSession) -> None:
    rows, _ = folded(
        spark,
        Rules(soft=True),
        (1, "a", 0, 0, 1),
        (1, "b", 0, 0, 2),
        (1, None, 0, 0, 3),
        (2, None, 0, 0, 4),
        (3, "c", 0, 0, 5),
    )
    assert {key: (row["word"], row[LACKS], row["_deleted_at"] is None) for key, row in rows.items()} == {
        1: ("b", False, False),
        2: (None, True, False),
        3: ("c", False, True),
    }


def test_a_soft_delete_without_a_time_is_of_1970(spark: SparkSession) -> None:
    """A null would say that the row is not deleted, and a clock would say something else in each replay."""
    rows, _ = folded(spark, Rules(soft=True), (1, "a", 0, 0, 1), (1, None, 0, 0, 2), (2, None, 0, 0, 3), timeless=(2,))
    assert {key: row["_deleted_at"].timestamp() for key, row in rows.items()} == {1: 0, 2: 3}
    assert rows[1]["word"] == "a"


def test_the_highest_order_is_the_last_and_late_records_have_no_values(spark: SparkSession) -> None:
    """Key 1: the record behind the delete came late. Key 2: so did one before it. Key 3: the delete is late. Key 4: only a late one."""
    rows, seen = folded(
        spark,
        Rules(ordered=True, soft=True),
        *((1, "a", 3, 0, 1), (1, None, 7, 0, 2), (1, "late", 5, 0, 3)),
        *((2, "a", 4, 0, 4), (2, "late", 3, 0, 5), (2, None, 6, 0, 6)),
        *((3, "a", 9, 0, 7), (3, None, 8, 0, 8)),
        *((4, None, 9, 0, 9), (4, "late", 8, 0, 10)),
        *((5, "low", 1, 0, 11), (5, "high", 1, 1, 0)),
    )
    assert {key: (row["word"], row[IS_DELETE], row[LACKS]) for key, row in rows.items()} == {
        1: ("a", True, False),
        2: ("a", True, False),
        3: ("a", False, False),
        4: (None, True, True),
        5: ("high", False, False),
    }
    assert rows[1][OF_VALUES] == {"_order": 3, "_kafka_partition": 0, "_kafka_offset": 1}
    assert (seen["records"], seen["moved"], seen["ties"]) == (12, 0, 1)


def test_without_an_order_a_key_in_two_partitions_is_seen(spark: SparkSession) -> None:
    _, seen = folded(spark, Rules(soft=True), (1, "a", 0, 0, 1), (1, None, 0, 1, 0), (2, "b", 0, 1, 1))
    assert (seen["moved"], seen["ties"]) == (1, 0)


def test_metadata_is_of_the_deleting_record_and_the_schema_id_is_of_the_values() -> None:
    columns = ["id", "word", "_kafka_key", "_kafka_offset", "_kafka_schema_id", "_ingested_at", "_deleted_at", "_order"]
    assert value_columns([*columns, IS_DELETE], ["id"], Rules()) == ["word", "_kafka_schema_id"]
