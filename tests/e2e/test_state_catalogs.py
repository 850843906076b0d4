"""Upsert tables on the other two catalogs: REST on an object store, and Glue with its versions enforced."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from enum import StrEnum
from functools import partial
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from frazil.clients.secrets import Secrets
from frazil.declaration import Changelog, ErrorMode, Keep, Limits, Upsert
from frazil.declaration.catalogs import RestCatalog
from frazil.declaration.environment import Environment
from frazil.lake.commit import commit_rows_and_offsets as append
from frazil.lake.iceberg_java import Iceberg
from frazil.maintain.orphans import orphans
from frazil.maintain.run import maintain
from frazil.maintain.target import Action, MaintenanceRun, Outcome, Policy, Status
from tests.e2e.test_kills import kill
from tests.lake.commit.test_row_delta import EVENTS, FIRST, SECOND, failing
from tests.scenarios.test_upserts import State
from tests.support import extra_catalogs, oracle
from tests.support.concurrent_drivers import run_both
from tests.support.duckdb_reader import ask
from tests.support.jobs import once
from tests.support.keyed_table import KeyedTable
from tests.support.paused_driver import paused
from tests.support.relay import Answer, Relay
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]


@pytest.fixture
def shop_lake(request: pytest.FixtureRequest, catalog: str) -> Environment:
    chosen: Environment = request.getfixturevalue(catalog)
    return chosen


def check(shop: Shop, state: dict[int, str]) -> None:
    assert sorted((row["order_id"], row["user"]) for row in shop.landed()) == sorted(state.items())
    shop.assert_proven(deep=True)
    table = shop.stored
    store, resolve = shop.lake.object_store, Secrets({}).read
    question = "SELECT order_id, user FROM lake_table ORDER BY order_id"
    assert ask(table.metadata_location, question, store=store, resolve=resolve)[1] == sorted(state.items())


def places(shop: Shop) -> set[str]:
    """Return the beginnings of where the live files are, and the files' suffixes."""
    found = shop.stored.inspect.all_files().to_pylist()
    return {f"{file['file_path'].split('/')[2]} {file['file_path'].rpartition('.')[2]}" for file in found}


def fenced(shop: Shop, folder: Path, step: str) -> None:
    """Run a driver in a process of its own, which waits at a step while another one lands all records."""
    with paused(shop, folder, step) as driver:
        shop.drain()
    assert driver.ended("fenced", "batch_committed") == ["fenced"]


# The object store of the REST catalog refuses files that end in `.puffin` in its table buckets: version 3 has its data elsewhere.
@pytest.mark.parametrize(
    ("catalog", "version"), [("rest_lake", 2), ("rest_lake", 3), ("glue_lake", 2), ("glue_lake", 3)]
)
def test_a_state_lands_is_fenced_compacted_and_proven(
    shop_of: ShopOf, catalog: str, version: int, tmp_path: Path
) -> None:
    shop = shop_of(write=Upsert(), key_format="text", table={"format_version": version})
    state = State(shop).land("first", range(10), gone=[3])
    check(shop, state.now)
    state.write("second", range(5, 12), gone=[0])
    assert shop.drain(failpoint=once("publish.filled", shop.drain)).fenced
    check(shop, state.now)
    assert shop.compact().ended is Status.DONE
    state.write("third", range(4, 8), gone=[9])
    kill(shop, tmp_path, "publish.filled")
    shop.drain()
    check(shop, state.now)
    if (catalog, version) == ("rest_lake", 3):
        assert places(shop) == {"lake parquet", "lake puffin"}
        looked = orphans(MaintenanceRun(shop.job()), shop.target, remove=True)  # nothing is three days old
        assert (looked.ended, looked.files_removed) == (Status.DONE, 0)


@pytest.mark.parametrize(("catalog", "version"), [("lake_environment", 2), ("rest_lake", 3), ("glue_lake", 2)])
def test_processes_that_are_killed_or_fenced_leave_the_state_right(
    shop_of: ShopOf, version: int, tmp_path: Path
) -> None:
    shop = shop_of(write=Upsert(), key_format="text", table={"format_version": version})
    state = State(shop).land("first", range(10))
    for number, step in enumerate(("publish.searched", "publish.filled")):
        for event, run in (("killed", kill), ("fenced", fenced)):
            folder = tmp_path / f"{event} at {step}"
            folder.mkdir()
            state.write(f"{event} at {step}", range(number + 4, number + 12), gone=range(number, number + 2))
            run(shop, folder, step)
            shop.drain()
            check(shop, state.now)


@pytest.mark.parametrize(
    ("catalog", "version", "step"),
    [
        ("rest_lake", 2, "publish.searched"),
        ("rest_lake", 3, "publish.filled"),
        ("glue_lake", 2, "publish.filled"),
        ("glue_lake", 3, "publish.searched"),
    ],
)
def test_another_client_commits_between_search_and_commit(
    spark: SparkSession, shop_lake: Environment, name: str, version: int, step: str
) -> None:
    """Each event of `test_row_delta`. The batch's keys are searched again if the head moved, and only then."""
    iceberg = Iceberg(spark, shop_lake.catalog.name)
    table = KeyedTable(spark, iceberg, shop_lake, f"delta.{name}", version).create()
    table.apply(FIRST)
    moved = set[str]()
    for event, commit in EVENTS.items():
        batch, before = table.staged(SECOND), iceberg.load(table.name).currentSnapshot().snapshotId()
        searched = failing(table, batch.changes, 0)
        table.publish(batch, failpoint=once(step, partial(commit, table)))
        table.expect(SECOND)
        table.check()
        parent = iceberg.load(table.name).currentSnapshot().parentId()
        assert list(dict.fromkeys(searched)) == list(dict.fromkeys((before, parent))), event
        moved |= {event} if parent != before else set()
    assert moved >= {"compaction", "a row is inserted", "a row is deleted", "compaction and expiry"}


COMMIT = re.compile(r"/tables/[^/?]+$")


class Lost(StrEnum):
    """What is lost: the request, so that nothing is committed, or the answer."""

    COMMIT = "commit"
    ANSWER = "answer"


class LosingRelay(Relay):
    """A relay in front of a REST catalog: the client gets `502 Bad Gateway`. `loses` is what it loses next; `lost` is what it has lost."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.loses: Lost | None = None
        self.lost: list[Lost] = []

    def relayed(self, method: str, target: str, headers: Message, ask: Callable[[], Answer]) -> Answer:
        """Lose a commit, once."""
        if self.loses is None or method != "POST" or not COMMIT.search(target):
            return ask()
        loses, self.loses = self.loses, None
        self.lost.append(loses)
        if loses is Lost.ANSWER:
            answer = ask()
            assert answer.status == 200, answer.body
        return Answer(502)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("lost", Lost)
def test_a_commit_of_unknown_state_is_decided_again(
    spark: SparkSession, rest_lake: Environment, name: str, monkeypatch: pytest.MonkeyPatch, lost: Lost, version: int
) -> None:
    thrown, errors = append.thrown, list[str]()

    def noted(error: Py4JJavaError) -> str:
        errors.append(thrown(error))
        return errors[-1]

    monkeypatch.setattr(append, "thrown", noted)
    assert isinstance(rest_lake.catalog, RestCatalog)
    with LosingRelay(rest_lake.catalog.uri) as relay:
        relayed = replace(rest_lake, catalog=replace(rest_lake.catalog, uri=relay.uri))
        lake = extra_catalogs.added(spark, relayed, f"relayed_{name}")
        table = KeyedTable(spark, Iceberg(spark, lake.catalog.name), lake, f"delta.{name}", version).create()
        table.apply(FIRST)
        batch, relay.loses = table.staged(SECOND), lost
        before = len(oracle.table(lake, table.name).snapshots())
        published = table.publish(batch)
        table.expect(SECOND)
        table.check()
        assert len(oracle.table(lake, table.name).snapshots()) == before + 1
        assert (relay.lost, errors, published.found) == ([lost], ["CommitStateUnknownException"], lost is Lost.ANSWER)
        table.apply({3: None, 4: (0, "third")})
        table.check()


@pytest.mark.parametrize(("catalog", "version"), [("rest_lake", 2), ("glue_lake", 3)])
def test_dead_letters_of_a_state_are_decided_by_its_commit(shop_of: ShopOf, version: int, tmp_path: Path) -> None:
    """A driver is killed just before the commit, and one just after it."""
    table = {"format_version": version}
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER, table=table)
    state = State(shop)

    def produce(word: str, numbers: range) -> None:
        state.write(word, numbers, gone=numbers[:1])
        shop.produce([b"bad!!"], key=b"k1")

    produce("first", range(6))
    shop.drain()
    check(shop, state.now)
    before = dict(state.now)
    produce("second", range(3, 9))
    for step, landed in (("publish.filled", before), ("publish.committed", state.now)):
        (tmp_path / step).mkdir()
        kill(shop, tmp_path / step, step)
        assert {row["order_id"]: row["user"] for row in shop.landed()} == landed
        assert len(shop.dead()) == 1
    assert shop.drain().read == 0  # what was decided is not read again
    check(shop, state.now)
    assert len(shop.dead()) == 2


@pytest.mark.parametrize("catalog", ["lake_environment", "rest_lake", "glue_lake"])
def test_two_processes_that_run_freely_share_a_state(shop_of: ShopOf, tmp_path: Path) -> None:
    shop = shop_of(write=Upsert(), key_format="text", limits=Limits(first_rows=30, max_rows=30))
    state = State(shop)
    for round_ in range(10):
        state.write(f"of round {round_}", range(round_, round_ + 25), gone=range(round_, round_ + 5))
    results = run_both(shop, tmp_path)
    assert sum(result["batches"] for result in results) >= 10, results
    assert sum(result["fenced"] for result in results) >= 1, results
    check(shop, state.now)


@pytest.mark.parametrize("catalog", ["lake_environment"])
@pytest.mark.parametrize("version", [2, 3])
def test_two_drivers_and_a_maintainer_that_run_freely_share_a_state(
    shop_of: ShopOf, version: int, tmp_path: Path
) -> None:
    """Each in a process of its own: the maintainer in that of the test."""
    table = {"format_version": version, "snapshots": Keep(2)}
    shop = shop_of(write=Upsert(), key_format="text", limits=Limits(first_rows=30, max_rows=30), table=table)
    state, maintained = State(shop), list[Outcome]()
    for round_ in range(10):
        state.write(f"of round {round_}", range(round_, round_ + 25), gone=range(round_, round_ + 5))

    def maintain_all() -> None:
        run = MaintenanceRun(shop.job(), Policy(grace_seconds=0))
        (outcomes,) = maintain([shop.pipeline], run, lambda _: None, orphans=False).values()
        maintained.extend(outcomes)

    results = run_both(shop, tmp_path, beside=maintain_all)
    assert sum(result["batches"] for result in results) >= 10, results
    assert sum(result["fenced"] for result in results) >= 1, results
    ended = Counter((outcome.action, outcome.ended) for outcome in maintained)
    assert {status for action, status in ended if action is not Action.ORPHANS} <= {Status.DONE, Status.CONFLICT}, ended
    assert any(outcome.files_removed for outcome in maintained if outcome.action is Action.COMPACT), ended
    assert any(outcome.snapshots for outcome in maintained if outcome.action is Action.EXPIRE), ended
    check(shop, state.now)


@pytest.mark.parametrize("catalog", ["rest_lake", "glue_lake"])
def test_a_changelog_lands_is_fenced_compacted_and_proven(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format="text")
    state = State(shop).land("first", range(10))
    state.write("", [], gone=range(4, 7))
    assert shop.drain(failpoint=once("publish.filled", shop.drain)).fenced
    assert shop.compact().ended is Status.DONE
    state.land("again", range(5))
    shop.assert_each_record_once()
    shop.assert_proven(deep=True)
    ops = sorted((row["_kafka_key"], row["_kafka_offset"], row["_op"]) for row in shop.landed())
    assert [op for key, _, op in ops if key == "k4"] == ["w", "d", "w"]


@pytest.mark.parametrize(("catalog", "version"), [("rest_lake", 2), ("glue_lake", 3)])
def test_columns_of_the_value_are_a_key_that_widens(shop_of: ShopOf, version: int) -> None:
    table = {"format_version": version, "partition_by": ("bucket(4, order_id)",)}
    shop = shop_of(write=Upsert(key="order_id"), table=table)
    state: dict[int, str] = {}
    narrow = {**ORDER, "fields": [{"name": "order_id", "type": "int"}, *ORDER["fields"][1:]]}
    for schema, word, numbers in ((narrow, "first", [*range(6)]), (ORDER, "second", [*range(3, 6), 2**40])):
        schema_id = shop.register(schema)
        for number in numbers:
            value = avro(schema, {"order_id": number, "user": word, "amount": None})
            shop.produce([frame(schema_id, value)], partition=number % 2, key=None)
            state[number] = word
        shop.drain()
        check(shop, state)
