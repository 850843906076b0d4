"""What most tests stand on: one Spark session for all, and one broker and registry for all."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.spark_session import session
from frazil.local.services import LocalServices, Part, up, world
from frazil.local.toolchain import class_path
from tests.standin.aws.launch import glue_environment, with_aws
from tests.support import extra_catalogs, read_once, seeds
from tests.support.documents import environment_in
from tests.support.shop import SETTINGS, Shop, ShopOf

# A shell that starts a command in the background lets it ignore the interrupts of a terminal, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    seeds.configure(config)
    read_once.configure()
    # A broker of tests lives for minutes: what its second compiler takes, it does not give back.
    os.environ.setdefault("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")


def pytest_report_header(config: pytest.Config) -> str:
    return seeds.said(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if seeds.are_long(terminalreporter.config):
        terminalreporter.write_line(seeds.said(terminalreporter.config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Properties are among the long tests too, there with other examples each time."""
    for item in items if seeds.are_long(config) else ():
        if seeds.is_property(item):
            item.add_marker("long")


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The seed of this run: always the same, but for the long tests."""
    return seeds.seed(pytestconfig)


@pytest.fixture(scope="session")
def local_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServices]:
    """A real broker and registry."""
    with world(tmp_path_factory.mktemp("world")) as running:
        yield running


@pytest.fixture(scope="session")
def lake_environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A lake in a folder; its broker is not one."""
    return environment_in(tmp_path_factory.mktemp("lake"), "test")


@pytest.fixture(scope="session")
def spark(lake_environment: Environment) -> Iterator[SparkSession]:
    """The Spark session of all tests that need one."""
    with class_path.of_new_jvms(class_path.driver_jars(aws=True)):
        started = session(
            lake_environment, Secrets(os.environ).read, name="tests", master="local[2]", settings=SETTINGS
        )
    yield started
    started.stop()


@pytest.fixture(scope="session")
def rest_lake(local_world: LocalServices, spark: SparkSession) -> Environment:
    """A lake in an object store with a REST catalog, added to the world and to the session as `rest_lake`."""
    return extra_catalogs.added(
        spark, up(local_world.home.parent, parts=[Part.OBJECT_STORE]).rest_environment, "rest_lake"
    )


@pytest.fixture(scope="session")
def glue_lake(local_world: LocalServices, spark: SparkSession) -> Environment:
    """A lake in S3 with a Glue catalog, added to the world and to the session as `glue_lake`."""
    return extra_catalogs.added(spark, glue_environment(with_aws(local_world)), "glue_lake")


@pytest.fixture(scope="session")
def iceberg(spark: SparkSession) -> Iceberg:
    """The lake's catalog, through Iceberg's own API."""
    return Iceberg(spark)


@pytest.fixture
def shop_lake(lake_environment: Environment) -> Environment:
    """The lake of the test's shop."""
    return lake_environment


@pytest.fixture
def shop_of(local_world: LocalServices, spark: SparkSession, shop_lake: Environment, name: str) -> ShopOf:
    """Makes the test's shop, with what it declares of topic and table."""

    def make(**declared: Any) -> Shop:
        return Shop(local_world, spark, shop_lake, name, **declared)

    return make


@pytest.fixture
def shop(shop_of: ShopOf) -> Shop:
    """A shop with everything as it is by default."""
    return shop_of()


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's root."""
    return Path(__file__).parent.parent
