"""Trino reads upsert tables, runs the queries of changelogs, and writes as another engine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from frazil.declaration import Changelog, Field, Json, Table, Topic, Upsert, routes
from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment
from frazil.lake.sql.changelog_sql import ChangelogTable
from frazil.lake.sql.sql_engine import SqlEngine
from tests.lake.sql.test_changelog_sql import HOSTILE
from tests.lake.sql.test_order_values import VALUES
from tests.scenarios.test_upserts import State
from tests.support import trino_server
from tests.support.shop import Shop, ShopOf
from tests.support.state_replay import StateReplay
from tests.support.trino_server import Trino

pytestmark = [
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not trino_server.is_installed(), reason=f"Trino is not there: {trino_server.COMMAND} fetches it"
    ),
]


@pytest.fixture(scope="module")
def trino(tmp_path_factory: pytest.TempPathFactory, lake_environment: Environment) -> Iterator[Trino]:
    """A Trino on the lake of the tests."""
    assert isinstance(lake_environment.catalog, LocalCatalog)
    home: Path = tmp_path_factory.mktemp("trino")
    with trino_server.trino(home, lake_environment.catalog) as running:
        yield running


def test_trino_counts_a_topic_beside_the_tables_of_its_route(
    shop_of: ShopOf, lake_environment: Environment, tmp_path: Path
) -> None:
    """Trino reads the topic by itself: each record is in the one table of its type."""
    assert isinstance(lake_environment.catalog, LocalCatalog)
    shop = shop_of()
    topic = Topic(shop.topic, value=Json(columns=("type string", "id long")))
    tables = {name: Table(f"shop.{shop.topic}_{name}") for name in ("a", "b", "rest")}
    to: dict[str | tuple[str, ...], Table] = {name: tables[name] for name in ("a", "b")}
    pipelines = routes(topic, by=Field("type"), to=to, otherwise=tables["rest"])
    for number in range(300):
        shop.produce([f'{{"type": "{"abcd"[number * 7 % 4]}", "id": {number}}}'.encode()])
    assert [one.error for one in shop.drained(*pipelines).values()] == [None] * 3
    kafka = {
        "connector.name": "kafka",
        "kafka.nodes": shop.world.bootstrap,
        "kafka.table-names": shop.topic,
        "kafka.hide-internal-columns": "false",
    }
    parts = (
        f"SELECT '{name}' AS name, _kafka_partition AS p, _kafka_offset AS o FROM lake.{table.identifier}"
        for name, table in tables.items()
    )
    wanted = "CASE json_extract_scalar(_message, '$.type') WHEN 'a' THEN 'a' WHEN 'b' THEN 'b' ELSE 'rest' END"
    with trino_server.trino(tmp_path, lake_environment.catalog, {"kafka": kafka}) as running:
        found = running.ask(
            f"WITH rows AS ({' UNION ALL '.join(parts)}) "
            f"SELECT count(*), count(DISTINCT (_partition_id, _partition_offset)), count_if(name = {wanted}) "
            f'FROM kafka.default."{shop.topic}" LEFT JOIN rows ON p = _partition_id AND o = _partition_offset'
        )
    assert found == [(300, 300, 300)]


def state_of(shop: Shop, trino: Trino) -> list[tuple[int, str]]:
    rows = trino.ask(f'SELECT order_id, "user" FROM lake.{shop.pipeline.table.identifier} ORDER BY order_id')
    return [(int(number), str(word)) for number, word in rows]


@pytest.mark.parametrize("partitions", [(), ("bucket(2, order_id)",)], ids=["plain", "bucket"])
def test_trino_reads_the_state_that_each_commit_leaves(
    shop_of: ShopOf, trino: Trino, partitions: tuple[str, ...]
) -> None:
    shop = shop_of(write=Upsert(), key_format="text", table={"partition_by": partitions})
    state = State(shop)
    for turn in range(4):
        state.land(f"word {turn}", range(turn, turn + 6), gone=[turn + 1])
        assert state_of(shop, trino) == sorted(state.now.items())
    name = shop.pipeline.table.identifier
    assert trino.ask(f"SELECT count(*), count(DISTINCT order_id) FROM lake.{name}") == [(len(state.now),) * 2]
    tag = f"SELECT count(*) FROM lake.{name} FOR VERSION AS OF 'frazil_{shop.pipeline.name}'"
    assert trino.ask(tag) == [(len(state.now),)]


def test_a_rewrite_by_trino_loses_and_brings_back_no_row(shop_of: ShopOf, trino: Trino) -> None:
    """Trino's `optimize` removes the delete files; the next batch is searched in its data files."""
    shop = shop_of(write=Upsert(), key_format="text")
    state = State(shop)
    for turn in range(3):
        state.land(f"word {turn}", range(6), gone=[turn])
    name = f"lake.{shop.pipeline.table.identifier}"
    trino.ask(f"ALTER TABLE {name} EXECUTE optimize")
    assert trino.ask(f'SELECT count(*) FROM {name.rpartition(".")[0]}."{shop.topic}$files" WHERE content <> 0') == [
        (0,)
    ]
    state.check()
    state.put(4, "behind the rewrite")
    state.delete(5)
    state.land("again", [0])
    state.check()
    assert state_of(shop, trino) == sorted(state.now.items())


def test_rows_that_trino_deletes_and_updates_are_found(shop_of: ShopOf, trino: Trino) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    state = State(shop).land("first", range(6))
    trino.ask(f"DELETE FROM lake.{shop.pipeline.table.identifier} WHERE order_id = 3")
    assert shop.verified(deep=True).outcome == "not_proven"
    state.put(3, "landed again")
    state.land("second", [4])
    assert state_of(shop, trino) == sorted(state.now.items())


def test_trino_reads_values_of_an_order_as_they_were_given(trino: Trino) -> None:
    for value in (*(value for _, _, value in VALUES), *HOSTILE):
        text, literal = f"{value:f}" if isinstance(value, Decimal) else str(value), SqlEngine.TRINO.literal(value)
        if isinstance(value, datetime):
            zone = " UTC" if value.tzinfo else ""
            text = f"{value.replace(tzinfo=None).isoformat(' ', 'microseconds')}{zone}"
        if isinstance(value, bytes):
            assert trino.ask(f"SELECT to_hex({literal})") == [(value.hex().upper(),)]
        else:
            assert trino.ask(f"SELECT CAST({literal} AS varchar)") == [(text,)]


def test_trino_runs_the_queries_of_a_changelog(shop_of: ShopOf, trino: Trino) -> None:
    shop = shop_of(write=Changelog(), key_format="text")
    replay = StateReplay(shop)
    for number in range(20):
        replay.produce(number % 4, None if number % 7 == 3 else f"w{number}", at=number)
    shop.drain()
    iceberg, name = shop.job().iceberg, shop.pipeline.table.identifier
    table = iceberg.load(name)
    log = ChangelogTable.of(name, iceberg.schema_json(table), table.properties())
    schema, _, bare = name.rpartition(".")
    query = log.state(SqlEngine.TRINO, f'"lake"."{schema}"."{bare}"')
    rows = trino.ask(f'SELECT _kafka_key, "user" FROM ({query}) q ORDER BY 1')
    assert rows == sorted((f"k{key}", row.word) for key, row in replay.rows().items() if row.deleted_at is None)
    intervals = log.history(SqlEngine.TRINO, f'"lake"."{schema}"."{bare}"')
    open_ones = trino.ask(f"SELECT count(*) FROM ({intervals}) q WHERE valid_to IS NULL")
    assert open_ones == [(len(rows),)]
