from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from frazil.declaration.environment import Environment
from frazil.local.world import World
from pyspark.sql import SparkSession

from tests.support.shop import Shop


@pytest.fixture
def shop_of(
    local_world: World, spark: SparkSession, lake_environment: Environment, name: str
) -> Callable[..., Shop]:
    """Makes the test's shop, with what it declares of topic and table."""

    def make(**declared: Any) -> Shop:
        return Shop(local_world, spark, lake_environment, name, **declared)

    return make


@pytest.fixture
def shop(shop_of: Callable[..., Shop]) -> Shop:
    """A shop with everything as it is by default."""
    return shop_of()
