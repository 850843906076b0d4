from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from frazil.declaration import Keep
from frazil.declaration.environment import Environment
from frazil.lake.iceberg_java import Iceberg
from tests.support.committed_table import Stock


@pytest.fixture
def stock_of(spark: SparkSession, iceberg: Iceberg, lake_environment: Environment, name: str) -> Callable[..., Stock]:
    """Makes the test's pipeline, with what it declares of its table."""

    def make(**table: object) -> Stock:
        return Stock(spark, iceberg, lake_environment, name, **table)

    return make


@pytest.fixture
def stock(stock_of: Callable[..., Stock]) -> Stock:
    """A pipeline with a small retention."""
    return stock_of(snapshots=Keep(5))
