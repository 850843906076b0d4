"""Delete files that name rows of no data file go, many small ones are merged, and no deleted row comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.lake.commit.delete_swap import swap
from frazil.lake.delete_files import merged_deletes
from frazil.lake.delete_files.java_manifests import DeleteFile, position_deletes
from frazil.lake.delete_files.merged_deletes import Merged, merges, write
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.ledger import entry as ledger
from tests.support import oracle
from tests.support.duckdb_reader import ask
from tests.support.jobs import job, once
from tests.support.keyed_table import KeyedTable, Row

pytestmark = pytest.mark.spark
FREED = "m"  # py4j's command that frees an object; the garbage collector decides when


@pytest.fixture
def table_of(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str
) -> Callable[..., KeyedTable]:
    def make(version: int = 2, *, partitioned: bool = False) -> KeyedTable:
        return KeyedTable(spark, iceberg, lake_environment, f"merged.{name}", version, partitioned).create()

    return make


def filled(table: KeyedTable, rounds: int = 4) -> None:
    """Have several data files, and as many delete files, each of which names rows of several data files."""
    table.apply({key: (key % 2, "first") for key in range(24)})
    for round_ in range(rounds):
        rows: dict[int, Row | None] = {key: (key % 2, f"of {round_}") for key in range(round_, 24, 3)}
        table.apply({**rows, round_ + 5: None})


def planned(table: KeyedTable, many: int = 2) -> Merged:
    iceberg, java = table.iceberg, table.iceberg.load(table.name)
    head = int(java.currentSnapshot().snapshotId())
    found = list(merges(iceberg, java, head, many=many))
    added = [file for one in found for file in write(iceberg, java, head, one)]
    return Merged(head, tuple(file for one in found for file in one.removed), tuple(added))


def swapped(table: KeyedTable, merged: Merged, failpoint: Callable[[str], None] = lambda _: None) -> bool:
    return swap(
        job(table.iceberg, failpoint=failpoint), table.name, merged, ledger.tag("p"), {"frazil.upkeep": "merge"}
    )


def deletes(table: KeyedTable) -> int:
    java = table.iceberg.load(table.name)
    return len(position_deletes(table.iceberg, java, java.currentSnapshot().snapshotId()))


def vectors(table: KeyedTable) -> dict[str | None, DeleteFile]:
    """Return the deletion vectors by their data files."""
    java = table.iceberg.load(table.name)
    found = position_deletes(table.iceberg, java, java.currentSnapshot().snapshotId())
    return {file.of: file for file in found if file.is_vector}


def opened(table: KeyedTable) -> int:
    """Return the most delete files that a reader opens for one data file."""
    tasks = table.iceberg.load(table.name).newScan().planFiles().iterator()
    return max(int(task.deletes().size()) for task in tasks)


def check(table: KeyedTable) -> None:
    """Assert that Spark, PyIceberg and DuckDB read the state."""
    table.check()
    metadata = oracle.table(table.environment, table.name).metadata_location
    found = ask(metadata, "SELECT id, day, word FROM lake_table ORDER BY id")[1]
    assert found == sorted((key, *row) for key, row in table.state.items())


def rewritten(table: KeyedTable, where: str = 'word = "first"') -> None:
    """Rewrite data files, of the first batch only by default: many deletes then name files that have gone."""
    table.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table.name}', where => '{where}', options => "
        "map('rewrite-all', 'true', 'remove-dangling-deletes', 'false'))"
    )


@pytest.mark.long
@pytest.mark.parametrize("partitioned", [False, True])
def test_small_delete_files_are_merged(table_of: Callable[..., KeyedTable], partitioned: bool) -> None:
    table = table_of(partitioned=partitioned)
    filled(table)
    assert opened(table) > 1
    merged = planned(table)
    assert swapped(table, merged)
    check(table)
    assert opened(table) == 1
    java = table.iceberg.load(table.name)
    snapshot = java.currentSnapshot()
    assert (snapshot.operation(), snapshot.summary()["total-records"]) == (
        "replace",
        java.snapshot(merged.planned_on).summary()["total-records"],
    )
    assert planned(table).removed == ()
    filled(table)  # deletes and inserts the same keys again
    check(table)


def test_one_more_delete_file_takes_a_call_or_two(
    table_of: Callable[..., KeyedTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delete files are listed within the time that a driver has for upkeep, thousands of them too."""
    table = table_of(partitioned=True)
    table.apply({key: (key, "first") for key in range(12)})
    calls, send = list[str](), JavaClient.send_command

    def counted(client: JavaClient, command: str, *given: Any, **named: Any) -> Any:
        calls.append(command)
        return send(client, command, *given, **named)

    def cost(batch: dict[int, Row | None]) -> tuple[int, int]:
        table.apply(batch)
        java = table.iceberg.load(table.name)
        head = java.currentSnapshot().snapshotId()
        calls.clear()
        found = len(position_deletes(table.iceberg, java, head))
        return found, sum(not command.startswith(FREED) for command in calls)

    with monkeypatch.context() as patched:
        patched.setattr(JavaClient, "send_command", counted)
        cost({0: (0, "again")})  # looks up classes and methods
        few = cost({1: (1, "again")})
        many = cost({key: (key, "again") for key in range(2, 12)})
    assert (few[0], many[0]) == (2, 12)
    of_a_manifest = 25
    assert many[1] - few[1] <= of_a_manifest + 2 * 10


def test_deletes_of_files_that_have_gone_are_removed_and_the_others_stay(table_of: Callable[..., KeyedTable]) -> None:
    table = table_of()
    filled(table, 2)  # deletes of the second batch are of the first file and of another one
    table.apply({3: None})
    rewritten(table)
    assert swapped(table, planned(table, many=99))
    assert deletes(table) == 1
    check(table)
    assert planned(table, many=99).removed == ()


def test_vectors_of_files_that_have_gone_are_removed_and_the_others_stay(table_of: Callable[..., KeyedTable]) -> None:
    """Both are in one Puffin file. Iceberg's Java removes a vector with its data file; other engines may leave it."""
    table = table_of(3)
    filled(table, 2)
    before = vectors(table)
    rewritten(table)
    left = vectors(table)
    gone = [before[path] for path in before.keys() - left.keys()]
    assert {file.location for file in gone} & {file.location for file in left.values()}
    java = table.iceberg.load(table.name)
    change = java.newRowDelta().validateFromSnapshot(java.currentSnapshot().snapshotId())
    for file in gone:
        change.addDeletes(file.java)
    change.commit()
    assert vectors(table).keys() == before.keys()
    assert swapped(table, planned(table, many=99))
    assert vectors(table).keys() == left.keys()
    check(table)
    assert planned(table, many=99).removed == ()


@pytest.mark.long
def test_deletes_of_version_2_go_once_a_table_of_version_3_does_not_need_them(
    table_of: Callable[..., KeyedTable],
) -> None:
    table = table_of()
    filled(table)
    table.spark.sql(f"ALTER TABLE lake.{table.name} SET TBLPROPERTIES ('format-version' = '3')")
    assert planned(table).removed == ()  # each names rows of a data file that has no vector
    filled(table, 1)
    check(table)
    rewritten(table)
    merged = planned(table)
    assert merged.removed
    assert not merged.added
    assert swapped(table, merged)
    check(table)


@pytest.mark.long
def test_what_others_commit_meanwhile_stays(table_of: Callable[..., KeyedTable]) -> None:
    table = table_of()
    filled(table)
    merged = planned(table)
    table.apply({1: None, 2: (0, "later")})
    assert swapped(table, merged)  # on a head that descends from the planned one
    check(table)
    merged = planned(table, many=1)
    rewritten(table)
    assert swapped(table, merged)
    check(table)


@pytest.mark.long
def test_a_commit_in_between_refuses_the_swap(table_of: Callable[..., KeyedTable]) -> None:
    table = table_of()
    filled(table)
    merged = planned(table)
    with pytest.raises(Py4JJavaError, match="CommitFailedException"):
        swapped(table, merged, once("merge.filled", lambda: table.apply({1: None})))
    check(table)


@pytest.mark.long
def test_a_rolled_back_table_keeps_its_deletes(table_of: Callable[..., KeyedTable]) -> None:
    table = table_of()
    filled(table)
    java = table.iceberg.load(table.name)
    before = java.currentSnapshot().snapshotId()
    rewritten(table)
    merged = planned(table, many=99)  # most files name rows of no data file, on this head
    assert merged.removed
    table.spark.sql(f"CALL lake.system.rollback_to_snapshot('{table.name}', {before})")
    assert not swapped(table, merged)
    check(table)


@pytest.mark.long
def test_a_delete_file_that_is_not_what_was_written_is_refused(
    table_of: Callable[..., KeyedTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of()
    filled(table)
    real = merged_deletes.position_files.payload
    monkeypatch.setattr(
        merged_deletes.position_files, "payload", lambda at, paths: real({p: at[p][:-1] for p in at}, paths)
    )
    with pytest.raises(merged_deletes.RowsWouldChange):
        planned(table)
