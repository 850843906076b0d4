"""What the jobs really ask of AWS, recorded; `calls.json` is what `test_roles.py` holds the policies against."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from moto.s3.models import s3_backends
from pyspark.sql import SparkSession

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Keep
from frazil.declaration.catalogs import GlueCatalog, ObjectStore
from frazil.declaration.environment import Environment, Kafka
from frazil.declaration.secret import Secret
from frazil.lake.commit.catalog_check import check_catalog
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.metadata_expiry import trim
from frazil.lake.read.stored_tables import Lake
from frazil.local.services import LocalServices
from frazil.maintain.run import maintain
from frazil.maintain.target import Action, MaintenanceRun, Policy
from tests.policies.recorded_aws import ACCOUNT, REGION, Call, Log, recorded_aws
from tests.support import extra_catalogs
from tests.support.jobs import job
from tests.support.shop import ORDER, Shop, frame

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.e2e]

RECORDED = Path(__file__).with_name("calls.json")
MORE = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}


@contextmanager
def recorded_lake(spark: SparkSession, folder: Path) -> Iterator[tuple[Environment, Log]]:
    """A Glue lake that notes what is asked of it, added to the session."""
    keys = folder / "id", folder / "key"
    for file in keys:
        file.write_text("made-up")
        file.chmod(0o600)
    with recorded_aws() as (endpoint, log):
        options = {"aws_access_key_id": "made-up", "aws_secret_access_key": "made-up", "region_name": REGION}
        session = boto3.session.Session()
        session.client("s3", endpoint_url=endpoint, **options).create_bucket(Bucket="tables")
        # The deployment makes the databases; the jobs may not.
        glue = session.client("glue", endpoint_url=endpoint, **options)
        glue.create_database(DatabaseInput={"Name": "shop"})
        environment = Environment(
            name="recorded",
            kafka=Kafka(bootstrap="127.0.0.1:9"),
            catalog=GlueCatalog(warehouse="s3://tables/lake", region=REGION, endpoint=endpoint),
            object_store=ObjectStore(
                endpoint=endpoint,
                path_style=True,
                region=REGION,
                access_key_id=Secret(file=str(keys[0])),
                secret_access_key=Secret(file=str(keys[1])),
            ),
        )
        log.forget()
        yield extra_catalogs.added(spark, environment, f"recorded_{uuid.uuid4().hex[:8]}"), log


def told(calls: Iterable[Call], table: str) -> list[list[str]]:
    """The calls, each kind once, with what varies between two runs left open."""
    found = set()
    for action, what in calls:
        what = what.replace(f"{table}__dead_letters", "<dead letters>").replace(table, "<table>")
        before, folder, _ = what.partition("/data/" if "/data/" in what else "/metadata/")
        parts = before.split("/")
        scratch = [("frazil_probe_<ticket>" if part.startswith("frazil_probe_") else part) for part in parts]
        found.add((action, "/".join(scratch) + (f"{folder}<file>" if folder else "")))
    return [list(one) for one in sorted(found)]


def test_the_jobs_ask_for_what_is_recorded_and_nothing_else(
    local_world: LocalServices, spark: SparkSession, name: str, tmp_path: Path
) -> None:
    with recorded_lake(spark, tmp_path) as (environment, log):
        shop = Shop(local_world, spark, environment, name, table={"snapshots": Keep(1)})
        iceberg = Iceberg(spark, environment.catalog.name)
        check_catalog(iceberg, "shop", unique_id=name)
        land(shop, iceberg)
        ingest = log.take()
        shop.produce(shop.orders(9, shop.register(MORE), schema=MORE))
        keep(shop, iceberg)
        maintenance = log.take()
        lake = Lake(environment, Secrets({}).read)
        assert not verify(shop.pipeline, lake, deep=True, wait=lambda seconds: None).findings
        reader = log.take()
    now = {
        "ingest_job": told(ingest, name),
        "maintenance_job": told(maintenance, name),
        "reader": told(reader, name),
    }
    assert now == json.loads(RECORDED.read_text()), json.dumps(now, indent=1)


def land(shop: Shop, iceberg: Iceberg) -> None:
    """Batches with dead letters, a new column, snapshots to trim."""
    first = shop.register()
    for number in range(3):
        shop.produce([*shop.orders(20, first, first=20 * number), b"bad!!", frame(first, b"\x02\xff")])
        shop.drain()
    shop.produce(shop.orders(5, shop.register(MORE), first=90, schema=MORE))
    shop.drain()
    for table in (shop.pipeline.table.identifier, shop.pipeline.table.dead_letters):
        trimmed = trim(iceberg, table, keep=1, now_ms=round(time.time() * 1000) + 1, at_least=1)
        assert trimmed.snapshots > 0, trimmed


def keep(shop: Shop, iceberg: Iceberg) -> None:
    """Compact, carry, expire, and delete orphans: some were left in both folders."""
    table = iceberg.load(shop.pipeline.table.identifier)
    left = f"{table.location()}/data/left.parquet"
    iceberg.write_text(table, left, "left")
    written_days_ago(left, 10)
    late = job(iceberg, clock=lambda: time.time() + 1)  # what was committed just now is in the past
    run = MaintenanceRun(late, Policy(closed_seconds=0, grace_seconds=0))
    outcomes = maintain([shop.pipeline], run, lambda event: None, orphans=True)
    ended = {(one.action.value, one.ended.value) for one in outcomes[shop.pipeline.name]}
    assert {"compact", "carry", "expire", "orphans"} == {action for action, _ in ended}, ended
    failed = [
        (one.action.value, one.ended.value, one.why)
        for one in outcomes[shop.pipeline.name]
        if one.ended.value != "done"
    ]
    assert not failed
    assert [one.files_removed for one in outcomes[shop.pipeline.name] if one.action is Action.ORPHANS] == [1, 0]


def written_days_ago(location: str, days: int) -> None:
    """Make a file of the S3 in this process older."""
    bucket, _, key = location.removeprefix("s3://").partition("/")
    stored = s3_backends[ACCOUNT]["aws"].buckets[bucket].keys[key]
    stored.last_modified -= timedelta(days=days)
