"""More lakes for the one Spark session of the tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pyspark.sql import SparkSession

from frazil.clients.secrets import Secrets
from frazil.declaration.environment import Environment
from frazil.lake.catalogs import java_properties, spark_options


def added(spark: SparkSession, environment: Environment, name: str) -> Environment:
    """Give a session that runs another catalog, under a name of its own; returns the environment that names it so."""
    named = replace(environment, catalog=replace(environment.catalog, name=name))
    resolve = Secrets({}).read
    for key, value in spark_options(named, resolve).items():
        if key.startswith(f"spark.sql.catalog.{name}"):
            spark.conf.set(key, value)
    for key, value in java_properties(named, resolve).items():
        cast(Any, spark._jvm).java.lang.System.setProperty(key, value)
    return named
