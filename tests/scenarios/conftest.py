from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from frazil.declaration import Append
from frazil.declaration.environment import Environment
from frazil.lake.iceberg_java import Iceberg
from tests.support.ledgers import Ledgers
from tests.support.registry_server import RegistryServer
from tests.support.repaired_shop import KEPT, Repaired
from tests.support.shop import ShopOf


@pytest.fixture
def stock(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str) -> Ledgers:
    """A pipeline that landed two batches, each with two dead letters."""
    made = Ledgers(spark, iceberg, lake_environment, name)
    made.land_with_dead_letters(2)
    return made


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    """A registry of the test's own, with GUIDs, which the local one has not."""
    with RegistryServer() as server:
        yield server


@pytest.fixture
def repaired(shop_of: ShopOf, registry: RegistryServer, request: pytest.FixtureRequest) -> Repaired:
    """A shop with dead letters; its parameter is the write mode."""
    write = getattr(request, "param", Append())
    return Repaired(shop_of(**KEPT, write=write), registry)
