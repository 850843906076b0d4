"""An index of keys finds what the search finds on every head, whatever moved it, or it says that it cannot."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.errors import Fenced
from frazil.lake.delete_files.staged_deletes import Found
from frazil.lake.iceberg_java import Iceberg
from frazil.upsert import scan_resolver
from frazil.upsert.index_resolver import Cost
from frazil.upsert.key_index.index import KeyedRows, PlacesOfKeys
from frazil.upsert.resolver_protocol import (
    HASH,
    IS_DELETE,
    PARTITION,
    SECOND_HASH,
    BatchKeys,
    Head,
    Remembered,
    key_hash,
)
from frazil.upsert.scan_resolver import ScanResolver
from tests.support.agreeing_index import AgreeingIndex, agreeing
from tests.support.jobs import job
from tests.support.keyed_table import KeyedTable, Row
from tests.support.variants import first_short
from tests.upsert.test_key_changes import KEYS

pytestmark = pytest.mark.spark


@pytest.fixture(params=[pytest.param(2, marks=pytest.mark.long), 3], ids=["v2", "v3"])
def table(
    request: pytest.FixtureRequest, spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str
) -> KeyedTable:
    made = KeyedTable(spark, iceberg, lake_environment, f"keyed.{name}", int(request.param))
    made.index = agreeing(iceberg, made.name)
    return made.create()


class WithoutFilters(ScanResolver):
    """A search that reads the table completely: Iceberg lists no texts for a partition of null, which no key has."""

    def find(self, head: Head, keys: BatchKeys, remembered: Remembered = Remembered()) -> Found:  # noqa: B008 # frozen
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scan_resolver, "partition_sources", lambda _: {})
            return super().find(head, keys, remembered)


def index_of(table: KeyedTable) -> AgreeingIndex:
    assert isinstance(table.index, AgreeingIndex)
    return table.index


def some(seed: int) -> dict[int, Row | None]:
    """Return a batch of random changes of few keys."""
    rng = random.Random(seed)
    keys = rng.sample(range(40), 12)
    return {key: None if rng.random() < 0.3 else (rng.randrange(3), f"of {seed}") for key in keys}


@pytest.mark.long
def test_an_index_follows_the_commits_of_its_driver_and_compactions(table: KeyedTable) -> None:
    index = index_of(table)
    for n in range(8):
        table.apply(some(n))
        if n in (3, 5):
            table.compact()
    table.check()
    assert (len(index.built), index.dropped, index.answers) == (1, [], 7)


def expire(table: KeyedTable) -> None:
    expiry = table.iceberg.load(table.name).expireSnapshots().retainLast(1)
    expiry.expireOlderThan(2**62).commit()


def roll_back(table: KeyedTable) -> None:
    """Set the head back by two commits, have keys searched on it, and set it forward again."""
    loaded = table.iceberg.load(table.name)
    head = loaded.currentSnapshot()
    before = loaded.snapshot(head.parentId()).parentId()
    loaded.manageSnapshots().setCurrentSnapshot(before).commit()
    table.staged({1: (1, "on an earlier snapshot")}).changes.on(table.iceberg.load(table.name), before)
    table.iceberg.load(table.name).manageSnapshots().setCurrentSnapshot(head.snapshotId()).commit()


def promote_and_rename(table: KeyedTable) -> None:
    schema = table.iceberg.load(table.name).updateSchema()
    schema.renameColumn("word", "other").commit()
    table.iceberg.load(table.name).updateSchema().renameColumn("other", "word").commit()


def evolve_partitions(table: KeyedTable) -> None:
    table.iceberg.load(table.name).updateSpec().addField("day").commit()


def insert(table: KeyedTable) -> None:
    """Insert a second row of a key, and one of a new key."""
    for key in (1, 99):
        table.insert(key, (1, "by another engine"))


def delete(table: KeyedTable) -> None:
    """Delete rows by positions, as another engine does."""
    table.spark.sql(f"ALTER TABLE lake.{table.name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    table.apply({3: (1, "to be deleted"), 4: (1, "to stay")})  # in one file, which is then not deleted completely
    table.delete(3)


def delete_files(table: KeyedTable) -> None:
    """Delete complete data files, as a delete of all rows does."""
    table.is_alone = False
    table.spark.sql(f"DELETE FROM lake.{table.name}")


def rewrite_manifests(table: KeyedTable) -> None:
    table.spark.sql(f"CALL lake.system.rewrite_manifests('{table.name}')")


def merge(table: KeyedTable) -> None:
    """Update rows by a copy-on-write statement of another engine."""
    table.is_alone = False
    table.spark.sql(f"ALTER TABLE lake.{table.name} SET TBLPROPERTIES ('write.update.mode' = 'copy-on-write')")
    table.spark.sql(f"UPDATE lake.{table.name} SET word = 'copied' WHERE id < 5")


FOLLOWED = "followed"
EVENTS: dict[str, tuple[Callable[[KeyedTable], None], str]] = {
    "expiry": (expire, FOLLOWED),
    "a rollback, and forward again": (roll_back, "does not follow"),
    "a column that is renamed twice": (promote_and_rename, FOLLOWED),
    "another partitioning": (evolve_partitions, FOLLOWED),
    "rows of another engine": (insert, FOLLOWED),
    "deletes of another engine": (delete, "another writer deleted rows"),
    "deletes of complete files": (delete_files, ""),
    "rewritten deletes": (KeyedTable.rewrite_deletes, FOLLOWED),
    "rewritten manifests": (rewrite_manifests, FOLLOWED),
    "copy-on-write by another engine": (merge, ""),
}


@pytest.mark.long
def test_an_index_finds_what_the_search_finds_whatever_moved_the_head(table: KeyedTable) -> None:
    index = index_of(table)
    table.apply(some(100))
    for number, (event, (move, expected)) in enumerate(EVENTS.items()):
        table.apply(some(number))
        table.apply(some(number + 50))
        answers, dropped = index.answers, len(index.dropped)
        move(table)
        table.apply(some(number + 200))
        if expected == FOLLOWED:
            assert index.dropped[dropped:] == [], event
        elif expected:
            assert [why for why in index.dropped[dropped:] if expected in why], event
        for seed in (300, 400):  # the first one may have it dropped, the next one makes it
            table.apply(some(number + seed))
        assert index.answers > answers, event
    assert len(index.built) == len(index.dropped) + 1


@pytest.mark.long
def test_a_second_driver_that_lands_meanwhile_has_the_keys_found_again(table: KeyedTable) -> None:
    index = index_of(table)
    for n in range(3):
        table.apply(some(n))
    late, theirs = table.staged(some(3)), some(4)
    table.index = None
    other = table.staged(theirs)
    table.index = index
    loaded = table.iceberg.load(table.name)
    late.changes.on(loaded, loaded.currentSnapshot().snapshotId())  # searched, and not committed
    table.publish(other, run="other")
    table.expect(theirs)
    with pytest.raises(Fenced):
        table.publish(late)
    table.apply(some(5))
    assert index.dropped == ["another writer deleted rows"]
    table.apply(some(6))
    table.check()


@pytest.mark.long
def test_a_lost_answer_is_followed(table: KeyedTable) -> None:
    """The commit exists, and the driver learns it from the table."""
    index = index_of(table)
    table.apply(some(0))
    table.apply(some(1))
    batch, lost = table.staged(some(2)), []

    def answer_is_lost(step: str) -> None:
        if step == "publish.committed" and not lost:
            lost.append(step)
            raise PySparkException("the answer is lost")

    table.publish(batch, failpoint=answer_is_lost)
    table.expect(some(2))
    table.apply(some(3))
    table.check()
    assert (lost, index.dropped, index.answers) == (["publish.committed"], [], 3)


@pytest.mark.long
def test_a_batch_that_is_staged_again_on_one_head_leaves_no_trace(table: KeyedTable) -> None:
    index = index_of(table)
    table.apply(some(0))
    table.apply(some(1))
    dropped = table.staged(some(2))
    loaded = table.iceberg.load(table.name)
    dropped.changes.on(loaded, loaded.currentSnapshot().snapshotId())
    for n in range(3, 6):
        table.apply(some(n))
    table.check()
    assert index.dropped == []


def losing(add: Callable[[PlacesOfKeys, KeyedRows], None]) -> Callable[[PlacesOfKeys, KeyedRows], None]:
    """Return an `add` that loses the last row."""

    def loses(places: PlacesOfKeys, found: KeyedRows) -> None:
        columns = (found.high, found.low, found.file, found.position, found.partition)
        add(places, KeyedRows(found.paths, *(column[:-1] for column in columns)))

    return loses


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "broken"),
    [("add", losing(PlacesOfKeys.add)), ("delete", lambda *_: None)],
    ids=["a row that came is missing", "rows that were deleted are there"],
)
def test_an_index_that_has_other_rows_than_the_tables_account_is_dropped(
    table: KeyedTable, monkeypatch: pytest.MonkeyPatch, change: str, broken: Callable[..., None]
) -> None:
    """A missing row would be doubled, and a row that was deleted be deleted again."""
    index = index_of(table)
    for n in range(3):
        table.apply(some(n))
    assert (len(index.built), index.dropped, index.answers) == (1, [], 2)
    with monkeypatch.context() as patch:
        patch.setattr(PlacesOfKeys, change, broken)
        table.apply(some(3))
    (why,) = index.dropped
    assert re.fullmatch(r"the index has \d+ rows, and the table's account says otherwise", why)
    table.check()
    table.apply(some(4))  # by an index that is made again
    table.check()
    assert (len(index.built), len(index.dropped), index.answers) == (2, 1, 3)


@pytest.mark.parametrize("batches", [0, pytest.param(3, marks=pytest.mark.long)], ids=["made", "followed"])
def test_a_data_file_with_too_few_rows_is_in_no_index(table: KeyedTable, batches: int) -> None:
    """Another engine adds a file of one row, of which the manifest says that it has three."""
    index = index_of(table)
    for n in range(batches):
        table.apply(some(n))
    (made,) = table.staged({99: (1, "by another engine")}).staged.files
    loaded, classes = table.iceberg.load(table.name), table.iceberg.classes
    spec = ("PartitionSpec", loaded.spec())
    file = classes.static("DataFiles", "builder", spec).copy(made).withRecordCount(3).build()
    loaded.newAppend().appendFile(file).commit()
    table.is_alone, table.state[99] = False, (1, "by another engine")
    built = len(index.built)
    table.apply(some(10))
    assert index.dropped == [f"1 of 3 keys were read of {made.location()}"]
    table.check()
    table.compact()
    table.apply({**some(11), 99: (2, "replaced")})
    table.check()
    assert len(index.built) == built + 1


def test_a_table_that_is_made_again_has_its_keys_read_again(table: KeyedTable) -> None:
    index = index_of(table)
    table.apply(some(0))
    table.apply(some(1))
    table.iceberg.drop(table.name, purge=False)
    table.state, table.at = {}, 0
    table.create()
    table.apply(some(2))
    table.apply(some(3))
    assert index.dropped == ["the table was replaced"]
    table.check()


@pytest.mark.long
def test_no_index_is_made_where_searches_take_no_time(table: KeyedTable) -> None:
    index = agreeing(table.iceberg, table.name, Cost())
    table.index = index
    for n in range(3):
        table.apply(some(n))
    assert (index.built, index.dropped, index.answers) == ([], [], 0)


@pytest.mark.long
def test_a_disk_without_room_is_reported_once(table: KeyedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(table)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    for n in range(3):
        table.apply(some(n))
    table.check()
    assert (index.built, index.answers) == ([], 0)
    assert index.dropped == ["0 MiB are needed for temporary files, and 0 MiB are free"]


@pytest.mark.long
@pytest.mark.parametrize("kind", first_short(KEYS, short=2))
def test_keys_of_each_type_are_found_also_after_a_promotion(
    spark: SparkSession, iceberg: Iceberg, name: str, kind: str
) -> None:
    """The table is partitioned by the key, and another engine wrote a row without one."""
    (sql, values), table = KEYS[kind], f"keyed.{name}"
    index, columns = (
        AgreeingIndex(WithoutFilters(iceberg, table), job(iceberg)),
        ["k", "other"] if kind == "two columns" else ["k"],
    )
    iceberg.create_namespace("keyed")
    spark.sql(f"CREATE TABLE lake.{table} (k {sql}, other string, n int) USING iceberg PARTITIONED BY (k)")

    def searched(wanted: str) -> Found:
        keys = spark.table(f"lake.{table}").where(wanted)
        keys = keys.selectExpr(*columns, f"n = 1 AS {IS_DELETE}", f"0 AS {PARTITION}")
        hashes = {HASH: key_hash(keys, columns), SECOND_HASH: key_hash(keys, columns, is_second=True)}
        keys = keys.withColumns(hashes)
        loaded, wide = iceberg.load(table), keys.toArrow()
        head = loaded.currentSnapshot().snapshotId()
        return index.find(Head(loaded, head), BatchKeys(wide, keys.schema))

    rows = ", ".join(f"(CAST({v} AS {sql}), 'o', {n})" for n, v in enumerate(values))
    spark.sql(f"INSERT INTO lake.{table} VALUES {rows}, (NULL, 'o', 99)")
    assert searched("n > 0 AND k IS NOT NULL").rows == len(values) - 1
    wider = {"int": "bigint", "decimal(20,2)": "decimal(30,2)"}.get(sql)
    if wider is not None:
        spark.sql(f"ALTER TABLE lake.{table} ALTER COLUMN k TYPE {wider}")
    spark.sql(f"INSERT INTO lake.{table} VALUES (CAST({values[1]} AS {sql}), 'o', 7)")
    assert searched("n IN (0, 7)").rows == 3
    assert (index.answers, index.dropped) == (2, [])


@pytest.mark.long
def test_files_without_field_ids_are_read_by_their_names(
    spark: SparkSession, iceberg: Iceberg, name: str, tmp_path: Path
) -> None:
    """Rows of files that another tool wrote and added: all would be missing if their keys were read as null."""
    table = f"keyed.{name}"
    index = AgreeingIndex(WithoutFilters(iceberg, table), job(iceberg))
    iceberg.create_namespace("keyed")
    spark.sql(f"CREATE TABLE lake.{table} (id bigint) USING iceberg")
    pq.write_table(pa.table({"id": pa.array(range(9), pa.int64())}), tmp_path / "added.parquet")
    spark.sql(f"CALL lake.system.add_files('{table}', '`parquet`.`{tmp_path}`')")
    keys = spark.sql(f"SELECT id, false AS {IS_DELETE}, 0 AS {PARTITION} FROM range(5, 20)")
    hashes = {HASH: key_hash(keys, ["id"]), SECOND_HASH: key_hash(keys, ["id"], is_second=True)}
    keys = keys.withColumns(hashes)
    loaded = iceberg.load(table)
    head = loaded.currentSnapshot().snapshotId()
    found = index.find(Head(loaded, head), BatchKeys(keys.toArrow(), keys.schema))
    assert (found.rows, index.answers) == (4, 1)
