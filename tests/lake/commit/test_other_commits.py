"""Who commits beside a pipeline: what is met of other engines, and what an error says of them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.errors import CatalogUnavailable
from frazil.lake.commit import commit_rows_and_offsets as append
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.other_commits import OtherCommit
from frazil.lake.commit.request import Extra
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.ledger import entry as ledger
from frazil.lake.stage import empty_commit
from tests.support.jobs import job, once
from tests.support.keyed_table import KeyedTable

FIRST = {k: (k % 2, "first") for k in range(12)}
SECOND = {**{k: (k % 2, "second") for k in range(8, 15)}, 1: None, 2: None}


@pytest.fixture
def table(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str) -> KeyedTable:
    made = KeyedTable(spark, iceberg, lake_environment, f"others.{name}").create()
    made.apply(FIRST)
    return made


def upkeep(table: KeyedTable) -> None:
    """Commit as maintenance does."""
    change = table.iceberg.load(table.name).newAppend()
    change.set(ledger.UPKEEP, "merge").set(ledger.RUN, "maintainer").commit()


def carried(table: KeyedTable) -> None:
    """Carry the tag on, as maintenance does."""
    request = table.request(table.at, table.at, run="maintainer")
    staged = empty_commit(table.iceberg, table.name, at=1000.0)
    commit(job(table.iceberg, clock=lambda: 1001.0), staged, request, Extra(summary={ledger.UPKEEP: "carry"}))


def other_pipeline(table: KeyedTable) -> None:
    table.iceberg.load(table.name).newAppend().set(ledger.PIPELINE, "q").set(ledger.RUN, "theirs").commit()


@pytest.mark.spark
def test_a_commit_of_another_engine_is_met_once(table: KeyedTable) -> None:
    """Before a batch, though the tag was carried over it, and between search and commit; Frazil's own and rewrites are not."""
    met: list[OtherCommit] = []
    table.insert(20, (1, "theirs"))
    upkeep(table)
    carried(table)
    other_pipeline(table)
    table.compact()
    batch = table.staged(SECOND)
    table.publish(batch, failpoint=once("publish.searched", lambda: table.delete(20)), met=met.append)
    assert [commit.operation for commit in met] == ["append", "overwrite"]
    assert {commit.engine.partition(" ")[0] for commit in met} == {"spark"}
    assert {commit.application for commit in met} == {table.spark.sparkContext.applicationId}
    known = {int(each.snapshotId()) for each in table.iceberg.load(table.name).snapshots()}
    assert {commit.snapshot_id for commit in met} <= known
    table.expect(SECOND)
    table.check()
    table.apply({5: None}, met=met.append)
    assert len(met) == 2


@pytest.mark.long
@pytest.mark.spark
def test_a_ledger_that_is_rebuilt_begins_anew(table: KeyedTable) -> None:
    table.insert(20, (1, "theirs"))
    request = table.request(table.at, table.at)
    staged = empty_commit(table.iceberg, table.name, at=1000.0)
    events = '{"event": "ledger-lost"}'
    commit(job(table.iceberg, clock=lambda: 1001.0), staged, request, Extra(summary={ledger.EVENTS: events}))
    met: list[OtherCommit] = []
    table.publish(table.staged(SECOND), met=met.append)
    assert not met


@pytest.mark.long
@pytest.mark.spark
def test_a_table_that_others_commit_to_all_the_time_names_them(
    table: KeyedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append, "ATTEMPTS", 4)
    events = iter((lambda: table.insert(20, (1, "theirs")), lambda: upkeep(table), lambda: other_pipeline(table)))

    def disturb(step: str) -> None:
        if step == "publish.filled":
            next(events, table.compact)()

    with pytest.raises(CatalogUnavailable) as refused:
        table.publish(table.staged(SECOND), failpoint=disturb)
    what = refused.value.what
    assert "; in 4 tries 3 other commits came first, at last append by spark " in what
    assert f"application {table.spark.sparkContext.applicationId} (snapshot " in what
    assert ", then append by Frazil's run maintainer (snapshot " in what
    assert ", then append by Frazil's run theirs (snapshot " in what


@pytest.mark.parametrize(
    ("operation", "summary", "is_foreign", "text"),
    [
        ("append", {}, True, "append by an unknown engine (snapshot 7)"),
        ("delete", {"engine-name": "trino"}, True, "delete by trino (snapshot 7)"),
        (
            "overwrite",
            {"engine-name": "spark", "engine-version": "4.1.1", "spark.app.id": "local-1"},
            True,
            "overwrite by spark 4.1.1, application local-1 (snapshot 7)",
        ),
        ("replace", {"engine-name": "spark"}, False, "replace by spark (snapshot 7)"),
        ("append", {"engine-name": "spark", ledger.RUN: "r"}, False, "append by Frazil's run r (snapshot 7)"),
        ("append", {ledger.FORMAT: "1"}, False, "append by Frazil (snapshot 7)"),
    ],
)
def test_a_commit_says_who_made_it(operation: str, summary: dict[str, str], is_foreign: bool, text: str) -> None:
    commit = OtherCommit.of(7, operation, summary)
    assert (commit.is_foreign, str(commit)) == (is_foreign, text)
