"""The session's JVM has the limits without which nine garbled bytes could end it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from frazil.declaration.catalogs import LocalCatalog
from frazil.declaration.environment import Environment, Kafka, Mechanism, Security
from frazil.declaration.secret import OAuth, Secret
from frazil.errors import CatalogUnavailable, FrazilError
from frazil.exit_codes import Exit, exit_of
from frazil.lake.catalogs import make_folder, spark_options
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.prepared_plan import SmallBatches
from frazil.lake.spark_session import _java_options, _token_endpoint
from frazil.schemas.avro import JVM_PROPERTIES
from tests.support import extra_catalogs


def test_options_that_are_given_stay_and_win() -> None:
    name, other, *_ = JVM_PROPERTIES
    options = _java_options(f"-Xss4m -D{name}=7").split()
    assert options[:2] == ["-Xss4m", f"-D{name}=7"]
    assert sum(option.startswith(f"-D{name}=") for option in options) == 1
    assert f"-D{other}={JVM_PROPERTIES[other]}" in options


def test_kafkas_clients_may_ask_the_declared_token_endpoint() -> None:
    client = OAuth(token_endpoint="https://id/token", client_id=Secret(env="C"), client_secret=Secret(env="S"))
    kafka = Kafka(bootstrap="b:1", security=Security.SASL_SSL, mechanism=Mechanism.OAUTHBEARER, oauth=client)
    of = replace(local(Path("/lake")), kafka=kafka)
    allowed = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
    assert _token_endpoint(of) == {allowed: "https://id/token"}
    assert _token_endpoint(local(Path("/lake"))) == {}
    assert f"-D{allowed}=https://id/token" in _java_options("-Xss4m", _token_endpoint(of)).split()


@pytest.mark.spark
def test_drivers_and_executors_have_the_limits(spark: SparkSession) -> None:
    jvm = cast(Any, spark._jvm)
    executors = spark.sparkContext.getConf().get("spark.executor.extraJavaOptions") or ""
    for name, value in JVM_PROPERTIES.items():
        assert jvm.java.lang.System.getProperty(name) == value
        assert f"-D{name}={value}" in executors.split()


def local(path: Path) -> Environment:
    return Environment(
        name="mine", kafka=Kafka(bootstrap="127.0.0.1:9"), catalog=LocalCatalog(path=str(path), warehouse="/w")
    )


def test_the_folder_of_a_local_catalog_is_created(tmp_path: Path) -> None:
    make_folder(local(tmp_path / "new" / "lake" / "catalog.db"))
    assert (tmp_path / "new" / "lake").is_dir()


def test_a_folder_that_cannot_be_created_is_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        FrazilError, match=r"environment mine, catalog\.path: the folder .*/file/lake cannot be created"
    ) as told:
        make_folder(local(tmp_path / "file" / "lake" / "catalog.db"))
    assert exit_of(told.value) is Exit.INVALID_INPUT


def test_a_folder_in_place_of_the_catalogs_file_is_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(FrazilError, match="is a folder"):
        make_folder(local(tmp_path))


@pytest.mark.spark
def test_a_catalog_that_cannot_be_opened_is_unavailable(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("this is no database, and longer than the header of one" * 3)
    lake = replace(
        local(tmp_path / "catalog.db"), catalog=replace(local(tmp_path / "catalog.db").catalog, name="no_lake")
    )
    for key, value in spark_options(lake, str).items():
        if "no_lake" in key:
            spark.conf.set(key, value)
    with pytest.raises(CatalogUnavailable, match="catalog no_lake: .*not a database"):
        Iceberg(spark, "no_lake")


@pytest.mark.spark
def test_a_catalog_is_opened_by_the_settings_of_its_session(spark: SparkSession, lake_environment: Environment) -> None:
    """Whatever session the thread has used last."""
    small = SmallBatches().session(spark)
    later = extra_catalogs.added(spark, lake_environment, "added_later").catalog.name
    small.createDataFrame([(1,)], "a int")
    assert Iceberg(spark, later).name == later
