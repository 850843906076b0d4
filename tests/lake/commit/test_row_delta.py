"""Rows, deletes and offsets in one commit: what stands between a batch and whoever commits beside it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.errors import CatalogUnavailable, CommitRefused, Fenced
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.replaced_rows import SearchFailed, row_delta
from frazil.lake.delete_files import java_writers
from frazil.lake.delete_files.java_writers import tasks
from frazil.lake.iceberg_java import Iceberg, message, thrown
from frazil.lake.layout import FEW_MANIFESTS
from frazil.lake.ledger import entry as ledger
from tests.support import oracle
from tests.support.jobs import job, once
from tests.support.keyed_table import KeyedTable

pytestmark = pytest.mark.spark

STEPS = ("publish.decided", "publish.searched", "publish.filled")
FIRST = {k: (k % 2, "first") for k in range(12)}
SECOND = {**{k: (k % 2, "second") for k in range(8, 15)}, 1: None, 2: None}


@pytest.fixture
def table_of(
    spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str
) -> Callable[[int], KeyedTable]:
    return lambda version: KeyedTable(spark, iceberg, lake_environment, f"delta.{name}", version).create()


@pytest.fixture
def table(table_of: Callable[[int], KeyedTable]) -> KeyedTable:
    made = table_of(2)
    made.apply(FIRST)
    return made


def test_rows_deletes_and_offsets_are_one_snapshot(table: KeyedTable) -> None:
    before = len(oracle.table(table.environment, table.name).snapshots())
    published = table.apply(SECOND)
    found = oracle.table(table.environment, table.name)
    assert len(found.snapshots()) == before + 1
    newest = found.snapshots()[-1]
    assert newest.snapshot_id == published.snapshot_id == found.refs()["frazil_p"].snapshot_id
    assert newest.summary is not None
    assert newest.summary[ledger.END] == str(table.request(1, 2).end)
    assert (newest.summary["added-records"], newest.summary["added-position-deletes"]) == ("7", "6")
    table.check()


@pytest.mark.long
def test_a_table_keeps_few_manifests(table: KeyedTable) -> None:
    for number in range(12):
        table.apply({number: (0, f"changed {number}")})
    loaded = table.iceberg.load(table.name)
    kept = [str(each.content()) for each in loaded.currentSnapshot().allManifests(loaded.io())]
    assert 0 < kept.count("DATA") < FEW_MANIFESTS
    assert 0 < kept.count("DELETES") < FEW_MANIFESTS
    table.check()


@pytest.mark.long
def test_a_batch_that_changes_nothing_moves_the_offsets(table: KeyedTable) -> None:
    table.apply({77: None})
    assert table.held == 2
    newest = oracle.table(table.environment, table.name).snapshots()[-1].summary
    assert newest is not None
    assert newest.operation.value == "append"
    table.check()


def test_only_deletes(table: KeyedTable) -> None:
    table.apply(dict.fromkeys(range(12)))
    table.check()
    assert table.size() == 0


def compact_and_expire(table: KeyedTable) -> None:
    table.compact()
    table.expire()


EVENTS: dict[str, Callable[[KeyedTable], object]] = {
    "compaction": KeyedTable.compact,
    "deletes are rewritten": KeyedTable.rewrite_deletes,
    "a row is inserted": lambda table: table.insert(9, (1, "by another engine")),
    "a row is deleted": lambda table: table.delete(9),
    "a column is added": lambda table: table.spark.sql(f"ALTER TABLE {table.path} ADD COLUMN c{uuid.uuid4().hex} int"),
    "snapshots expire": KeyedTable.expire,
    "compaction and expiry": compact_and_expire,
}

SHORT = (2, "publish.searched", "compaction and expiry")


@pytest.mark.parametrize(
    ("version", "event", "step"),
    [
        pytest.param(
            version,
            event,
            step,
            marks=() if (version, step, event) == SHORT else pytest.mark.long,
            id=f"v{version}-{event}-{step}",
        )
        for version in (2, 3)
        for event in EVENTS
        for step in STEPS
        if (version, event) != (3, "deletes are rewritten")  # Iceberg rewrites no vectors
    ],
)
def test_another_client_commits_in_between(
    table_of: Callable[[int], KeyedTable], version: int, event: str, step: str
) -> None:
    table = table_of(version)
    table.apply(FIRST)
    table.apply({3: None, 4: (0, "again")})  # so that a vector or a delete file is there already
    batch = table.staged(SECOND)
    table.publish(batch, failpoint=once(step, lambda: EVENTS[event](table)))
    table.expect(SECOND)
    table.check()
    table.apply(dict.fromkeys(range(0, 16, 3), (0, "third")))
    table.check()


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("step", STEPS)
def test_a_twin_wins_in_between(table_of: Callable[[int], KeyedTable], version: int, step: str) -> None:
    table = table_of(version)
    table.apply(FIRST)
    mine, twins = table.staged(SECOND), table.staged(SECOND)
    with pytest.raises(Fenced):
        table.publish(mine, failpoint=once(step, lambda: table.publish(twins, run="twin")))
    table.expect(SECOND)
    table.check()


def failing(table: KeyedTable, changes: Any, times: int) -> list[int]:
    """Have the search of a batch's rows fail so many times as a Spark job does; return the heads that it is called with."""
    search, heads = changes.on, list[int]()

    def on(loaded: Any, head: int, until: int = 0) -> Any:
        heads.append(head)
        if len(heads) <= times:
            table.spark.sql(f"SELECT raise_error('try {len(heads)}')").collect()
        return search(loaded, head, until)

    changes.on = on
    return heads


@pytest.mark.long
def test_a_search_that_fails_once_is_made_again(table: KeyedTable) -> None:
    """The files of the head that it read may have gone with another commit."""
    batch = table.staged(SECOND)
    failing(table, batch.changes, 1)
    table.publish(batch)
    table.expect(SECOND)
    table.check()


def test_a_search_that_fails_twice_on_one_head_is_an_error_of_its_job(table: KeyedTable) -> None:
    batch = table.staged(SECOND)
    heads = failing(table, batch.changes, 100)
    with pytest.raises(SearchFailed, match="try 2"):
        table.publish(batch)
    assert len(heads) == 2
    table.check()


@pytest.mark.long
def test_a_table_that_never_stands_still_is_an_outage(table: KeyedTable) -> None:
    touched: list[str] = []

    def disturb(step: str) -> None:
        if step == "publish.filled":
            touched.append(step)
            table.iceberg.load(table.name).updateProperties().set("touched", str(len(touched))).commit()

    with pytest.raises(CatalogUnavailable, match="in 20 tries no other commit changed the table's head") as refused:
        table.publish(table.staged(SECOND), failpoint=disturb)
    assert refused.value.what.startswith("the commit did not succeed: ")
    table.check()


def test_a_batch_refused_late_leaves_no_row_and_loses_none(table: KeyedTable) -> None:
    """The rows stay staged: the batch is committed by the next try, on another head."""

    def fails(step: str) -> None:
        if step == "publish.filled":
            raise InterruptedError

    batch = table.staged(SECOND)
    with pytest.raises(InterruptedError):
        table.publish(batch, failpoint=fails)
    table.check()
    table.compact()
    table.publish(batch)
    table.expect(SECOND)
    table.check()


@pytest.mark.long
def test_a_delete_file_that_is_gone_is_made_again(table: KeyedTable) -> None:
    """The staged rows stay; a staged file that is gone has the batch staged again."""
    batch = table.staged(SECOND)
    loaded = table.iceberg.load(table.name)
    deletes = batch.changes.on(loaded, loaded.currentSnapshot().snapshotId())
    loaded.io().deleteFile(deletes.made[0])
    late = job(table.iceberg, run="me", clock=lambda: 1100.0)
    commit(late, batch.staged, table.request(1, 2), changes=batch.changes)
    table.expect(SECOND)
    table.check()
    batch = table.staged({3: None, 4: (0, "third")})
    loaded.io().deleteFile(batch.staged.files[0].location())
    with pytest.raises(StageAgain, match="1 staged files are gone"):
        commit(late, batch.staged, table.request(2, 3), changes=batch.changes)
    table.check()


def delete_by_position(table: KeyedTable) -> None:
    properties = "'write.delete.mode' = 'merge-on-read'"
    table.spark.sql(f"ALTER TABLE lake.{table.name} SET TBLPROPERTIES ({properties})")
    table.delete(9)


def drop_a_file(table: KeyedTable) -> None:
    """Remove a data file as a whole, which is an Iceberg operation `delete` without delete files."""
    loaded = table.iceberg.load(table.name)
    (task, *_) = tasks(table.iceberg, loaded, loaded.currentSnapshot().snapshotId(), None).values()
    loaded.newDelete().deleteFile(task.file()).commit()


@pytest.mark.long
@pytest.mark.parametrize(
    ("event", "refusal"),
    [
        pytest.param(KeyedTable.compact, "missing data files", id="validateDataFilesExist"),
        pytest.param(drop_a_file, "missing data files", id="validateDeletedFiles"),
        pytest.param(delete_by_position, "new conflicting delete files", id="validateNoConflictingDeleteFiles"),
        pytest.param(
            lambda table: table.insert(9, (1, "theirs")),
            "conflicting files that can contain records",
            id="validateNoConflictingDataFiles",
        ),
    ],
)
def test_iceberg_itself_refuses_deletes_of_another_head(
    table: KeyedTable, event: Callable[[KeyedTable], None], refusal: str
) -> None:
    """Without the comparison of heads and without the tag; each event would pass without the validation that names it."""
    batch = table.staged(SECOND)
    loaded = table.iceberg.load(table.name)
    deletes = batch.changes.on(loaded, loaded.currentSnapshot().snapshotId())
    event(table)
    delta = row_delta(table.iceberg.load(table.name), deletes)
    for file in batch.staged.files:
        delta.addRows(file)
    with pytest.raises(Py4JJavaError) as refused:
        delta.commit()
    assert thrown(refused.value) == "ValidationException"
    assert refusal in message(refused.value)
    assert "lower_bounds" not in message(refused.value)


@pytest.mark.long
def test_a_vector_beside_an_old_one_stops_the_commit(
    table_of: Callable[[int], KeyedTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg would commit it, and no engine could read the table."""
    table = table_of(3)
    table.apply(FIRST)
    table.apply(dict.fromkeys(range(3)))
    batch = table.staged(dict.fromkeys(range(3, 12)))
    monkeypatch.setattr(java_writers.VectorWriter, "_previous", lambda writer, _: writer._classes.map_of({}))
    with pytest.raises(CommitRefused, match=r"0 of \d old deletion vectors were merged") as refused:
        table.publish(batch)
    assert table.name in refused.value.where
    table.check()
    monkeypatch.undo()
    table.publish(batch)
    table.expect(dict.fromkeys(range(3, 12)))
    table.check()


@pytest.mark.long
def test_a_foreign_delete_of_version_2_is_merged_in_version_3(table: KeyedTable) -> None:
    properties = "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition'"
    table.spark.sql(f"ALTER TABLE lake.{table.name} SET TBLPROPERTIES ({properties})")
    table.delete(9)
    table.spark.sql(f"ALTER TABLE lake.{table.name} SET TBLPROPERTIES ('format-version' = '3')")
    table.state.pop(9)
    table.apply(SECOND)
    table.check()
