"""Publishing on a real table: each row of the table in docs/exactly-once.md, and what stands between two drivers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.errors import CommitRefused, Fenced, RolledBack, TableReplaced
from frazil.lake import layout, tables
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.request import CommitRequest
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.last_records import LastRecords
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts
from frazil.lake.stage import Staged, stage
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.support import oracle
from tests.support.jobs import job

pytestmark = pytest.mark.spark
ROW = Struct((Field("a", Primitive(Kind.LONG)), Field("b", Primitive(Kind.STRING))))


class Table:
    """A scratch table, and batches of ten rows for it."""

    def __init__(self, spark: SparkSession, iceberg: Iceberg, environment: Environment, name: str) -> None:
        self.spark, self.iceberg, self.environment, self.name = spark, iceberg, environment, f"publish.{name}"
        self.create()

    def create(self) -> None:
        tables.create(
            self.iceberg,
            self.name,
            ROW,
            properties=layout.properties(
                format_version=2, target_file_size_bytes=1 << 20, keep_snapshots=5, offset_columns=(), declared={}
            ),
        )

    def staged(self, unique_id: str = "id", at: float = 1000.0) -> Staged:
        rows = self.spark.range(10).selectExpr("id as a", "'x' as b")
        return stage(self.iceberg, self.name, rows, unique_id=unique_id, at=at)

    def rows(self) -> int:
        return len(oracle.rows(self.environment, self.name))

    def publish(
        self,
        staged: Staged,
        batch: CommitRequest,
        clock: float = 1001.0,
        failpoint: Callable[[str], None] = lambda s: None,
    ) -> bool:
        return commit(job(self.iceberg, clock=lambda: clock, failpoint=failpoint), staged, batch).found


@pytest.fixture
def table(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str) -> Table:
    return Table(spark, iceberg, lake_environment, name)


def batch(held: int | None, end: int, run: str = "me", start: int | None = None) -> CommitRequest:
    def offsets(at: int) -> Offsets:
        return Offsets("orders", "T1", {0: at})

    return CommitRequest(
        pipeline="p",
        run=run,
        version="1",
        start=offsets(start if start is not None else held or 0),
        end=offsets(end),
        committed=None if held is None else offsets(held),
        topic_id="T1",
        counts=Counts(read=10, written=10),
    )


def test_rows_and_offsets_are_one_snapshot(table: Table) -> None:
    table.publish(table.staged(), batch(None, 10))
    found = oracle.table(table.environment, table.name)
    (snapshot,) = found.snapshots()
    assert snapshot.summary is not None
    assert snapshot.summary[ledger.END] == str(Offsets("orders", "T1", {0: 10}))
    assert snapshot.summary["added-records"] == "10"
    assert found.refs()["frazil_p"].snapshot_id == snapshot.snapshot_id


def test_a_lost_answer_is_found_behind_later_commits(table: Table) -> None:
    first = table.staged()
    table.publish(first, batch(None, 10))
    table.publish(table.staged("second"), batch(10, 20))
    assert table.publish(first, batch(None, 10))
    assert table.rows() == 20
    tag = oracle.table(table.environment, table.name).refs()["frazil_p"]
    assert tag.max_ref_age_ms == 2**63 - 1, "it expires by age"


@pytest.mark.parametrize("held", [None, 10], ids=["before the first tag", "later"])
@pytest.mark.parametrize("step", ["publish.decided", "publish.filled"])
def test_a_twin_between_base_and_commit_is_met_on_the_next_try(table: Table, step: str, held: int | None) -> None:
    if held:
        table.publish(table.staged("before"), batch(None, held))
    mine, twins = table.staged(), table.staged("twin")
    at = held or 0

    def twin_commits(reached: str) -> None:
        if reached == step and entry_end(table) == held:
            table.publish(twins, batch(held, at + 10, run="twin"))

    with pytest.raises(Fenced, match="run twin committed first"):
        table.publish(mine, batch(held, at + 10), failpoint=twin_commits)
    assert table.rows() == at + 10


def entry_end(table: Table) -> int | None:
    last = entry(table.iceberg.load(table.name), "p")
    return last.end.at[0] if last and last.end else None


def test_another_writers_commit_in_between_is_no_reason_to_give_up(table: Table) -> None:
    table.publish(table.staged("before"), batch(None, 10))
    disturbed: list[str] = []

    def compactor(reached: str) -> None:
        if reached == "publish.filled" and not disturbed:
            disturbed.append(reached)
            table.iceberg.load(table.name).updateProperties().set("touched", "yes").commit()

    table.publish(table.staged(), batch(10, 20), failpoint=compactor)
    assert disturbed
    assert table.rows() == 20


def test_what_iceberg_refuses_is_no_outage(table: Table) -> None:
    """Another engine set a property of a column that does not exist; Iceberg's Java library refuses each change of properties."""
    table.publish(table.staged("before"), batch(None, 10))
    with oracle.table(table.environment, table.name).transaction() as change:
        change.set_properties({"write.metadata.metrics.column.nothing": "full"})
    made = batch(10, 20)
    last = LastRecords("T1")
    tries: list[str] = []
    with pytest.raises(CommitRefused, match=r"ValidationException.*could not find column nothing"):
        table.publish(table.staged(), replace(made, end=replace(made.end, last=last)), failpoint=tries.append)
    assert tries == ["publish.decided"]
    assert table.rows() == 10


def test_a_branch_in_the_place_of_the_tag_is_no_outage(table: Table) -> None:
    table.publish(table.staged("before"), batch(None, 10))
    refs = table.iceberg.load(table.name).manageSnapshots()
    head = table.iceberg.load(table.name).currentSnapshot().snapshotId()
    refs.removeTag("frazil_p").createBranch("frazil_p", head).commit()
    with pytest.raises(CommitRefused, match="frazil_p is a branch not a tag"):
        table.publish(table.staged(), batch(10, 20))
    assert table.rows() == 10


def test_a_table_created_again_is_not_written(table: Table) -> None:
    staged = table.staged()
    table.iceberg.drop(table.name, purge=False)
    table.create()
    with pytest.raises(TableReplaced):
        table.publish(staged, batch(None, 10))
    assert table.rows() == 0


def test_a_column_added_again_under_its_name_stages_again(table: Table) -> None:
    staged = table.staged()
    table.iceberg.load(table.name).updateSchema().deleteColumn("b").commit()
    table.iceberg.load(table.name).updateSchema().addColumn(
        "b",
        table.iceberg.schema(
            {"type": "struct", "fields": [{"id": 1, "name": "b", "required": False, "type": "string"}]}
        )
        .columns()
        .get(0)
        .type(),
    ).commit()
    with pytest.raises(StageAgain):
        table.publish(staged, batch(None, 10))


def test_a_rollback_by_hand_stops_until_somebody_decides(table: Table) -> None:
    table.publish(table.staged("1"), batch(None, 10))
    first = table.iceberg.load(table.name).currentSnapshot().snapshotId()
    table.publish(table.staged("2"), batch(10, 20))
    table.iceberg.load(table.name).manageSnapshots().rollbackTo(first).commit()
    with pytest.raises(RolledBack, match="frazil accept p rolled-back"):
        table.publish(table.staged("3"), batch(20, 30))
    assert table.rows() == 10
    table.spark.sql(f"INSERT INTO lake.{table.name} VALUES (1, 'by hand')")
    with pytest.raises(RolledBack):
        table.publish(table.staged("fork"), batch(20, 30))
    table.publish(table.staged("4"), replace(batch(20, 30), over_rollback=True))
    assert table.rows() == 21


@pytest.mark.long
def test_rows_added_by_others_after_the_tag_are_no_rollback(table: Table) -> None:
    table.publish(table.staged("1"), batch(None, 10))
    for _ in range(3):
        table.spark.sql(f"INSERT INTO lake.{table.name} VALUES (1, 'by hand')")
    table.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{table.name}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )
    table.publish(table.staged("2"), batch(10, 20))
    assert table.rows() == 23


def test_a_batch_staged_hours_ago_is_staged_again(table: Table) -> None:
    with pytest.raises(StageAgain, match="hours ago"):
        table.publish(table.staged(at=0.0), batch(None, 10), clock=7 * 3600.0)


def test_a_file_that_orphan_removal_ate_is_noticed_on_a_late_try(table: Table) -> None:
    staged = table.staged(at=0.0)
    table.iceberg.load(table.name).io().deleteFile(staged.files[0].location())
    with pytest.raises(StageAgain, match="1 staged files are gone"):
        table.publish(staged, batch(None, 10), clock=61.0)
    assert table.rows() == 0


def test_staging_leaves_nothing_in_memory(table: Table) -> None:
    table.staged()
    loaded = table.iceberg.load(table.name)
    assert table.iceberg.table_cache().size() == 0
    assert table.iceberg.coordinator().fetchSetIds(loaded).isEmpty()
