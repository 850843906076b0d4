"""What differs by catalog, through Iceberg's own API: creation, the fence, small files, and what each knows us by."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from frazil.clients.secrets import Secrets
from frazil.declaration.catalogs import GlueCatalog, LocalCatalog, ObjectStore, RestAuth, RestCatalog
from frazil.declaration.environment import Environment, Kafka
from frazil.declaration.partitioning import PartitionField, Transform
from frazil.declaration.secret import Secret
from frazil.errors import InvalidInput
from frazil.lake import row_offsets, tables
from frazil.lake.catalogs import is_secret, java_properties, needs_s3, spark_options
from frazil.lake.commit.catalog_check import check_catalog
from frazil.lake.data_location import check_puffin, own_data_path
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.stage import stage
from frazil.schemas.iceberg import schema_json
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.standin.aws.launch import REGION

ROW = Struct((Field("a", Primitive(Kind.LONG)), Field("b", Primitive(Kind.STRING))))
FIELDS = (PartitionField(Transform.BUCKET, "a", 4), PartitionField(Transform.IDENTITY, "b"))
NAMES = ["a_bucket", "b"]
KEYS = ObjectStore(access_key_id=Secret(env="ID"), secret_access_key=Secret(env="KEY"))
GLUE = GlueCatalog(warehouse="s3://b/w", region="eu-west-1")


def environment(catalog: Any, store: ObjectStore | None = None) -> Environment:
    return Environment(name="e", kafka=Kafka(bootstrap="127.0.0.1:9"), catalog=catalog, object_store=store)


def resolve(secret: Secret) -> str:
    return f"planted-{secret.env}"


# ── Settings ────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("catalog", "secrets"),
    [
        (GLUE, 2),
        (RestCatalog(uri="http://c", warehouse="w", auth=RestAuth.SIGV4, signing_name="glue", region="eu-west-1"), 4),
        (RestCatalog(uri="http://c", warehouse="w", auth=RestAuth.OAUTH2, credential=Secret(env="C")), 3),
        (RestCatalog(uri="http://c", warehouse="w", auth=RestAuth.TOKEN, token=Secret(env="T")), 3),
        (LocalCatalog(path="/d/c.db", warehouse="s3://b/w"), 2),
    ],
)
def test_every_option_that_holds_a_secret_is_known_as_one(catalog: Any, secrets: int) -> None:
    options = spark_options(environment(catalog, KEYS), resolve)
    assert sum("planted" in value for value in options.values()) == secrets
    assert {key for key, value in options.items() if "planted" in value} == set(filter(is_secret, options))


def test_glue_gets_the_keys_from_the_jvm_and_only_if_there_are_any() -> None:
    told = {"aws.accessKeyId": "planted-ID", "aws.secretAccessKey": "planted-KEY"}
    assert java_properties(environment(GLUE, KEYS), resolve) == told
    assert java_properties(environment(GLUE), resolve) == {}
    assert java_properties(environment(RestCatalog(uri="http://c", warehouse="w"), KEYS), resolve) == {}


@pytest.mark.parametrize("region", [None, "eu-west-1", "us-east-2"])
def test_glue_is_asked_in_its_own_region_wherever_the_bucket_is(region: str | None) -> None:
    options = spark_options(environment(GLUE, ObjectStore(region=region)), resolve)
    assert options["spark.sql.catalog.lake.client.region"] == "eu-west-1"
    assert ("spark.sql.catalog.lake.s3.cross-region-access-enabled" in options) == (region == "us-east-2")


@pytest.mark.parametrize(
    ("catalog", "needed"),
    [
        (LocalCatalog(path="/d/c.db", warehouse="/d/w"), False),
        (LocalCatalog(path="/d/c.db", warehouse="s3://b/w"), True),
        (GLUE, True),
        (RestCatalog(uri="http://c", warehouse="w"), True),
    ],
)
def test_awss_classes_are_loaded_only_where_files_are_on_s3(catalog: Any, needed: bool) -> None:
    assert needs_s3(environment(catalog)) == needed


# ── The same of each catalog ────────────────────────────────────────────────────────────────────
@pytest.fixture(
    params=[
        "lake_environment",
        pytest.param("rest_lake", marks=[pytest.mark.e2e, pytest.mark.long]),
        pytest.param("glue_lake", marks=pytest.mark.e2e),
    ]
)
def lake(request: pytest.FixtureRequest) -> Environment:
    """Each catalog in turn."""
    chosen: Environment = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def catalog(spark: SparkSession, lake: Environment) -> Iceberg:
    return Iceberg(spark, lake.catalog.name)


class Refusing(Iceberg):
    """A catalog that takes no partition fields at creation, and dies after creation if it is to."""

    def create(
        self, table: str, schema: Mapping[str, Any], spec: Mapping[str, Any] | None, properties: Mapping[str, str]
    ) -> Java:
        if spec is not None:
            self.schema({})  # which Iceberg refuses
        return super().create(table, schema, None, properties)


def partitions(catalog: Iceberg, table: str) -> list[str]:
    return [str(field.name()) for field in catalog.load(table).spec().fields()]


@pytest.mark.spark
def test_the_fence_holds_and_its_proof_leaves_nothing(catalog: Iceberg, lake: Environment, name: str) -> None:
    check_catalog(catalog, "probe", unique_id=name)
    assert not catalog.exists(f"probe.frazil_probe_{name}")
    assert [key for key in objects(lake) if name in key] == []


@pytest.mark.spark
def test_a_table_is_made_once_with_its_partitions(catalog: Iceberg, name: str) -> None:
    table = f"made.{name}"
    assert tables.create(catalog, table, ROW, partition_by=FIELDS, properties={"format-version": "2"})
    assert not tables.create(catalog, table, ROW, partition_by=FIELDS, properties={"format-version": "2"})
    assert partitions(catalog, table) == NAMES


@pytest.mark.spark
def test_a_catalog_that_refuses_partitions_at_creation_gets_them_afterwards(
    spark: SparkSession, lake: Environment, catalog: Iceberg, name: str
) -> None:
    with pytest.raises(Py4JJavaError):
        Refusing(spark, lake.catalog.name).create(f"made.{name}", {}, {}, {})
    assert tables.create(Refusing(spark, lake.catalog.name), f"made.{name}", ROW, partition_by=FIELDS, properties={})
    assert partitions(catalog, f"made.{name}") == NAMES


@pytest.mark.spark
def test_a_table_whose_maker_was_killed_gets_its_partitions_before_its_first_snapshot(
    catalog: Iceberg, name: str
) -> None:
    empty, filled = f"made.{name}", f"made.{name}_filled"
    for table in (empty, filled):
        tables.create(catalog, table, ROW, properties={})
    catalog.load(filled).newAppend().commit()
    for table in (empty, filled):
        tables.create(catalog, table, ROW, partition_by=FIELDS, properties={})
    assert (partitions(catalog, empty), partitions(catalog, filled)) == (NAMES, [])


@pytest.mark.spark
def test_a_decisions_file_is_written_once_read_and_deleted(catalog: Iceberg, name: str) -> None:
    tables.create(catalog, f"made.{name}", ROW, properties={})
    table = catalog.load(f"made.{name}")
    location = f"{table.location()}/metadata/frazil-side-{uuid.uuid4()}-{uuid.uuid4().hex}.stats"
    catalog.write_text(table, location, "grüße")
    assert catalog.read_text(table, location) == "grüße"
    with pytest.raises(Py4JJavaError, match="AlreadyExistsException"):
        catalog.write_text(table, location, "other")
    table.io().deleteFile(location)
    with pytest.raises(Py4JJavaError, match=r"NotFoundException|FileNotFound"):
        catalog.read_text(table, location)


@pytest.mark.spark
def test_rows_of_files_in_no_snapshot_are_counted_in_any_store(
    spark: SparkSession, catalog: Iceberg, name: str
) -> None:
    row = Struct((Field("partition", Primitive(Kind.INT)), Field("b", Primitive(Kind.STRING))))
    tables.create(catalog, f"made.{name}", row, partition_by=FIELDS[1:], properties={})
    rows = spark.range(10).selectExpr("CAST(id % 3 AS INT) AS partition", "CAST(id % 2 AS STRING) AS b")
    files = stage(catalog, f"made.{name}", rows, unique_id=uuid.uuid4().hex, at=0.0).files
    table = catalog.load(f"made.{name}")
    named = [json.loads(json.dumps(catalog.file_json(table, file))) for file in files]
    assert row_offsets.rows_of_files(catalog, f"made.{name}", named, "", unique_id=uuid.uuid4().hex) == {
        0: 4,
        1: 3,
        2: 3,
    }
    assert table.currentSnapshot() is None


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.e2e
def test_commits_leave_no_versions_in_glues_archive(spark: SparkSession, glue_lake: Environment, name: str) -> None:
    catalog, glue = Iceberg(spark, glue_lake.catalog.name), client(glue_lake, "glue")
    tables.create(catalog, f"made.{name}", ROW, properties={})
    for number in range(3):
        catalog.load(f"made.{name}").updateProperties().set("number", str(number)).commit()
    assert len(glue.get_table_versions(DatabaseName="made", TableName=name)["TableVersions"]) == 1


def client(lake: Environment, service: str) -> Any:
    store = lake.object_store
    assert store is not None
    assert store.access_key_id is not None
    assert store.secret_access_key is not None
    read = Secrets({}).read
    return boto3.session.Session().client(
        service,
        endpoint_url=store.endpoint,
        region_name=REGION,
        aws_access_key_id=read(store.access_key_id),
        aws_secret_access_key=read(store.secret_access_key),
    )


def objects(lake: Environment) -> list[str]:
    """The keys of what the store holds; of a lake in a folder, its files."""
    if lake.object_store is None:
        from pathlib import Path

        assert isinstance(lake.catalog, LocalCatalog)
        return [str(file) for file in Path(lake.catalog.warehouse.removeprefix("file://")).rglob("*") if file.is_file()]
    bucket = "iceberg-tables" if isinstance(lake.catalog, RestCatalog) else "lake"
    pages = client(lake, "s3").get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [each["Key"] for page in pages for each in page.get("Contents", ())]


@pytest.mark.long
@pytest.mark.spark
def test_a_bucket_that_refuses_puffin_files_is_known_before_the_first_delete(
    spark: SparkSession, rest_lake: Environment, name: str
) -> None:
    catalog, table = Iceberg(spark, rest_lake.catalog.name), f"made.{name}"
    catalog.create_namespace("made")
    catalog.create(table, schema_json(ROW), None, {"format-version": "3"})
    with pytest.raises(InvalidInput, match="refuses Puffin files"):
        check_puffin(catalog, table)
    tables.create(catalog, table, ROW, properties={})  # what an earlier run made
    check_puffin(catalog, table)
    loaded = catalog.load(table)
    path = own_data_path(loaded)
    assert path is not None
    assert path.startswith("s3://lake/data/made/")
    catalog.write_text(loaded, f"{path}/a.puffin", "PFA1")
    loaded.io().deleteFile(f"{path}/a.puffin")
