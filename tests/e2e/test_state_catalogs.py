"""Tables of current state on the other two catalogs: REST on an object store, and Glue with its versions enforced."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Changelog, KeyFormat, Limits, Upsert
from frazil.declaration.environment import Environment
from frazil.lake.read.stored_tables import Lake
from frazil.local.duckdb_query import ask
from frazil.local.services import LocalServices
from frazil.maintain.compact import compact
from frazil.maintain.lease import Lease
from frazil.maintain.orphans import orphans
from frazil.maintain.result import Status
from frazil.maintain.target import MaintenanceRun, Policy, Target
from tests.support import oracle
from tests.support.concurrent_drivers import run_both
from tests.support.paused_driver import paused
from tests.support.shop import ORDER, Shop, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.fixture
def lake(request: pytest.FixtureRequest, catalog: str) -> Environment:
    chosen: Environment = request.getfixturevalue(catalog)
    return chosen


@pytest.fixture
def shop_of(local_world: LocalServices, spark: SparkSession, lake: Environment, name: str) -> Callable[..., Shop]:
    """Makes the test's shop on that catalog."""

    def make(**declared: Any) -> Shop:
        return Shop(local_world, spark, lake, name, **declared)

    return make


def check(shop: Shop, state: dict[int, str]) -> None:
    assert sorted((row["order_id"], row["user"]) for row in shop.landed()) == sorted(state.items())
    found = verify(shop.pipeline, Lake(shop.lake, Secrets({}).read), deep=True, wait=lambda seconds: None)
    assert found.outcome == "proven", found.findings
    table = oracle.table(shop.lake, shop.pipeline.table.identifier)
    store, resolve = shop.lake.object_store, Secrets({}).read
    question = "SELECT order_id, user FROM lake_table ORDER BY order_id"
    assert ask(table.metadata_location, question, store=store, resolve=resolve)[1] == sorted(state.items())


def places(shop: Shop) -> set[str]:
    """Return the beginnings of where the live files are, and the files' suffixes."""
    found = oracle.table(shop.lake, shop.pipeline.table.identifier).inspect.all_files().to_pylist()
    return {f"{file['file_path'].split('/')[2]} {file['file_path'].rpartition('.')[2]}" for file in found}


class Changes:
    """A topic of keyed orders, and the state that they make."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.schema_id, self.state = shop, shop.register(), dict[int, str]()

    def produce(self, word: str, numbers: Iterable[int], gone: Iterable[int] = ()) -> None:
        """Write rows of these numbers with a word; then delete others."""
        for number in numbers:
            value = avro(ORDER, {"order_id": number, "user": word, "amount": None})
            self._put(number, frame(self.schema_id, value))
            self.state[number] = word
        for number in gone:
            self._put(number, None)
            self.state.pop(number, None)

    def _put(self, number: int, value: bytes | None) -> None:
        self.shop.produce([value], partition=number % 2, key=f"k{number}".encode())


def fenced(shop: Shop, folder: Path, step: str) -> None:
    """Run a driver in a process of its own, which waits at a step while another one lands all records."""
    with paused(shop, folder, step) as driver:
        shop.drain()
    assert driver.ended("fenced", "batch_committed") == ["fenced"]


def killed(shop: Shop, folder: Path, step: str) -> None:
    """Run a driver in a process of its own, which is killed at a step."""
    died = shop.process(folder, failpoints=f"{step}=kill")
    out, log = died.communicate(timeout=600)
    assert died.returncode == -signal.SIGKILL, out + log


# The object store of the REST catalog refuses files that end in `.puffin` in its table buckets: version 3 has its data elsewhere.
@pytest.mark.long
@pytest.mark.parametrize(
    ("catalog", "version"),
    [
        ("rest_lake", 2),
        ("rest_lake", 3),
        ("glue_lake", 2),
        ("glue_lake", 3),
    ],
)
def test_a_state_lands_is_fenced_compacted_and_proven(
    shop_of: Callable[..., Shop], catalog: str, version: int, tmp_path: Path
) -> None:
    shop = shop_of(write=Upsert(), key_format=KeyFormat.TEXT, table={"format_version": version})
    changes = Changes(shop)
    changes.produce("first", range(10), gone=[3])
    shop.drain()
    check(shop, changes.state)
    changes.produce("second", range(5, 12), gone=[0])
    met: list[str] = []

    def twin(reached: str) -> None:
        if reached == "publish.filled" and not met:
            met.append(reached)
            shop.drain()

    assert shop.drain(failpoint=twin).fenced
    check(shop, changes.state)
    target = Target(shop.pipeline, is_dead_letter_table=False)
    assert compact(MaintenanceRun(shop.job(), Policy(grace_seconds=0)), target, Lease.of({})).ended is Status.DONE
    changes.produce("third", range(4, 8), gone=[9])
    killed(shop, tmp_path, "publish.filled")
    shop.drain()
    check(shop, changes.state)
    if (catalog, version) == ("rest_lake", 3):
        assert places(shop) == {"lake parquet", "lake puffin"}
        looked = orphans(MaintenanceRun(shop.job()), target, remove=True)  # nothing is three days old
        assert (looked.ended, looked.files_removed) == (Status.DONE, 0)


@pytest.mark.long
@pytest.mark.parametrize(("catalog", "version"), [("lake_environment", 2), ("rest_lake", 3), ("glue_lake", 2)])
def test_processes_that_are_killed_or_fenced_leave_the_state_right(
    shop_of: Callable[..., Shop], version: int, tmp_path: Path
) -> None:
    shop = shop_of(write=Upsert(), key_format=KeyFormat.TEXT, table={"format_version": version})
    changes = Changes(shop)
    changes.produce("first", range(10))
    shop.drain()
    for number, step in enumerate(("publish.searched", "publish.filled")):
        for event, run in (("killed", killed), ("fenced", fenced)):
            folder = tmp_path / f"{event} at {step}"
            folder.mkdir()
            changes.produce(f"{event} at {step}", range(number + 4, number + 12), gone=range(number, number + 2))
            run(shop, folder, step)
            shop.drain()
            check(shop, changes.state)


@pytest.mark.long
@pytest.mark.parametrize("catalog", ["lake_environment", "rest_lake", "glue_lake"])
def test_two_processes_that_run_freely_share_a_state(shop_of: Callable[..., Shop], tmp_path: Path) -> None:
    shop = shop_of(write=Upsert(), key_format=KeyFormat.TEXT, limits=Limits(first_rows=30, max_rows=30))
    changes = Changes(shop)
    for round_ in range(10):
        changes.produce(f"of round {round_}", range(round_, round_ + 25), gone=range(round_, round_ + 5))
    results = run_both(shop, tmp_path)
    assert sum(result["batches"] for result in results) >= 10, results
    assert sum(result["fenced"] for result in results) >= 1, results
    check(shop, changes.state)


@pytest.mark.long
@pytest.mark.parametrize("catalog", ["rest_lake", "glue_lake"])
def test_a_changelog_lands_is_fenced_compacted_and_proven(shop_of: Callable[..., Shop]) -> None:
    shop = shop_of(write=Changelog(), key_format=KeyFormat.TEXT)
    schema_id, met = shop.register(), list[str]()

    def produce(word: str | None, numbers: range) -> None:
        for number in numbers:
            value = avro(ORDER, {"order_id": number, "user": word, "amount": None}) if word is not None else None
            framed = frame(schema_id, value) if value is not None else None
            shop.produce([framed], partition=number % 2, key=f"k{number}".encode())

    def twin(reached: str) -> None:
        if reached == "publish.filled" and not met:
            met.append(reached)
            shop.drain()

    produce("first", range(10))
    shop.drain()
    produce(None, range(4, 7))
    assert shop.drain(failpoint=twin).fenced
    target = Target(shop.pipeline, is_dead_letter_table=False)
    assert compact(MaintenanceRun(shop.job(), Policy(grace_seconds=0)), target, Lease.of({})).ended is Status.DONE
    produce("again", range(5))
    shop.drain()
    shop.assert_each_record_once()
    found = verify(shop.pipeline, Lake(shop.lake, Secrets({}).read), deep=True, wait=lambda seconds: None)
    assert found.outcome == "proven", found.findings
    ops = sorted((row["_kafka_key"], row["_kafka_offset"], row["_op"]) for row in shop.landed())
    assert [op for key, _, op in ops if key == "k4"] == ["w", "d", "w"]


@pytest.mark.long
@pytest.mark.parametrize(("catalog", "version"), [("rest_lake", 2), ("glue_lake", 3)])
def test_columns_of_the_value_are_a_key_that_widens(shop_of: Callable[..., Shop], version: int) -> None:
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
