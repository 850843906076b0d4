"""Make the fixtures of one release: tables, documents and objects as that release writes them.

Run once per release, with that release's tree first on the path; the output is committed and never made again. Names of cases
may follow:

    PYTHONPATH=$OLD/jobs:$OLD python tests/compat/make_fixtures.py tests/compat/0.1.0

Each `<case>.tar.gz` has the files of a table and of its dead-letter table, and `case.json`: topic, its id, its records with
their places, the metadata file of each table. `documents/` has one file per kind of document. `tests/compat/restore.py` reads
them.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from frazil.clients.secrets import Secrets
from frazil.declaration import Pipeline, Table, Topic, ValueFormat
from frazil.declaration.catalogs import GlueCatalog, LocalCatalog, RestAuth, RestCatalog
from frazil.declaration.document import canonical, digest, document
from frazil.declaration.environment import Environment, Kafka, ObjectStore, Registry, environment_document
from frazil.declaration.secret import Secret
from frazil.lake import ledger
from frazil.lake.commit.entries import entry
from frazil.lake.offsets import Offsets
from frazil.lake.offsets import canonical as canonical_text
from frazil.lake.spark_session import session
from frazil.local.services import world
from frazil.local.toolchain.jars import spark_jars
from frazil.recovery.apply import Accepted, _Accepting
from frazil.release.manifest import Architecture, File, Release, Role, Runtime, manifest
from frazil.rollout.desired import Desired, desired_document
from frazil.rollout.state import RolloutState
from frazil.rollout.stopped_pipelines import change_stop, stops_key
from tests.support import oracle
from tests.support.shop import SETTINGS, Shop

BAD = [b"", b"\x01bad"]
Make = Callable[..., Shop]


def landed(make: Make) -> Shop:
    """Two batches, each with dead letters."""
    shop = make("compat_landed")
    schema_id = shop.register()
    for number in range(2):
        shop.produce([*shop.orders(6, schema_id, first=6 * number), *BAD])
        shop.drain()
    return shop


def open_decision(make: Make) -> Shop:
    """The last batch is committed, its dead letters are not yet appended."""
    shop = make("compat_open")
    schema_id = shop.register()
    shop.produce([*shop.orders(6, schema_id), *BAD])
    shop.drain()
    shop.produce([*shop.orders(6, schema_id, first=6), *BAD])

    def die(step: str) -> None:
        if step == "decide.decided":
            raise InterruptedError

    try:
        shop.drain(reach=die)
    except InterruptedError:
        return shop
    raise AssertionError("the driver did not die")


def half_accepted_replay(make: Make) -> Shop:
    """`accept rolled-back-replay` that died before its commit to the main table."""
    shop = landed_as(make, "compat_half_replay")
    table = shop.job().iceberg.load(shop.pipeline.table.identifier)
    table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit()
    return half_accepted(shop, Accepted.ROLLED_BACK_REPLAY)


def half_accepted_recreated(make: Make) -> Shop:
    """`accept topic-recreated` that died before its commit to the main table."""
    shop = landed_as(make, "compat_half_topic")
    shop.delete()
    shop.create(1)
    shop.journal.clear()
    shop.produce([*shop.orders(5, shop.register(), first=100), *BAD])
    return half_accepted(shop, Accepted.TOPIC_RECREATED)


def side_without_tag(make: Make) -> Shop:
    """The dead-letter table has lost its tag."""
    shop = landed_as(make, "compat_no_tag")
    side = shop.job().iceberg.load(shop.pipeline.table.dead_letters)
    side.manageSnapshots().removeTag(ledger.tag(shop.pipeline.name)).commit()
    return shop


def wrong_gaps(make: Make) -> Shop:
    """A compacted topic, landed; `miscount` then makes it what 0.1.0 wrote if the cleaner ran in the midst of a batch."""
    shop = make("compat_gaps", config={"cleanup.policy": "compact"})
    shop.produce(shop.orders(6, shop.register()))
    shop.drain()
    return shop


def miscount(file: Path) -> None:
    """Have the batch of `wrong_gaps` end at offset 12, and count all its 12 offsets as gaps beside the 6 records that landed.

    0.1.0 counted so when compaction removed the records between its two reads: measured on a real topic.
    """
    with tarfile.open(file) as archive:
        files = {m.name: data.read() for m in archive if (data := archive.extractfile(m)) is not None}
    files["case.json"] = json.dumps({**json.loads(files["case.json"]), "end": 12}, indent=1).encode()
    for name in files:
        if name.startswith("warehouse/shop/compat_gaps/") and name.endswith(".gz.metadata.json"):
            metadata = json.loads(gzip.decompress(files[name]))
            for summary in (snapshot["summary"] for snapshot in metadata.get("snapshots", ())):
                counts = json.loads(summary[ledger.COUNTS])
                if counts["read"] == 6:
                    summary[ledger.END] = summary[ledger.END].replace('{"0":6}', '{"0":12}')
                    summary[ledger.COUNTS] = canonical_text({**counts, "gaps": {"0": 12}})
                    summary[ledger.TOTALS] = '{"0":[0,0,12]}'
                    start, end = (Offsets.parse(summary[key]) for key in (ledger.START, ledger.END))
                    summary[ledger.COMMIT_ID] = ledger.commit_id("compat_gaps", metadata["table-uuid"], start, end)
            files[name] = gzip.compress(json.dumps(metadata).encode())
    with tarfile.open(file, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def landed_as(make: Make, name: str) -> Shop:
    """Three batches of one partition, each with dead letters."""
    shop = make(name)
    schema_id = shop.register()
    for number in range(3):
        shop.produce([*shop.orders(4, schema_id, first=4 * number), *BAD])
        shop.drain()
    return shop


def half_accepted(shop: Shop, event: Accepted) -> Shop:
    """Do what `accept` does before its commit to the main table."""
    job = shop.job()
    work = _Accepting(shop.pipeline, event, "a test", job)
    last = entry(job.iceberg.load(shop.pipeline.table.identifier), shop.pipeline.name)
    assert last is not None
    assert last.end is not None
    work.take_dead_letters_back(work.decided(last, last.end))
    return shop


CASES = (landed, open_decision, half_accepted_replay, half_accepted_recreated, side_without_tag, wrong_gaps)


def case(shop: Shop, to: Path) -> None:
    """Write one case."""
    tables = {}
    with tarfile.open(to, "w:gz") as archive:
        for identifier in (shop.pipeline.table.identifier, shop.pipeline.table.dead_letters):
            table = oracle.table(shop.lake, identifier)
            root = urlsplit(shop.lake.catalog.warehouse).path
            tables[identifier] = str(Path(urlsplit(table.metadata_location).path).relative_to(root))
            for file in sorted(Path(urlsplit(table.location()).path).rglob("*")):
                if file.is_file() and not file.name.endswith(".crc"):
                    archive.add(file, Path("warehouse") / file.relative_to(root))
        told = {
            "root": root,
            "topic": shop.topic,
            "topic_id": shop.job().kafka.topic(shop.topic).topic_id,
            "schema_id": shop.register(),
            "tables": tables,
            "records": [[p, o, None if v is None else v.hex()] for (p, o), v in sorted(shop.journal.items())],
        }
        text = json.dumps(told, indent=1).encode()
        member = tarfile.TarInfo("case.json")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))


class Bucket:
    """An artifact bucket in memory."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects

    def read(self, key: str) -> Any:
        data = self.objects.get(key)
        return None if data is None else mock.Mock(data=data, version="1")

    def swap(self, key: str, data: bytes, *, version: str | None) -> str | None:
        self.objects[key] = data
        return "2"


def documents(to: Path) -> None:
    """Write one document of each kind."""
    to.mkdir(exist_ok=True)
    pipelines = [
        Pipeline(topic=Topic("orders", value_format=ValueFormat.AVRO), table=Table("shop.orders", keep_days=3)),
        Pipeline(
            topic=Topic("clicks", value_format=ValueFormat.JSON, kafka_options={"fetch.max.bytes": "1048576"}),
            table=Table("shop.clicks", partition_by=("days(_kafka_timestamp)",)),
        ),
    ]
    declared = canonical(document(pipelines))
    kafka, registry = Kafka(bootstrap="broker:9092"), Registry(url="https://registry:8081")
    environments = {
        "local": LocalCatalog(path="/lake/catalog.db", warehouse="file:///lake/warehouse"),
        "rest": RestCatalog(uri="https://catalog", warehouse="lake", auth=RestAuth.TOKEN, token=Secret(env="TOKEN")),
        "glue": GlueCatalog(warehouse="s3://lake/warehouse", region="eu-central-1"),
    }
    for name, catalog in environments.items():
        store = None if name == "local" else ObjectStore(region="eu-central-1")
        made = Environment(name=name, kafka=kafka, registry=registry, catalog=catalog, object_store=store)
        (to / f"environment-{name}.json").write_bytes(canonical(environment_document(made)))
    files = [
        File(name=f"{role}.bin", role=role, sha256=digest(role.encode()), size_bytes=3)
        for role in (Role.PACKAGE, Role.ENVIRONMENT, Role.INGEST, Role.MAINTAIN, Role.BILL)
    ]
    release = Release(
        version="0.1.0",
        git_commit="1" * 40,
        is_dirty=False,
        label="emr-spark-8.1.0",
        architecture=Architecture.X86_64,
        runtime=Runtime(python="3.11", spark="4.1.1", iceberg="1.11.0", classes=("org.apache.iceberg.Table",)),
        files=tuple(sorted(files, key=lambda file: file.name)),
    )
    desired = Desired(
        job="shop",
        generation=3,
        label=release.label,
        application="00f",
        release=release.key,
        document=f"documents/{digest(declared)}.json",
        environment=f"documents/{digest(b'environment')}.json",
        execution_role="arn:aws:iam::123456789012:role/shop",
        log_uri="s3://logs/shop/",
        arguments=("--poll-seconds=5",),
    )
    bucket = Bucket({desired.document: declared})
    assert change_stop(bucket, desired, "clicks", is_stopped=True)
    memory = RolloutState(number=7).with_application("00e").with_proven(desired).with_given_up(desired)
    for name, data in {
        "declaration": declared,
        "manifest": manifest(release),
        "desired": desired_document(desired),
        "memory": memory.document(),
        "stops": bucket.objects[stops_key("shop")],
        "digests": canonical({"desired": desired.digest, "release": release.digest}),
    }.items():
        (to / f"{name}.json").write_bytes(data)


def main(to: Path, *names: str) -> None:
    """Write all cases and documents, or the named cases only."""
    chosen = [one for one in CASES if not names or one.__name__ in names]
    if not names:
        documents(to / "documents")
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Path(folder) / "warehouse"
        warehouse.mkdir()
        lake = Environment(
            name="test",
            kafka=Kafka(bootstrap="127.0.0.1:9"),
            catalog=LocalCatalog(path=f"{folder}/catalog.db", warehouse=warehouse.as_uri()),
        )
        with world(Path(folder) / "world") as running:
            spark: SparkSession = session(
                lake,
                Secrets(os.environ).read,
                name="fixtures",
                jars=spark_jars(),
                master="local[2]",
                settings=SETTINGS,
            )

            def make(name: str, **topic: Any) -> Shop:
                return Shop(running, spark, lake, name, partitions=1, **topic)

            for one in chosen:
                case(one(make), to / f"{one.__name__}.tar.gz")
                if one is wrong_gaps:
                    miscount(to / "wrong_gaps.tar.gz")
            spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
