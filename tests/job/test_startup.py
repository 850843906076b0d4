"""A job that finds something else than its release was built for says all of it and does not begin."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.documents.from_json import from_json
from frazil.errors import RuntimeDiffers
from frazil.job import startup
from frazil.lake.iceberg_java import Iceberg
from frazil.release import manifest as runtime
from frazil.release.build import CLASSES
from frazil.release.manifest import Runtime

WANTED = Runtime(python="3.11", spark="4.1.1", iceberg="1.11.0", classes=("a.B", "c.D"))


@dataclass
class FakeJvm:
    spark: str = "4.1.1"
    iceberg: str = "1.11.0"
    classes: set[str] = field(default_factory=lambda: {"a.B", "c.D"})

    def spark_version(self) -> str:
        return self.spark

    def iceberg_version(self) -> str:
        return self.iceberg

    def has_class(self, name: str) -> bool:
        return name in self.classes

    def place_of(self, name: str) -> str:
        return "emrs-own-iceberg.jar"


def test_emrs_own_build_of_the_same_version_may_begin() -> None:
    startup.check_jvm(WANTED, FakeJvm(spark="4.1.1-amzn-0"))


def test_another_python_is_refused() -> None:
    with pytest.raises(RuntimeDiffers, match=r"this is Python 3\.9"):
        startup.check_python(WANTED, version=(3, 9))


def test_everything_that_differs_is_told_at_once_with_the_jar_that_won() -> None:
    with pytest.raises(RuntimeDiffers) as refusal:
        startup.check_jvm(WANTED, FakeJvm(spark="4.1.10", iceberg="1.10.0", classes={"a.B"}))
    assert refusal.value.what.split("; ") == [
        "Spark is 4.1.10, not 4.1.1",
        "Iceberg is 1.10.0, not 1.11.0, by emrs-own-iceberg.jar",
        "class c.D is not there",
    ]


def test_a_checkout_expects_nothing() -> None:
    assert runtime.expected() is None
    startup.check_python(None, version=(2, 7))
    startup.check_jvm(None, FakeJvm(spark="1"))


def test_what_a_release_carries_is_what_it_expects() -> None:
    carried = json.loads(runtime.expected_document(WANTED, "1.0.0"))
    assert carried["release"] == "1.0.0"
    assert from_json(Runtime, carried["runtime"], "runtime") == WANTED


@pytest.mark.spark
def test_a_real_session_has_what_a_release_expects(spark: SparkSession) -> None:
    jvm = startup.SessionJvm(spark, Iceberg(spark))
    wanted = dataclasses.replace(WANTED, classes=CLASSES)
    startup.check_jvm(wanted, jvm)
    assert "iceberg-spark-runtime-4.1_2.13-1.11.0" in jvm.place_of("org.apache.iceberg.IcebergBuild")
    with pytest.raises(RuntimeDiffers, match=r"Iceberg is .*1\.11\.0.*not 1\.12\.0.*; class no\.Such is not there"):
        startup.check_jvm(dataclasses.replace(wanted, iceberg="1.12.0", classes=("no.Such",)), jvm)
