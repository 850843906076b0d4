"""Timestamps are the producer's, and any 64-bit number: each record is a row all the same."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F

from frazil.declaration.engines import Limits
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ANY_TIME = {"message.timestamp.before.max.ms": str(2**63 - 1), "message.timestamp.after.max.ms": str(2**63 - 1)}
MICROSECONDS, NANOSECONDS = 1_700_000_000_000_000, 1_700_000_000_000_000_000
OVERFLOW = 9_223_372_036_854_776
YEAR_1 = -62_135_596_800_000
SWITCH = -12_219_292_800_000  # 1582-10-15


@pytest.fixture
def texts(shop_of: ShopOf) -> Shop:
    return shop_of(partitions=1, value_format="text", headers=True, config=ANY_TIME)


def landed(shop: Shop) -> dict[int, int | None]:
    """The timestamp of each row, by offset, in milliseconds."""
    rows = shop.spark.table(f"{shop.lake.catalog.name}.{shop.pipeline.table.identifier}")
    return {
        r["o"]: r["ms"]
        for r in rows.select(F.col("_kafka_offset").alias("o"), F.unix_millis("_kafka_timestamp").alias("ms")).collect()
    }


@pytest.mark.long
def test_a_timestamp_beyond_the_calendar_lands_as_it_is_or_as_none(texts: Shop) -> None:
    times = [1_700_000_000_000, MICROSECONDS, OVERFLOW - 1, OVERFLOW, 1_700_000_000_001, NANOSECONDS, 1_700_000_000_002]
    for number, ms in enumerate(times):
        texts.produce([b"v%d" % number], timestamp=ms, headers=[("h", b"1")])
    texts.produce([None], timestamp=NANOSECONDS)
    total = texts.drain()
    assert (total.read, total.written, total.rejected) == (8, 7, {"tombstone": 1})
    expected = [ms if ms < OVERFLOW else None for ms in times]
    assert landed(texts) == dict(enumerate(expected))
    texts.assert_each_record_once()
    texts.assert_proven(deep=True)
    texts.produce([b"next"], timestamp=1_700_000_000_003)
    assert texts.drain().written == 1


def test_a_timestamp_before_the_gregorian_calendar_is_not_shifted(texts: Shop) -> None:
    times = [YEAR_1, YEAR_1 + 500 * 365 * 86_400_000 + 123, SWITCH - 1, SWITCH, -1, 1, -2_208_988_800_000]
    for ms in times:
        texts.produce([b"v"], timestamp=ms)
    texts.drain()
    assert landed(texts) == dict(enumerate(times))


def ms(year: int, month: int) -> int:
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp() * 1000)


def test_rows_are_complete_up_to_the_partition_that_is_behind(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=3, value_format="text", limits=Limits(first_rows=4, max_rows=4))
    for partition, month in ((0, 6), (1, 1)):
        for day in range(8):
            shop.produce([b"v"], partition=partition, timestamp=ms(2026, month) + day)
    shop.drain()
    first, *_ = shop.seen("batch_committed")
    behind = time.time() - ms(2026, 1) / 1000
    assert abs(first["freshness_seconds"] - behind) < 600
    table = shop.table
    last = entry(table, shop.pipeline.name)
    assert last is not None
    assert last.valid_through == ms(2026, 1) + 7
    assert ledger.VALID_THROUGH in last.summary
