"""Counting by partition: one aggregate for all partitions, exact for a thousand of them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from frazil.ingest.batch import offset_account, record_counts
from frazil.ingest.plan.ranges import OffsetRange
from frazil.lake.ledger.last_records import LastRecord, LastRecords

pytestmark = pytest.mark.spark
ROWS, MANY = 30_000, 1_000


def observed(spark: SparkSession, ranges: list[OffsetRange], tasks: int = 2) -> dict[str, Any]:
    """What is observed of `ROWS` records: each partition has the same share, in the order of offsets."""
    share = ROWS // len(ranges)
    ids = spark.range(0, ROWS, numPartitions=tasks)
    records = ids.select(
        F.floor(F.col("id") / share).cast("int").alias("partition"),
        (F.col("id") % share).alias("offset"),
        F.timestamp_millis(F.col("id")).alias("timestamp"),
        F.lit(b"k").alias("key"),
        F.lit(b"value").alias("value"),
    )
    seen = Observation()
    record_counts.observe_records(records, seen, ranges).write.format("noop").mode("overwrite").save()
    return seen.get


def test_a_thousand_partitions_are_counted_exactly_however_tasks_divide_them(spark: SparkSession) -> None:
    ranges = [OffsetRange(p, 0, 40) for p in range(MANY)]
    seen = observed(spark, ranges, tasks=7)
    counts = record_counts.counts(seen["partitions"])
    assert counts == dict.fromkeys(range(MANY), 30)
    assert offset_account.gaps(counts, ranges) == dict.fromkeys(range(MANY), 10)
    assert seen["read"] == ROWS


def test_the_last_record_of_each_partition_is_found_though_offsets_behind_it_hold_none(spark: SparkSession) -> None:
    ranges = [OffsetRange(p, 0, share) for p, share in ((0, 10_003), (1, 10_000), (2, 10_001))]
    last = record_counts.last_records(observed(spark, ranges)["tail"], {0: 4, 1: None}, now_ms=1e12)
    assert {p: (r.offset, r.epoch, r.newest_ms) for p, r in last.items()} == {
        0: (9_999, 4, 9_999),
        1: (9_999, None, 19_999),
        2: (9_999, None, 29_999),
    }
    assert len({r.fingerprint for r in last.values()}) == 3


def test_a_timestamp_from_the_future_says_nothing_of_how_far_a_topic_was_read(spark: SparkSession) -> None:
    seen = observed(spark, [OffsetRange(0, 0, ROWS)])
    (last,) = record_counts.last_records(seen["tail"], {}, now_ms=-record_counts.AHEAD_MS).values()
    assert (last.offset, last.newest_ms) == (ROWS - 1, None)


LAST = LastRecords("T", {0: LastRecord(7, "aa", 1, 700), 1: LastRecord(3, "bb", None, 300)})


def test_last_records_are_read_as_they_were_written() -> None:
    assert LastRecords.parse(str(LAST), "T") == LAST


def test_last_records_of_another_topic_do_not_count() -> None:
    assert LastRecords.parse(str(LAST), "other") == LastRecords("other")


def test_what_a_commit_that_was_undone_had_read_is_not_known_any_more() -> None:
    held = LAST.before({0: 7, 1: 4})
    assert (held.valid_through([1]), held.valid_through([0, 1])) == (300, None)
    assert held.identified({0: 7, 1: 4}) == {1: (3, "bb")}
    assert LAST.before({0: 8, 1: 4}) == LAST


def test_rows_are_complete_up_to_the_partition_that_is_furthest_behind() -> None:
    assert LAST.valid_through([0, 1]) == 300
    assert LAST.valid_through([0]) == 700


def test_rows_are_complete_up_to_no_time_if_a_partition_has_not_said() -> None:
    assert LAST.valid_through([0, 1, 2]) is None


def test_an_older_batch_does_not_take_a_partitions_newest_time_back() -> None:
    after = LAST.after({0: LastRecord(9, "cc", 1, 100), 1: LastRecord(None, None, None, 900)})
    assert after.at == {0: LastRecord(9, "cc", 1, 700), 1: LastRecord(3, "bb", None, 900)}


def test_a_last_record_that_is_not_before_the_next_offset_is_not_compared() -> None:
    assert LAST.identified({0: 8, 1: 3}) == {0: (7, "aa")}
