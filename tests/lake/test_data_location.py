"""Where tables have their data files, if the catalog names a place for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from frazil.lake import tables
from frazil.lake.data_location import DATA_LOCATION, DATA_PATH, check_puffin, own_data_path
from frazil.lake.iceberg_java import Iceberg
from frazil.schemas.types import Field, Kind, Primitive, Struct

pytestmark = pytest.mark.spark
ROW = Struct((Field("a", Primitive(Kind.LONG)),))
PLACE = "file:///tmp/elsewhere"


@pytest.fixture
def elsewhere(spark: SparkSession) -> Iterator[None]:
    """Have the catalog name a place for data files."""
    option = f"spark.sql.catalog.lake.{DATA_LOCATION}"
    spark.conf.set(option, f"{PLACE}/")
    yield
    spark.conf.unset(option)


def made(iceberg: Iceberg, name: str, version: int, **properties: str) -> object:
    tables.create(iceberg, f"placed.{name}", ROW, properties={"format-version": str(version), **properties})
    return iceberg.load(f"placed.{name}")


@pytest.mark.usefixtures("elsewhere")
def test_a_table_with_vectors_has_a_folder_of_its_own(iceberg: Iceberg, name: str) -> None:
    table = made(iceberg, name, 3)
    path = f"{PLACE}/placed/{name}-{table.uuid()}"  # type: ignore[attr-defined]
    assert own_data_path(table) == path
    iceberg.load(f"placed.{name}").newAppend().commit()
    assert own_data_path(made(iceberg, name, 3)) == path


@pytest.mark.usefixtures("elsewhere")
def test_a_table_of_version_2_stays_where_it_is_and_follows_once_it_has_vectors(iceberg: Iceberg, name: str) -> None:
    table = made(iceberg, name, 2)
    assert own_data_path(table) is None
    table.updateProperties().set("format-version", "3").commit()  # type: ignore[attr-defined]
    assert own_data_path(made(iceberg, name, 3)) is not None


def test_without_such_a_place_nothing_changes(iceberg: Iceberg, name: str) -> None:
    table = made(iceberg, name, 3)
    check_puffin(iceberg, f"placed.{name}")  # a folder refuses no name
    assert DATA_PATH not in dict(table.properties())  # type: ignore[attr-defined]


def test_a_folder_that_others_may_use_is_not_the_tables_own(iceberg: Iceberg, name: str) -> None:
    table = made(iceberg, name, 3, **{DATA_PATH: f"{PLACE}/shared"})
    assert own_data_path(table) is None
