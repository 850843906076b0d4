"""The guides, run: their commands on the local services of the tests, and what they claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.declaration.documents.document import environment_document
from frazil.local.connect_worker import create_connector
from frazil.local.services import CHANGE_DATA, LocalServices, up
from tests.support import extra_catalogs
from tests.support.change_events import ChangeEvents
from tests.support.connectors import delete_connector
from tests.support.guides import Terminal, block, blocks, on_session
from tests.support.kafka_broker import KafkaBroker
from tests.support.otlp_receiver import OtlpReceiver
from tests.support.secure_kafka import PASSWORD, USER, SecureKafka, secure_kafka

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


@pytest.fixture
def terminal(
    local_world: LocalServices, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Terminal]]:
    """Open a terminal in an empty folder. A project in it has the services of the tests, and a lake of its own."""
    monkeypatch.chdir(tmp_path)

    def opened(project: str | None = None) -> Terminal:
        if project is None:
            return Terminal(tmp_path, catalog=f"guides_{tmp_path.name}")
        home = tmp_path / project / ".frazil"
        for kept in local_world.home.iterdir():
            if kept.is_file() or kept.name == "run":
                home.mkdir(parents=True, exist_ok=True)
                (home / kept.name).symlink_to(kept)
        lake = replace(local_world, home=home).environment
        lake = replace(lake, catalog=replace(lake.catalog, name=f"guides_{tmp_path.name}"))
        (home / "environments").mkdir()
        (home / "environments" / "local.json").write_text(json.dumps(environment_document(lake)))
        extra_catalogs.added(spark, lake, lake.catalog.name)
        return Terminal(tmp_path, skipped=("frazil local up",), catalog=lake.catalog.name)

    with on_session(spark, monkeypatch):
        yield opened


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """A broker with logins, and the guide's topic."""
    with secure_kafka(tmp_path_factory.mktemp("secure")) as broker:
        broker.add_scram_user()
        add_signups(broker.plain)
        yield broker


def add_signups(bootstrap: str) -> None:
    broker = KafkaBroker(bootstrap)
    broker.create("signups")
    broker.produce("signups", [b'{"user_id": %d, "plan": "free"}' % number for number in range(3)])


@pytest.mark.long
def test_a_topic_of_ones_own_broker_is_found_checked_and_landed(
    terminal: Callable[..., Terminal], local_world: LocalServices
) -> None:
    add_signups(local_world.bootstrap)
    at = terminal()
    at.skipped = ("frazil run --all --follow",)
    at.replaced = {"broker.example.org:9092": local_world.bootstrap}
    first, *more = blocks("your-own-broker.md", "## Start")
    at.run([first])
    at.name_catalog()
    at.run(more)


@pytest.mark.long
@pytest.mark.parametrize("security", ["SASL_SSL", "SSL"])
def test_the_logins_of_the_guide_are_those_of_a_broker(
    secure: SecureKafka, terminal: Callable[..., Terminal], security: str
) -> None:
    at = terminal()
    at.variables = {"KAFKA_USER": USER, "KAFKA_PASSWORD": PASSWORD}
    at.replaced = {
        "broker.example.org:9094": secure.sasl,
        "broker.example.org:9093": secure.mtls,
        **{f"./{name}": secure.file(name) for name in ("ca.crt", "client.crt", "client.key")},
    }
    declared, *projects = (one for one in blocks("your-own-broker.md") if one.language in {"python", "toml"})
    at.run([declared, *(one for one in projects if f'security = "{security}"' in one.text)])
    found = {check["name"]: check for check in json.loads(at.command("frazil doctor --json"))["checks"]}
    assert (found["broker TLS"]["result"], found["broker login"]["result"]) == ("warning", "ok")  # it ends in two days
    assert {check["result"] for name, check in found.items() if name not in {"broker TLS", "clock"}} == {"ok"}, found
    if security == "SASL_SSL":
        assert "SCRAM-SHA-512" in Path("frazil.toml").read_text()
        at.variables["KAFKA_PASSWORD"] = "another"
        at.exit_codes = {"frazil doctor --json": 3}
        found = {check["name"]: check for check in json.loads(at.command("frazil doctor --json"))["checks"]}
        assert found["broker login"]["result"] == "failed"


@pytest.mark.long
def test_dead_letters_are_found_replayed_and_discarded(terminal: Callable[..., Terminal]) -> None:
    at = terminal("clicks-project")
    at.run(blocks("dead-letters.md"))
    (shown,) = json.loads(at.printed)["pipelines"]
    assert (shown["rejected_24h"], shown["open_dead_letters"], shown["rows"]) == (2, 0, 3)


def test_the_metrics_of_the_guide_are_written(terminal: Callable[..., Terminal]) -> None:
    at = terminal("visits-project")
    at.skipped = ("frazil local up", "frazil run --all --follow")
    *until_metrics, shown, otlp, written = blocks("monitoring.md")
    at.run(until_metrics)
    lines = (at.folder / "frazil.prom").read_text().splitlines()
    assert set(shown.text.splitlines()) <= set(lines)
    with OtlpReceiver() as receiver:
        at.replaced = {"http://127.0.0.1:4318": receiver.url}
        (line,) = otlp.commands
        name, _, url = at.here(line).removeprefix("export ").partition("=")
        with pytest.MonkeyPatch.context() as variables:
            variables.setenv(name, url)
            at.command("frazil run visits --metrics-file frazil.prom")
    assert receiver.values()["frazil_lag_offsets visits visits "] == 0
    assert 'frazil_records_read_total{group="",pipeline="visits",topic="visits"} 2.0' in lines
    at.run([written])
    for alarm in blocks("alarms.md"):
        at.run([alarm])


@pytest.mark.long
def test_the_table_follows_the_schemas_of_the_guide(terminal: Callable[..., Terminal]) -> None:
    terminal("payments-project").run(blocks("schema-changes.md"))


@pytest.mark.long
def test_a_keyed_topic_becomes_the_table_of_the_guide(terminal: Callable[..., Terminal]) -> None:
    terminal("customers-project").run(blocks("upsert-table.md"))


@pytest.mark.long
def test_a_list_of_topics_becomes_the_tables_of_the_guide(terminal: Callable[..., Terminal]) -> None:
    terminal("store-project").run(blocks("many-tables.md"))


def test_each_topic_of_a_pattern_becomes_a_table_also_a_new_one(terminal: Callable[..., Terminal]) -> None:
    terminal("plant-project").run(blocks("topic-pattern.md"))


def test_one_topic_becomes_the_tables_of_its_types(terminal: Callable[..., Terminal]) -> None:
    terminal("events-project").run(blocks("routes.md"))


@pytest.mark.long
def test_the_tables_of_a_database_are_those_of_the_guide(
    local_world: LocalServices, terminal: Callable[..., Terminal]
) -> None:
    place, page = up(local_world.home.parent, parts=CHANGE_DATA), "database-tables.md"
    at = terminal("shop-project")
    at.replaced = {"5432": str(urlsplit(place.database).port), "127.0.0.1:8081": urlsplit(place.registry_url).netloc}
    settings = json.loads(at.here(block(page, "connector.json")))
    orders, items = (ChangeEvents(place, f"shop.public.{table}") for table in ("orders", "items"))
    with psycopg.connect(place.database, autocommit=True) as database:
        try:
            for one in blocks(page):
                if one.language == "sql":
                    database.execute(one.text.encode())
                    if "update" in one.text:
                        items.until(lambda event: event.operation == "u")
                        orders.until(lambda event: event.value is None)
                elif "curl" in one.text:
                    create_connector(place.connect_url, "shop", settings)
                    items.until(lambda event: event.number == 2)
                    orders.until(lambda event: event.number == 11)
                at.run([one])
        finally:
            delete_connector(place.connect_url, "shop")
            database.execute("drop table orders, items")
            for events in (orders, items):
                events.close()


JANUARY, FEBRUARY = ({day: datetime(2026, month, day, tzinfo=UTC) for day in range(1, 29)} for month in (1, 2))
BEFORE = {0: [JANUARY[10], JANUARY[20], FEBRUARY[2]], 1: [JANUARY[15], JANUARY[28]]}
LATER = {0: [JANUARY[27], FEBRUARY[5]], 1: [FEBRUARY[3]]}
"""The times of records in each partition, until the earlier job ends and behind that; one record is out of order."""


def shipped(bootstrap: str, times: Mapping[int, Sequence[datetime]], first: int) -> list[int]:
    """Produce a shipment for each time, and return their numbers."""
    producer = Producer({"bootstrap.servers": bootstrap})
    numbers = []
    for partition, listed in times.items():
        for at in listed:
            numbers.append(first + len(numbers))
            value = json.dumps({"shipment_id": numbers[-1], "weight": 1.5})
            producer.produce("shipments", value, partition=partition, timestamp=round(at.timestamp() * 1000))
    producer.flush()
    return numbers


@pytest.mark.long
def test_a_move_from_a_spark_job_loses_and_doubles_nothing(
    terminal: Callable[..., Terminal], local_world: LocalServices, spark: SparkSession
) -> None:
    at = terminal("moved")
    at.command("frazil init moved --kafka local")
    at.command("cd moved")
    lake = f"{at.catalog}.shop"
    KafkaBroker(local_world.bootstrap).create("shipments", partitions=2)

    def sql(text: str) -> DataFrame:
        return spark.sql(text.replace("shop.", f"{lake}."))

    def earlier_job() -> DataFrame:
        """What people write first: the topic's records with their coordinates."""
        source = {"kafka.bootstrap.servers": local_world.bootstrap, "subscribe": "shipments"}
        value = F.from_json(F.col("value").cast("string"), "shipment_id long, weight double")
        records = spark.read.format("kafka").options(**source).load()
        return records.select("partition", "offset", "timestamp", value.alias("v")).select("*", "v.*").drop("v")

    numbers = shipped(local_world.bootstrap, BEFORE, first=1)
    spark.sql(f"create namespace {lake}")
    earlier_job().writeTo(f"{lake}.shipments_old").create()
    numbers += shipped(local_world.bootstrap, LATER, first=len(numbers) + 1)
    offsets, both_by_offset, both_by_time = (
        one.text for one in blocks("from-another-tool.md") if one.language == "sql"
    )
    assert [tuple(row) for row in sql(offsets).collect()] == [(0, 3, 0), (1, 2, 0)]  # those that the guide declares

    by_offset, by_time = (blocks("from-another-tool.md", f"## Cut at {what}") for what in ("offsets", "a time"))
    at.run(by_offset)
    sql(both_by_offset)
    assert sorted(row.shipment_id for row in spark.table("shipments").collect()) == numbers
    earlier_job().writeTo(f"{lake}.shipments_old").overwrite(F.lit(True))  # the earlier job has run on
    at.run(by_time)
    sql(both_by_time)
    assert sorted(row.shipment_id for row in spark.table("shipments").collect()) == numbers
    assert sql("select * from shop.shipments_since").count() < len(numbers)
