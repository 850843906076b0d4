"""One shop with dead letters for all that only read them."""

from __future__ import annotations

import uuid

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.environment import Environment
from frazil.local.services import LocalServices
from tests.support.dead_letter_shop import with_letters
from tests.support.shop import Shop


@pytest.fixture(scope="session")
def letters(local_world: LocalServices, spark: SparkSession, lake_environment: Environment) -> Shop:
    return with_letters(local_world, spark, lake_environment, f"t{uuid.uuid4().hex[:10]}")
