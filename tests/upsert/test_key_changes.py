"""Keys to delete files, in both format versions: what Spark, PyIceberg and DuckDB read afterwards."""

from __future__ import annotations

from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.declaration.environment import Environment
from frazil.declaration.partitioning import PartitionField, Transform
from frazil.errors import Fault
from frazil.lake.iceberg_java import Iceberg
from frazil.upsert import scan_resolver as positions
from frazil.upsert.key_literals import LISTED_AT_MOST
from frazil.upsert.resolver_protocol import HASH, IS_DELETE, PARTITION, BatchKeys, Head, broadcast, key_hash
from frazil.upsert.scan_resolver import ScanResolver
from tests.support.duckdb_reader import ask
from tests.support.keyed_table import KeyedTable
from tests.support.variants import first_short

pytestmark = pytest.mark.spark


@pytest.fixture(params=first_short([2, 3]), ids=["v2", "v3"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def table(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, version: int) -> KeyedTable:
    return KeyedTable(spark, iceberg, lake_environment, f"keyed.{name}", version).create()


def by_duckdb(table: KeyedTable) -> list[tuple[int, int, str]]:
    where = table.iceberg.load(table.name).operations().current().metadataFileLocation()
    _, rows = ask(str(where), "SELECT id, day, word FROM lake_table ORDER BY id")
    return [(row[0], row[1], row[2]) for row in rows]


def test_a_key_near_the_least_number_leaves_no_second_row(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str
) -> None:
    by = PartitionField(Transform.TRUNCATE, "id", 10)
    table = KeyedTable(spark, iceberg, lake_environment, f"keyed.{name}", partitioned=True, by=by).create()
    keys = [*range(-(2**63) + 3, 2**63, 2**64 // (LISTED_AT_MOST + 4)), *range(3)]
    table.apply(dict.fromkeys(keys, (1, "first")))
    table.apply(dict.fromkeys(keys, (2, "second")))
    table.apply({-(2**63) + 3: None, **dict.fromkeys(range(40), (3, "third")), 10**9: (1, "new")})
    table.check()


@pytest.mark.parametrize("argument", [None, 4])
def test_a_search_that_omits_the_file_of_a_key_stops_the_commit(
    spark: SparkSession,
    iceberg: Iceberg,
    lake_environment: Environment,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    argument: int | None,
) -> None:
    by = PartitionField(Transform.TRUNCATE, "id", 10) if argument is None else PartitionField(Transform.BUCKET, "id", 4)
    table = KeyedTable(spark, iceberg, lake_environment, f"keyed.{name}", partitioned=True, by=by).create()
    table.apply(dict.fromkeys(range(0, 100, 7), (1, "first")))
    monkeypatch.setattr(positions, "conditions", lambda *_, **__: [F.col("id") == 98])
    with pytest.raises(Fault, match=r"omits \d+ data files that may have some, .*Nothing was committed"):
        table.apply({98: (2, "second"), 7: (2, "second")})
    table.check()


def test_every_engine_reads_the_same(table: KeyedTable) -> None:
    table.apply(dict.fromkeys(range(50), (1, "first")))
    for n in range(3):
        table.apply({**dict.fromkeys(range(n, 55, 4), (n, f"of {n}")), 40 + n: None})
    table.check()
    assert by_duckdb(table) == sorted((key, *row) for key, row in table.state.items())


@pytest.mark.long
def test_a_partitioned_table_loses_rows_in_each_partition(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, version: int
) -> None:
    table = KeyedTable(spark, iceberg, lake_environment, f"keyed.{name}", version, partitioned=True).create()
    table.apply({k: (k % 3, "first") for k in range(12)})
    table.apply({k: ((k + 1) % 3, "moved") for k in range(6)} | {11: None})  # a row changes its partition
    table.check()


@pytest.mark.long
def test_deletes_survive_an_evolved_partitioning(table: KeyedTable) -> None:
    table.apply({k: (k % 3, "first") for k in range(9)})
    table.iceberg.load(table.name).updateSpec().addField("day").commit()
    table.apply(dict.fromkeys(range(4, 14), (1, "second")))
    table.apply(dict.fromkeys(range(0, 14, 2)))
    table.check()


@pytest.mark.long
def test_keys_of_several_files_and_old_deletes_are_merged(table: KeyedTable) -> None:
    for n in range(4):
        table.apply(dict.fromkeys(range(n * 5, n * 5 + 10), (n, "x")))
    table.compact()
    for n in range(3):
        table.apply(dict.fromkeys(range(n, 25, 5)))
    table.check()


def test_nothing_is_searched_in_an_empty_table_nor_for_no_key(table: KeyedTable) -> None:
    batch = table.staged({1: (1, "x"), 2: None})
    loaded = table.iceberg.load(table.name)
    deletes = batch.changes.on(loaded, loaded.currentSnapshot().snapshotId())
    assert (deletes.added, deletes.found.rows) == ((), 0)
    table.apply({1: (1, "x")})
    empty = table.spark.createDataFrame([], f"id long, {IS_DELETE} boolean, {PARTITION} int, {HASH} long")
    loaded = table.iceberg.load(table.name)
    assert table.changes(empty).on(loaded, loaded.currentSnapshot().snapshotId()).added == ()


@pytest.mark.long
def test_deletes_are_made_once_for_a_head_and_again_for_another(table: KeyedTable) -> None:
    table.apply({1: (1, "x"), 2: (1, "y")})
    batch = table.staged({1: None})
    loaded = table.iceberg.load(table.name)
    first = batch.changes.on(loaded, loaded.currentSnapshot().snapshotId())
    assert batch.changes.on(loaded, loaded.currentSnapshot().snapshotId()) is first
    table.insert(3, (1, "by another engine"))
    moved = table.iceberg.load(table.name)
    assert batch.changes.on(moved, moved.currentSnapshot().snapshotId()) is not first
    again = batch.changes.on(moved, moved.currentSnapshot().snapshotId())
    batch.changes.forget()
    assert batch.changes.on(moved, moved.currentSnapshot().snapshotId()) is not again


def test_the_search_says_how_many_keys_were_there(table: KeyedTable) -> None:
    table.apply(dict.fromkeys(range(10), (1, "x")))
    batch = table.staged({**dict.fromkeys(range(8, 12), (1, "y")), 3: None, 4: None, 77: None})
    loaded = table.iceberg.load(table.name)
    found = batch.changes.on(loaded, loaded.currentSnapshot().snapshotId()).found
    assert (found.updated, found.deleted) == (2, 2)
    assert found.hash == table.hash_of(3, 4, 8, 9)


def files_of(table: KeyedTable) -> dict[str, list[int]]:
    """Return the keys in each data file."""
    found: dict[str, list[int]] = {}
    for row in table.spark.table(f"lake.{table.name}").select("_file", "id").orderBy("id").collect():
        found.setdefault(row[0], []).append(row[1])
    return found


def find_without(table: KeyedTable, lost: list[str], *keys: int) -> int:
    """Return how many rows of keys are found when some data files do not exist any more: a search that reads one fails."""
    batch, loaded = table.staged(dict.fromkeys(keys)), table.iceberg.load(table.name)
    for path in lost:
        loaded.io().deleteFile(path)
    return batch.changes.on(loaded, loaded.currentSnapshot().snapshotId()).found.deleted


@pytest.mark.long
def test_files_outside_the_range_of_the_batchs_keys_are_not_read(table: KeyedTable) -> None:
    for day in range(3):
        table.apply(dict.fromkeys(range(100 * day, 100 * day + 10), (day, "x")))
    lost = [path for path, keys in files_of(table).items() if keys[0] // 100 != 1]
    assert len(lost) >= 2
    assert find_without(table, lost, 103, 107) == 2


def test_buckets_without_a_key_of_the_batch_are_not_read(table: KeyedTable) -> None:
    """The key is within the range of files of other buckets, so it is listed: a bucket says nothing of a range."""
    table.iceberg.load(table.name).updateSpec().addField(table.iceberg.term("bucket", "id", 4)).commit()
    table.apply(dict.fromkeys(range(60), (1, "x")))
    files = files_of(table)
    bucket = next(PurePath(path).parent for path, keys in files.items() if 45 in keys)
    lost = [path for path in files if PurePath(path).parent != bucket]
    assert any(files[path][0] < 45 < files[path][-1] for path in lost)
    assert find_without(table, lost, 45) == 1


KEYS = {
    "text": ("string", ["'a'", "'b'", "''", "'ä'"]),
    "decimal": ("decimal(20,2)", ["1.10", "-3", "0", "123456789012345678.01"]),
    "date": ("date", ["DATE'2020-01-01'", "DATE'1960-01-01'", "DATE'0001-01-01'", "DATE'9999-12-31'"]),
    "instant": ("timestamp", ["TIMESTAMP'2020-01-01 00:00:00Z'", "TIMESTAMP'1900-01-01 00:00:00.000001Z'"]),
    "bytes": ("binary", ["X'00'", "X''", "X'FF01'"]),
    "boolean": ("boolean", ["true", "false"]),
    "two columns": ("int", ["1", "2", "3"]),
}


@pytest.mark.parametrize("kind", first_short(KEYS, short=2))
def test_keys_of_each_type_are_found(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str, kind: str
) -> None:
    sql, values = KEYS[kind]
    table = f"keyed.{name}"
    iceberg.create_namespace("keyed")
    spark.sql(f"CREATE TABLE lake.{table} (k {sql}, other string, n int) USING iceberg")
    rows = ", ".join(f"(CAST({v} AS {sql}), 'o', {n})" for n, v in enumerate(values))
    spark.sql(f"INSERT INTO lake.{table} VALUES {rows}")
    columns = ["k", "other"] if kind == "two columns" else ["k"]
    keys = (
        spark.table(f"lake.{table}").where("n > 0").selectExpr(*columns, f"n = 1 AS {IS_DELETE}", f"0 AS {PARTITION}")
    )
    keys = keys.withColumn(HASH, key_hash(keys, columns))
    loaded = iceberg.load(table)
    head = Head(loaded, loaded.currentSnapshot().snapshotId())
    found = ScanResolver(iceberg, table).find(head, BatchKeys(keys.toArrow(), keys.schema))
    assert (found.rows, found.deleted) == (len(values) - 1, 1)


def test_a_promoted_key_keeps_its_hash(spark: SparkSession) -> None:
    narrow = spark.sql("SELECT CAST(7 AS int) AS k, CAST(1.5 AS decimal(9,2)) AS d")
    wide = spark.sql("SELECT CAST(7 AS bigint) AS k, CAST(1.5 AS decimal(30,2)) AS d")
    hashes = [frame.select(key_hash(frame, ["k", "d"])).collect()[0][0] for frame in (narrow, wide)]
    assert hashes[0] == hashes[1]


@pytest.mark.long
def test_keys_are_broadcast_whatever_their_size_says(spark: SparkSession) -> None:
    """The table has many more rows than the batch, and none of them is shuffled; Spark alone broadcasts 10 MB at most."""
    keys = pa.table({"id": np.arange(1_000_000)})
    found = spark.range(10**9).join(broadcast(spark, keys, "id long"), "id")
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "BroadcastHashJoin" in plan
    assert "Exchange hashpartitioning" not in plan


@pytest.mark.parametrize("kind", first_short(("date", "timestamp", "timestamp_ntz"), short=1))
def test_old_days_are_found_in_files_of_orc(spark: SparkSession, iceberg: Iceberg, name: str, kind: str) -> None:
    """Iceberg's filter of such files reads literals by another calendar, and omits the rows."""
    table, values = f"keyed.{name}", [f"CAST('{day}' AS {kind})" for day in ("1500-03-01", "1500-03-02")]
    iceberg.create_namespace("keyed")
    spark.sql(f"CREATE TABLE lake.{table} (k {kind}) USING iceberg TBLPROPERTIES ('write.format.default' = 'orc')")
    spark.sql(f"INSERT INTO lake.{table} VALUES ({values[0]}), ({values[1]})")
    keys = spark.table(f"lake.{table}").selectExpr("k", f"true AS {IS_DELETE}", f"0 AS {PARTITION}").limit(1)
    keys = keys.withColumn(HASH, key_hash(keys, ["k"]))
    loaded = iceberg.load(table)
    head = Head(loaded, loaded.currentSnapshot().snapshotId())
    assert ScanResolver(iceberg, table).find(head, BatchKeys(keys.toArrow(), keys.schema)).rows == 1
