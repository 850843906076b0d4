"""Values are decoded with generated code, as in large batches, and without it, as in small ones."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.lake.prepared_plan import SmallBatches


@pytest.fixture(scope="session", params=["generated", "interpreted"], name="spark")
def either_way(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    """Return the session of all tests, then that of small batches."""
    return SmallBatches().session(spark) if request.param == "interpreted" else spark
