"""An upsert table and its source in MariaDB, captured by Debezium, against the database's `SELECT`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.declaration import Debezium, Upsert
from frazil.declaration.environment import Environment
from frazil.local.services import LocalServices
from tests.support.mariadb import MariaDb, missing
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
COLUMNS = """
    customer varchar(40) DEFAULT 'nobody', price decimal(10, 2), weight double, count int, is_paid boolean, day date,
    local datetime(6), at timestamp(3) NULL, raw blob, document json, state enum('new', 'paid'), big bigint unsigned
"""
SELECTED = {
    **{name: name for name in ("id", "customer", "weight", "count", "state", "big", "is_paid")},
    **{name: f"CAST({name} AS CHAR)" for name in ("price", "day", "local", "document")},
    "at": "DATE_FORMAT(at, '%Y-%m-%d %H:%i:%s.%f')",
    "raw": "HEX(raw)",
}


@pytest.fixture
def source(local_world: LocalServices, tmp_path: Path) -> Iterator[MariaDb]:
    if problem := missing():
        pytest.skip(problem)
    made = MariaDb(local_world, tmp_path, COLUMNS)
    yield made
    made.close()


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row's values as the database's JSON has them."""
    values = {name: row[name] for name in SELECTED}
    for name in ("price", "day"):
        values[name] = None if row[name] is None else str(row[name])
    for name in ("local", "at"):
        at: datetime | None = row[name]
        values[name] = None if at is None else f"{at.astimezone(UTC) if at.tzinfo else at:%Y-%m-%d %H:%M:%S.%f}"
    values["raw"] = None if row["raw"] is None else bytes(row["raw"]).hex().upper()
    return values


def test_the_table_is_what_mariadb_selects(
    source: MariaDb, local_world: LocalServices, spark: SparkSession, lake_environment: Environment, name: str
) -> None:
    """Snapshot, inserts, updates, deletes, changes of keys, and a column that is added."""
    formats = {"value_format": "connect_json", "key_format": "connect_json"}
    table = {"identifier": f"captured.{name}"}
    declared = {**formats, "write": Upsert(), "envelope": Debezium(source_column=True), "table": table, "partitions": 1}
    shop = Shop(local_world, spark, lake_environment, source.topic, **declared)

    def land() -> None:
        source.captured()
        shop.drain()
        rows = {row["id"]: plain(row) for row in shop.landed()}
        selected = {row["id"]: row for row in source.selected(**SELECTED)}
        assert rows == selected
        shop.assert_proven(deep=True)

    orders = "shop.orders"
    source.sql(_rows(1, 40), f"INSERT INTO {orders} (id, customer) VALUES (41, NULL)")
    source.capture()
    land()
    source.sql(
        _rows(50, 60),
        f"UPDATE {orders} SET price = price + 1, customer = NULL WHERE id % 4 = 0",
        f"UPDATE {orders} SET id = id + 1000 WHERE id BETWEEN 10 AND 20",
        f"DELETE FROM {orders} WHERE id % 5 = 0",
        f"INSERT INTO {orders} (id) VALUES (5)",
    )
    land()
    source.sql(
        f"ALTER TABLE {orders} ADD COLUMN more int", f"UPDATE {orders} SET more = 7 WHERE id < 10", _rows(70, 71, ", 8")
    )
    land()
    assert {row["more"] for row in shop.landed() if row["id"] < 10} == {7}
    assert {row["_source"]["connector"] for row in shop.landed()} == {"mariadb"}


def _rows(first: int, last: int, more: str = "") -> str:
    """Return a statement that inserts these rows, with a value in each column."""
    return (
        f"INSERT INTO shop.orders SELECT n, CONCAT('é ', n), n / 8, n / 4, n % 100, n % 2, '2026-02-28' + INTERVAL n DAY,"
        " '2026-01-02 03:04:05.678901' - INTERVAL n DAY, '2026-01-02 03:04:05.678' + INTERVAL n HOUR, UNHEX(MD5(n)),"
        f" JSON_OBJECT('n', n), IF(n % 3 = 0, 'new', 'paid'), 18446744073709551 + n{more}"
        f" FROM (SELECT seq AS n FROM shop.seq_{first}_to_{last}) AS numbers"
    )
