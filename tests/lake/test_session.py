"""The session's JVM has the limits without which nine garbled bytes could end it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from frazil.lake.session import _java_options
from frazil.schemas.avro import JVM_PROPERTIES


def test_options_that_are_given_stay_and_win() -> None:
    name, other, *_ = JVM_PROPERTIES
    options = _java_options(f"-Xss4m -D{name}=7").split()
    assert options[:2] == ["-Xss4m", f"-D{name}=7"]
    assert sum(option.startswith(f"-D{name}=") for option in options) == 1
    assert f"-D{other}={JVM_PROPERTIES[other]}" in options


@pytest.mark.spark
def test_drivers_and_executors_have_the_limits(spark: SparkSession) -> None:
    jvm = cast(Any, spark._jvm)
    executors = spark.sparkContext.getConf().get("spark.executor.extraJavaOptions") or ""
    for name, value in JVM_PROPERTIES.items():
        assert jvm.java.lang.System.getProperty(name) == value
        assert f"-D{name}={value}" in executors.split()
