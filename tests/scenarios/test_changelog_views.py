"""Views of a changelog on a real table: Spark's in the catalog, DuckDB's query, against a replay of what was produced."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frazil.declaration import Changelog, Debezium, Environment, KeyFormat, Limits
from frazil.errors import InvalidInput
from frazil.lake import changelog_views
from frazil.lake.changelog_sql import ChangelogTable, SqlEngine
from frazil.local.duckdb_query import ask
from frazil.schemas.iceberg import row_type
from tests.scenarios.test_upserts import stored
from tests.support import change_replay
from tests.support.debezium_events import PLACEHOLDER, Source
from tests.support.shop import Shop
from tests.support.state_replay import EPOCH_MS, StateReplay

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
ShopOf = Callable[..., Shop]
EPOCH = datetime.fromtimestamp(EPOCH_MS / 1000, UTC)
SHOWN = ("_kafka_key", "user", "_op", "_kafka_partition", "_kafka_offset")


def changelog(shop: Shop) -> ChangelogTable:
    table, iceberg = shop.pipeline.table.identifier, shop.job().iceberg
    loaded = iceberg.load(table)
    return ChangelogTable.of(table, row_type(iceberg.schema_json(loaded)), loaded.properties())


def create_views(shop: Shop) -> str:
    """Create the views, and return the name of the table, to which theirs add something."""
    catalog, table = shop.job().iceberg.name, shop.pipeline.table.identifier
    changelog_views.create(shop.spark, changelog_views.statements(changelog(shop), SqlEngine.SPARK, catalog, table))
    return f"{catalog}.{table}"


def by_spark(shop: Shop, query: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows = shop.spark.sql(query).toArrow().to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)


def by_duckdb(shop: Shop, query: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    listed = ", ".join(f'q."{name}"' if not name.startswith("valid") else f"epoch_us(q.{name})" for name in columns)
    _, rows = ask(stored(shop).metadata_location, f"SELECT {listed} FROM ({query}) q")
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


def flat(intervals: list[change_replay.Interval]) -> list[tuple[Any, ...]]:
    return sorted(((*values, begin, end) for values, begin, end in intervals), key=repr)


def test_a_view_has_the_interval_of_each_row(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format=KeyFormat.TEXT, limits=Limits(first_rows=40, max_rows=40))
    replay, chosen, rows = StateReplay(shop), random.Random(7), []
    for number in range(60):
        key, word = chosen.randrange(4), None if chosen.random() < 0.3 else f"w{number}"
        at = max(0, number // 2 + chosen.randrange(-5, 5))
        made = replay.produce(key, word, at=at, partition=None if chosen.random() < 0.8 else 1 - key % 2)
        rows.append(
            {
                "_kafka_key": f"k{key}",
                "user": word,
                "_op": "d" if word is None else "w",
                "_kafka_partition": made.partition,
                "_kafka_offset": made.offset,
                "_changed_at": EPOCH + timedelta(seconds=at),
            }
        )
    shop.drain()
    name, columns = create_views(shop), (*SHOWN, "valid_from", "valid_to")
    wanted = flat(change_replay.intervals(rows, ["_kafka_key"], SHOWN))
    assert by_spark(shop, f"SELECT * FROM {name}__history", columns) == wanted
    assert by_duckdb(shop, changelog(shop).history(SqlEngine.DUCKDB, "lake_table"), columns) == wanted
    now = sorted(change_replay.state(rows, ["_kafka_key"], SHOWN), key=repr)
    assert by_spark(shop, f"SELECT * FROM {name}__state", SHOWN) == now
    for at in ({0: 9}, {0: 13, 1: 5}):
        left = change_replay.landed(rows, at)
        before = sorted(change_replay.state(left, ["_kafka_key"], SHOWN), key=repr)
        for engine, run, table in ((SqlEngine.SPARK, by_spark, name), (SqlEngine.DUCKDB, by_duckdb, "lake_table")):
            assert run(shop, changelog(shop).state(engine, table, at), SHOWN) == before


def test_a_state_at_a_value_of_the_order(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(order_by="_kafka_timestamp"), key_format=KeyFormat.TEXT)
    replay = StateReplay(shop, ordered_by="at")
    chosen = random.Random(11)
    for number in range(40):
        word = None if chosen.random() < 0.3 else f"w{number}"
        replay.produce(chosen.randrange(3), word, at=chosen.randrange(20), partition=chosen.randrange(2))
    shop.drain()
    name = create_views(shop)
    for moment in range(-1, 21):
        at = f"timestamp_millis({EPOCH_MS + moment * 1000})"
        query = f"SELECT * FROM {name}__history WHERE valid_from <= {at} AND (valid_to > {at} OR valid_to IS NULL)"
        so_far = [record for record in replay.records if record.at <= moment]
        wanted = {f"k{key}": row.word for key, row in replay.rows(so_far).items() if row.deleted_at is None}
        assert by_spark(shop, query, ("_kafka_key", "user")) == sorted(wanted.items())


def test_the_state_of_change_data_is_that_of_the_source(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format=KeyFormat.AVRO, envelope=Debezium())
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


def test_views_follow_a_new_column_when_they_are_created_again(shop_of: ShopOf) -> None:
    shop = shop_of(write=Changelog(), key_format=KeyFormat.TEXT)
    replay = StateReplay(shop)
    replay.produce(1, "first")
    shop.drain()
    name = create_views(shop)
    shop.spark.sql(f"ALTER TABLE {name} ADD COLUMN more int")
    assert "more" not in shop.spark.table(f"{name}__history").columns
    assert shop.spark.table(f"{name}__history").count() == 1
    create_views(shop)
    assert "more" in shop.spark.table(f"{name}__history").columns


def test_a_service_without_views_is_named(shop_of: ShopOf, rest_lake: Environment) -> None:
    shop = shop_of(write=Changelog(), key_format=KeyFormat.TEXT)
    shop.lake = rest_lake
    StateReplay(shop).produce(1, "first")
    shop.drain()
    with pytest.raises(InvalidInput, match="Server does not support endpoint") as refused:
        create_views(shop)
    assert "run the command without --create" in str(refused.value)
