"""Views of a changelog on a real table: Spark's in the catalog, DuckDB's query, against a replay of what was produced."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Changelog, Debezium, Environment, Limits, Order, Pipeline, Spark, Table, Upsert
from frazil.declaration.catalogs import RestCatalog
from frazil.errors import InvalidInput
from frazil.lake.read.stored_tables import Lake
from frazil.lake.sql import changelog_views
from frazil.lake.sql.changelog_sql import ChangelogTable
from frazil.lake.sql.sql_engine import SqlEngine
from tests.support import extra_catalogs
from tests.support.connect_events import ConnectSource
from tests.support.debezium_events import PLACEHOLDER, Source
from tests.support.documents import written
from tests.support.duckdb_reader import ask
from tests.support.rest_catalog import rest_catalog
from tests.support.shop import Shop, ShopOf
from tests.support.state_replay import EPOCH_MS, StateReplay

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
EPOCH = datetime.fromtimestamp(EPOCH_MS / 1000, UTC)


def changelog(shop: Shop, table: str = "") -> ChangelogTable:
    table, iceberg = table or shop.pipeline.table.identifier, shop.job().iceberg
    loaded = iceberg.load(table)
    return ChangelogTable.of(table, iceberg.schema_json(loaded), loaded.properties())


def create_views(shop: Shop, table: str = "") -> str:
    """Create the views, and return the name of the table, to which theirs add something."""
    catalog, table = shop.job().iceberg.name, table or shop.pipeline.table.identifier
    views = changelog_views.statements(changelog(shop, table), SqlEngine.SPARK, catalog, table)
    changelog_views.create(shop.spark, views)
    return f"{catalog}.{table}"


def by_spark(shop: Shop, query: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows = shop.spark.sql(query).toArrow().to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)


def by_duckdb(shop: Shop, query: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    listed = ", ".join(f'q."{name}"' if not name.startswith("valid") else f"epoch_us(q.{name})" for name in columns)
    _, rows = ask(shop.stored.metadata_location, f"SELECT {listed} FROM ({query}) q")
    instants = [place for place, name in enumerate(columns) if name.startswith("valid")]
    since = datetime(1970, 1, 1, tzinfo=UTC)
    return sorted(
        (
            tuple(
                since + timedelta(microseconds=value) if place in instants and value is not None else value
                for place, value in enumerate(row)
            )
            for row in rows
        ),
        key=repr,
    )


def test_the_state_of_change_data_is_that_of_the_source(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format="avro", envelope=Debezium())
    source = Source(shop)
    for number in range(4):
        source.write("r", number, customer=f"c{number}", note=f"n{number}")
    source.write("u", 1, customer="changed", note=PLACEHOLDER)
    source.write("u", 1, customer="again", note=PLACEHOLDER)
    source.delete(2)
    source.write("u", 3, customer="null", note=None)
    shop.drain()
    name, columns = create_views(shop), ("id", "customer", "note")
    for query, run in (
        (f"SELECT * FROM {name}__state", by_spark),
        (changelog(shop).state(SqlEngine.DUCKDB, "lake_table"), by_duckdb),
    ):
        assert run(shop, query, columns) == sorted(map(tuple, map(dict.values, source.rows.values())))
    source.produce(None, source.event("t", None))
    source.rows.clear()
    source.write("c", 9, customer="behind", note="n9")
    shop.drain()
    assert by_spark(shop, f"SELECT * FROM {name}__state", columns) == [(9, "behind", "n9")]
    assert shop.spark.sql(f"SELECT * FROM {name}__history WHERE valid_to < valid_from").isEmpty()


def test_a_service_without_views_is_named(shop_of: ShopOf, rest_lake: Environment) -> None:
    shop = shop_of(write=Changelog(), key_format="text")
    shop.lake = rest_lake
    StateReplay(shop).produce(1, "first")
    shop.drain()
    with pytest.raises(InvalidInput, match="Server does not support endpoint") as refused:
        create_views(shop)
    assert "run the command without --create" in str(refused.value)


@pytest.fixture(scope="module")
def lake_with_views(
    spark: SparkSession, rest_lake: Environment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Environment]:
    """A lake whose REST service has views, added to the session."""
    with rest_catalog(tmp_path_factory.mktemp("rest"), rest_lake) as environment:
        yield extra_catalogs.added(spark, environment, "lake_with_views")


def test_a_rest_service_with_views_gets_them_by_the_command(
    shop_of: ShopOf, lake_with_views: Environment, tmp_path: Path
) -> None:
    """Another session reads them by REST, and they are replaced by those of a table with one more column."""
    shop = shop_of(write=Changelog(), key_format="text")
    shop.lake = lake_with_views
    replay = StateReplay(shop)
    for key, word, at in ((1, "first", 0), (2, "other", 3), (1, "second", 5), (2, None, 7), (1, "third", 9)):
        replay.produce(key, word, at=at)
    shop.drain()
    options = written(tmp_path, [shop.pipeline], shop.environment)
    command = [sys.executable, "-m", "frazil.cli.main", "history", shop.pipeline.name, "--create", *options]
    command += ["--master", "local[1]"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    table = shop.pipeline.table.identifier
    views = {f"{table.partition('.')[2]}__{kind}" for kind in ("history", "state")}
    assert {line.removeprefix("created ") for line in ended.stdout.splitlines()[-2:]} == views
    assert views_of(lake_with_views, "shop") >= views

    at = {second: EPOCH + timedelta(seconds=second) for second in (0, 3, 5, 7, 9)}
    name, columns = f"{lake_with_views.catalog.name}.{table}", ("_kafka_key", "user", "valid_from", "valid_to")
    assert by_spark(shop, f"SELECT * FROM {name}__history", columns) == [
        ("k1", "first", at[0], at[5]),
        ("k1", "second", at[5], at[9]),
        ("k1", "third", at[9], None),
        ("k2", "other", at[3], at[7]),
    ]
    assert by_spark(shop, f"SELECT * FROM {name}__state", columns[:3]) == [("k1", "third", at[9])]
    shop.spark.sql(f"ALTER TABLE {name} ADD COLUMN more int")
    assert "more" not in shop.spark.table(f"{name}__history").columns
    create_views(shop)
    assert "more" in shop.spark.table(f"{name}__history").columns


def views_of(lake: Environment, namespace: str) -> set[str]:
    """Return the names that the service itself lists."""
    assert isinstance(lake.catalog, RestCatalog)
    with urllib.request.urlopen(f"{lake.catalog.uri}/v1/namespaces/{namespace}/views") as answer:
        return {view["name"] for view in json.load(answer)["identifiers"]}


def beside(shop: Shop, write: Changelog) -> Pipeline:
    """Return the pipeline that lands the same topic as a changelog."""
    pipeline = shop.pipeline
    return replace(pipeline, name=f"{pipeline.name}_log", table=Table(f"shop.{pipeline.name}_log"), write=write)


@pytest.mark.parametrize("order_by", [(), ("version",), ("_kafka_timestamp",)], ids=str)
def test_the_view_of_a_changelog_is_the_state_that_upserts_make(shop_of: ShopOf, order_by: tuple[str, ...]) -> None:
    """Of the same topic, in other batches."""
    deletes = "soft_delete" if order_by else "delete"
    shop = shop_of(
        write=Upsert(order_by=Order(order_by) if order_by else None, on_tombstone=deletes), key_format="text"
    )
    replay, chosen = StateReplay(shop), random.Random(3)
    log = replace(beside(shop, Changelog(order_by=order_by)), engine=Spark(limits=Limits(first_rows=17, max_rows=17)))
    for _ in range(3):
        for number in range(25):
            word = None if chosen.random() < 0.25 and order_by != ("version",) else f"w{number}"
            partition = chosen.randrange(2) if order_by else None
            version = chosen.randrange(50)
            replay.produce(chosen.randrange(6), word, at=chosen.randrange(30), version=version, partition=partition)
        shop.drain()
        shop.drain(log)
        name = create_views(shop, log.table.identifier)
        shown = ("_kafka_key", "user", "version", "_kafka_partition", "_kafka_offset")
        state = [tuple(row[name] for name in shown) for row in shop.landed() if row.get("_deleted_at") is None]
        assert by_spark(shop, f"SELECT * FROM {name}__state", shown) == sorted(state, key=repr)
        proof = verify(log, Lake(shop.lake, Secrets({}).read), deep=True)
        assert proof.outcome == "proven", proof.findings


@pytest.mark.parametrize("relay", [Source, ConnectSource], ids=["avro", "json_schema"])
def test_the_view_of_change_data_is_the_state_that_upserts_make(shop_of: ShopOf, relay: Any) -> None:
    formats = (
        {"key_format": "avro"} if relay is Source else {"key_format": "json_schema", "value_format": "json_schema"}
    )
    shop = shop_of(write=Upsert(), envelope=Debezium(), **formats)
    source, chosen, log = relay(shop), random.Random(4), beside(shop, Changelog())
    for _ in range(2):
        for number in range(30):
            key = chosen.randrange(5)
            if key not in source.rows:
                source.write("c", key, customer=f"c{number}", note=f"n{number}")
            elif chosen.random() < 0.3:
                source.delete(key, tombstone=chosen.random() < 0.5)
            else:
                note = PLACEHOLDER if source.rows[key]["note"] is not None and chosen.random() < 0.5 else f"n{number}"
                source.write("u", key, customer=chosen.choice((None, f"c{number}")), note=note)
        shop.drain()
        shop.drain(log)
        name, columns = create_views(shop, log.table.identifier), ("id", "customer", "note")
        wanted = sorted((tuple(row[column] for column in columns) for row in shop.landed()), key=repr)
        assert by_spark(shop, f"SELECT * FROM {name}__state", columns) == wanted
        assert len(wanted) == len(source.rows)
