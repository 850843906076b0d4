"""`frazil history` on a changelog in a catalog, without a broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestamptzType
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.declaration import (
    Changelog,
    Environment,
    GlueCatalog,
    Kafka,
    Pipeline,
    Table,
    Topic,
    Upsert,
)
from frazil.lake.ledger import entry as ledger
from tests.support import oracle
from tests.support.documents import environment_in, written

Ask = Callable[..., Result]
PIPELINE = Pipeline(topic=Topic("orders", value="avro", key="avro"), table=Table("shop.orders"), write=Changelog())
COLUMNS = {
    "order_id": LongType(),
    "_op": StringType(),
    "_changed_at": TimestamptzType(),
    "_kafka_partition": IntegerType(),
    "_kafka_offset": LongType(),
}


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return environment_in(tmp_path)


@pytest.fixture
def made(environment: Environment) -> None:
    """Create the table."""
    catalog = oracle.catalog(environment)
    catalog.create_namespace("shop")
    fields = [NestedField(i, name, of, required=False) for i, (name, of) in enumerate(COLUMNS.items(), start=1)]
    properties = ledger.mode_properties(ledger.CHANGELOG, (), key=(1,))
    catalog.create_table("shop.orders", Schema(*fields), properties=properties)


@pytest.fixture
def ask(environment: Environment, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Runs `frazil history orders …` in an empty folder."""
    _, pipelines, _, place = written(folder, [PIPELINE], environment)
    monkeypatch.setenv("FRAZIL_PIPELINES", pipelines)
    monkeypatch.setenv("FRAZIL_ENV", place)
    return lambda *more: CliRunner().invoke(app, ["history", "orders", *more])


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("engine", "view", "table"),
    [
        ("spark", "`lake`.`shop`.`orders__history`", "`lake`.`shop`.`orders`"),
        ("trino", '"lake"."shop"."orders__history"', '"lake"."shop"."orders"'),
        ("duckdb", '"orders__history"', '"lake"."shop"."orders"'),
        ("snowflake", '"SHOP"."ORDERS__HISTORY"', '"SHOP"."ORDERS"'),
    ],
)
def test_it_prints_both_views_for_each_engine(ask: Ask, engine: str, view: str, table: str) -> None:
    ended = ask("--engine", engine)
    assert ended.exit_code == 0, ended.stderr
    first, second, rest = ended.stdout.split(";\n")
    assert first.startswith(f"CREATE OR REPLACE VIEW {view} AS\nWITH ")
    assert second.lstrip().startswith(
        f"CREATE OR REPLACE VIEW {view.replace('history', 'state').replace('HISTORY', 'STATE')} AS\nSELECT "
    )
    assert rest == ""
    assert f"FROM {table}\n" in first


@pytest.mark.usefixtures("made")
def test_it_prints_queries_for_athena(ask: Ask) -> None:
    """Its views take no timestamp with time zone."""
    first, second, rest = ask("--engine", "athena").stdout.split(";\n")
    assert first.startswith("-- orders__history\nWITH ")
    assert second.lstrip().startswith("-- orders__state\nSELECT ")
    assert 'FROM "shop"."orders"\n' in first
    assert rest == ""


@pytest.mark.usefixtures("made")
def test_it_prints_a_state_before_offsets_of_a_table_by_another_name(ask: Ask) -> None:
    ended = ask("--engine", "duckdb", "--table", "iceberg_scan('x')", "--at", "0:120, 1:98")
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.startswith("SELECT ")
    assert "FROM iceberg_scan('x')" in ended.stdout
    assert '("_kafka_partition" = 0 AND "_kafka_offset" < 120) OR ("_kafka_partition" = 1' in ended.stdout


@pytest.mark.usefixtures("made")
def test_it_prints_a_state_at_an_order(ask: Ask, environment: Environment) -> None:
    assert "the table has no order" in ask("--at-order", "1").stderr
    with oracle.table(environment, "shop.orders").update_schema() as update:
        update.add_column("_order", StringType())
    ended = ask("--engine", "trino", "--at-order", "it's", "--at", "0:3")
    assert ended.exit_code == 0, ended.stderr
    assert """< 3)) AND "_order" <= 'it''s'""" in ended.stdout
    assert "the order has 1 columns, and 2 values are given" in ask("--at-order", "1", "--at-order", "2").stderr


@pytest.mark.usefixtures("made")
def test_a_state_has_no_history(ask: Ask, environment: Environment, tmp_path: Path) -> None:
    written(tmp_path, [replace(PIPELINE, write=Upsert())], environment)
    ended = ask("--at", "0:1")
    assert ended.exit_code == 2
    assert "declares write=upsert, whose table has no history" in ended.stderr


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--at", "0-120"], "0-120 is no list of partitions and offsets"),
        (["--at", "0:120,"], "is no list of partitions and offsets"),
        (["--at", ""], "--at: an empty text is no list of partitions and offsets"),
        (["--at", "0:120,1:5,0:98"], "--at: 0:120,1:5,0:98 names partition 0 twice"),
        (["--at", "1:5,01:5"], "Name each partition once"),
        (["--create", "--at", ""], "--create takes no --engine"),
        (["--create", "--engine", "trino"], "--create takes no --engine"),
        (["--create", "--at", "0:1"], "--create takes no --engine"),
        (["--create", "--at-order", "1"], "--create takes no --engine"),
        (["--engine", "mysql"], "mysql"),
    ],
)
def test_wrong_options_are_refused(ask: Ask, options: list[str], said: str) -> None:
    ended = ask(*options)
    assert ended.exit_code == 2
    assert said in ended.stderr


def test_a_table_that_does_not_exist_is_named(ask: Ask) -> None:
    ended = ask()
    assert ended.exit_code == 2
    assert "table shop.orders: the table does not exist yet" in ended.stderr


def test_glue_has_no_views(ask: Ask, tmp_path: Path) -> None:
    catalog = GlueCatalog(warehouse="s3://lake/w", region="eu-central-1")
    written(tmp_path, [PIPELINE], Environment(name="glue", kafka=Kafka(bootstrap="k:9092"), catalog=catalog))
    ended = ask("--create")
    assert ended.exit_code == 2
    assert "Iceberg's Glue catalog has no views" in ended.stderr
    assert "--engine athena" in ended.stderr


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("made", "ask")
def test_it_creates_the_views(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "frazil.cli.main", "history", "orders", "--create", "--master", "local[1]"]
    for _ in range(2):  # they are replaced
        ended = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.endswith("created orders__history\ncreated orders__state\n")
