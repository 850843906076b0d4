"""Tables of current state on the other two catalogs: REST on an object store, and Glue with its versions enforced."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Changelog, KeyFormat, Upsert
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


# The object store of the REST catalog refuses files that end in `.puffin` in its table buckets: version 3 has its data elsewhere.
@pytest.mark.long
@pytest.mark.parametrize(
    ("catalog", "version"),
    [
        *(
            pytest.param(lake, version, marks=pytest.mark.long)
            for lake, version in (("rest_lake", 2), ("rest_lake", 3), ("glue_lake", 2))
        ),
        ("glue_lake", 3),
    ],
)
def test_a_state_lands_is_fenced_compacted_and_proven(
    shop_of: Callable[..., Shop], catalog: str, version: int, tmp_path: Path
) -> None:
    shop = shop_of(write=Upsert(), key_format=KeyFormat.TEXT, table={"format_version": version})
    schema_id, state = shop.register(), dict[int, str]()

    def produce(word: str, numbers: range, gone: int) -> None:
        for number in numbers:
            value = avro(ORDER, {"order_id": number, "user": word, "amount": None})
            shop.produce([frame(schema_id, value)], partition=number % 2, key=f"k{number}".encode())
            state[number] = word
        shop.produce([None], partition=gone % 2, key=f"k{gone}".encode())
        state.pop(gone, None)

    produce("first", range(10), 3)
    shop.drain()
    check(shop, state)
    produce("second", range(5, 12), 0)
    met: list[str] = []

    def twin(reached: str) -> None:
        if reached == "publish.filled" and not met:
            met.append(reached)
            shop.drain()

    assert shop.drain(failpoint=twin).fenced
    check(shop, state)
    target = Target(shop.pipeline, is_dead_letter_table=False)
    assert compact(MaintenanceRun(shop.job(), Policy(grace_seconds=0)), target, Lease.of({})).ended is Status.DONE
    produce("third", range(4, 8), 9)
    if catalog == "rest_lake":  # a process of its own, and a bucket of its own for data of version 3
        died = shop.process(tmp_path, failpoints="publish.filled=kill")
        assert died.wait(600) == -signal.SIGKILL, died.communicate()
    shop.drain()
    check(shop, state)
    if (catalog, version) == ("rest_lake", 3):
        assert places(shop) == {"lake parquet", "lake puffin"}
        looked = orphans(MaintenanceRun(shop.job()), target, remove=True)  # nothing is three days old
        assert (looked.ended, looked.files_removed) == (Status.DONE, 0)


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
    narrow = {**ORDER, "fields": [{"name": "order_id", "type": "int"}, *ORDER["fields"][1:]]}  # type: ignore[index]
    for schema, word, numbers in ((narrow, "first", [*range(6)]), (ORDER, "second", [*range(3, 6), 2**40])):
        schema_id = shop.register(schema)
        for number in numbers:
            value = avro(schema, {"order_id": number, "user": word, "amount": None})
            shop.produce([frame(schema_id, value)], partition=number % 2, key=None)
            state[number] = word
        shop.drain()
        check(shop, state)
