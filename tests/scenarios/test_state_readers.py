"""What docs/query.md says of readers of upsert tables, with Spark: streams, incremental reads, counts and row ids."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from frazil.declaration import Changelog, Upsert
from tests.scenarios.test_upserts import State
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
SKIPS = {"streaming-skip-overwrite-snapshots": "true", "streaming-skip-delete-snapshots": "true"}
VERSIONS = pytest.mark.parametrize("version", [2, 3])
Row = tuple[Any, ...]


def streamed(shop: Shop, folder: Path, **options: str) -> list[Row]:
    """Return the key and the user's name of each row of a stream of what the table has."""
    rows = shop.spark.readStream.options(**options).table(shop.path).select("_kafka_key", "user")
    sink = f"s{time.monotonic_ns()}"
    into = rows.writeStream.format("memory").queryName(sink).option("checkpointLocation", str(folder / sink))
    query = into.trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(map(tuple, shop.spark.table(sink).collect()), key=repr)


@VERSIONS
def test_a_state_is_no_source_for_readers_of_new_rows(shop_of: ShopOf, tmp_path: Path, version: int) -> None:
    shop = shop_of(write=Upsert(), key_format="text", table={"format_version": version})
    state = State(shop).land("first", [1])
    state.put(1, "second")
    state.land("new", [2])
    assert sorted((row["_kafka_key"], row["user"]) for row in shop.landed()) == [("k1", "second"), ("k2", "new")]
    with pytest.raises(StreamingQueryException, match="Cannot process overwrite snapshot"):
        streamed(shop, tmp_path)
    assert streamed(shop, tmp_path, **SKIPS) == [("k1", "first")], "without the new row, too"
    first = shop.sql("SELECT snapshot_id FROM {}.snapshots ORDER BY committed_at LIMIT 1").first()
    assert first is not None
    added = shop.spark.read.option("start-snapshot-id", first[0]).table(shop.path)
    assert sorted(map(tuple, added.select("_kafka_key", "user").collect())) == [("k1", "first")]
    view = shop.sql("CALL lake.system.create_changelog_view(table => '{}')").collect()[0][0]
    with pytest.raises(PySparkException, match="Delete files are currently not supported in changelog scans"):
        shop.spark.table(view).collect()


def test_a_delete_ends_a_stream_of_a_state(shop_of: ShopOf, tmp_path: Path) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    state = State(shop).land("first", [1])
    state.delete(1)
    shop.drain()
    with pytest.raises(StreamingQueryException, match="Cannot process delete snapshot"):
        streamed(shop, tmp_path)


def test_a_changelog_is_a_source_for_streams_and_stays_one_when_it_is_compacted(
    shop_of: ShopOf, tmp_path: Path
) -> None:
    shop = shop_of(write=Changelog(), key_format="text")
    state = State(shop)
    for word in ("first", "second"):
        state.put(1, word)
        shop.drain()
    state.delete(1)
    shop.drain()
    shop.compact()
    assert streamed(shop, tmp_path) == [("k1", "first"), ("k1", "second"), ("k1", None)]


@VERSIONS
def test_a_count_from_metadata_and_the_id_of_a_row_end_when_it_is_replaced(shop_of: ShopOf, version: int) -> None:
    shop = shop_of(write=Upsert(), key_format="text", table={"format_version": version})
    state = State(shop).land("first", range(3))
    assert counts_from_metadata(shop)
    before = row_ids(shop) if version == 3 else {}
    state.land("second", [1])
    assert not counts_from_metadata(shop)
    after = row_ids(shop) if version == 3 else {}
    if after:
        assert {number: after[number] for number in (0, 2)} == {number: before[number] for number in (0, 2)}
        assert after[1] > max(before.values())
    shop.compact()
    assert counts_from_metadata(shop)
    assert version == 2 or row_ids(shop) == after


def counts_from_metadata(shop: Shop) -> bool:
    """Return whether Spark counts the rows without a scan of data files."""
    counted: Any = shop.sql("SELECT count(*) FROM {}")
    plan = str(counted._jdf.queryExecution().executedPlan())
    assert ("LocalTableScan" in plan) != ("BatchScan" in plan), plan
    return "LocalTableScan" in plan


def row_ids(shop: Shop) -> dict[int, int]:
    return dict(map(tuple, shop.spark.table(shop.path).select("order_id", "_row_id").collect()))
