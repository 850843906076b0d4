"""The frames of a batch without a decoder are noted in bounded memory."""

from __future__ import annotations

import pytest
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from frazil.decode.decoded_columns import REASON, UNKNOWN, UNKNOWN_KEY, WAITING, WAITING_KEY
from frazil.decode.writers.seen_frames import MOST, SeenFrames
from frazil.ingest.batch import record_counts
from frazil.schemas.wire_format import GUID_BYTES, prefixed

pytestmark = pytest.mark.spark


def noted(spark: SparkSession, ids: int, *, header: str = "00") -> tuple[SeenFrames, SeenFrames]:
    """What is noted of the values and keys of 2 x `ids` records, each other one of an unknown id of its own."""
    number = F.col("offset") / 2
    unknown = F.concat(F.lit(header), F.lpad(F.hex(number.cast("long")), 8, "0"))
    nothing = F.lit(None).cast("string")
    columns = {
        "partition": F.lit(0),
        "key": nothing,
        REASON: F.lit("unknown_schema"),
        UNKNOWN: F.when(F.col("offset") % 2 == 0, unknown),
        WAITING: F.when(F.col("offset") < 4, F.lit("0000000007")),
        UNKNOWN_KEY: nothing,
        WAITING_KEY: nothing,
    }
    observed = Observation()
    records = spark.range(0, 2 * ids, 1, 2).withColumnRenamed("id", "offset").withColumns(columns)
    records = record_counts.observe_rejected(records, observed, F.lit(False))
    records.write.format("noop").mode("overwrite").save()
    return record_counts.seen_frames(observed.get, "values"), record_counts.seen_frames(observed.get, "keys")


def test_all_unknown_frames_are_listed_as_long_as_they_are_not_too_many(spark: SparkSession) -> None:
    values, keys = noted(spark, MOST)
    assert values == SeenFrames(
        waiting=(prefixed(7, b""),), unknown=tuple(sorted(prefixed(n, b"") for n in range(MOST))), is_all=True
    )
    assert keys == SeenFrames()
    assert not keys


@pytest.mark.parametrize("ids", [MOST + 1, 100 * MOST])
def test_of_too_many_unknown_frames_some_are_listed_and_those_that_wait_are_none_of_them(
    spark: SparkSession, ids: int
) -> None:
    values, _ = noted(spark, ids)
    assert not values.is_all
    assert len(values.unknown) <= MOST
    assert values.waiting == (prefixed(7, b""),)


def test_frames_that_hold_a_guid_are_noted(spark: SparkSession) -> None:
    values, _ = noted(spark, 2, header="01" + "00" * (GUID_BYTES - 5))
    assert values.has_guids
    assert {len(frame) for frame in values.unknown} == {GUID_BYTES}
