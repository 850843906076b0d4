"""A topic with a journal of all produced records and their offsets, which tables must hold. Records, schemas and frames are real."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import fastavro
import pytest
from confluent_kafka import Message, Producer
from pyspark.sql import DataFrame, SparkSession

from frazil.audit.verification import Verification
from frazil.audit.verify import verify
from frazil.clients.kafka import Kafka
from frazil.clients.registry.client import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration import Append, Pipeline, Spark, Table
from frazil.declaration.documents.document import document, environment_document
from frazil.declaration.documents.to_json import canonical
from frazil.declaration.environment import Environment
from frazil.declaration.environment import Kafka as KafkaSettings
from frazil.declaration.environment import Registry as RegistrySettings
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.envelopes.chosen_envelope import envelope
from frazil.ingest import runner
from frazil.ingest.guard import Outcome
from frazil.ingest.loop import Ingestion
from frazil.ingest.reporting.events import Reporter, Total
from frazil.job.context import JobContext
from frazil.lake.catalogs import needs_s3
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.read.stored_tables import Lake
from frazil.local.services import LocalServices
from frazil.local.toolchain import class_path
from frazil.local.toolchain.class_data_sharing import java_options
from frazil.local.toolchain.class_path import LOCAL_FILES
from frazil.maintain.compact import compact
from frazil.maintain.lease import Lease
from frazil.maintain.target import MaintenanceRun, Policy, Target
from frazil.maintain.target import Outcome as Done
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Acceptance, Accepted
from tests.support import oracle
from tests.support.jobs import Crash, crash_at, job
from tests.support.kafka_broker import KafkaBroker
from tests.support.registry_admin import RegistryAdmin
from tests.support.topics import topic_of

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "amount", "type": ["null", "double"], "default": None},
    ],
}
Place = tuple[int, int]
INGEST = Path(__file__).parents[2] / "jobs" / "ingest.py"
# One short JVM: a small heap, and the first compiler tier only. That tier alone has 48 MB for compiled code, which the classes that
# Spark generates fill within minutes; then Java sweeps it without end and compiles again what it removed, for a fifth of the time.
JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xss4m"
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": f"{JAVA} {java_options()}",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    **LOCAL_FILES,
}


def frame(schema_id: int, body: bytes) -> bytes:
    """Magic byte, schema id, body."""
    return b"\x00" + struct.pack(">I", schema_id) + body


def avro(schema: Mapping[str, Any], value: Any) -> bytes:
    """Encode a value as Avro binary."""
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(dict(schema)), value)
    return buffer.getvalue()


_OF_PIPELINE = (*("start", "on_error", "max_rejected_percent", "headers", "kafka", "write", "envelope", "shape"),)


class Shop:
    """One topic, one pipeline, and the journal of what was produced."""

    def __init__(
        self,
        world: LocalServices,
        spark: SparkSession,
        lake: Environment,
        name: str,
        *,
        partitions: int = 2,
        **topic: Any,
    ) -> None:
        self.world, self.spark, self.lake, self.topic = world, spark, lake, name
        self.journal: dict[Place, bytes | None] = {}
        self.events: list[Mapping[str, Any]] = []
        self._broker = KafkaBroker(world.bootstrap, log_level=0)
        self._producer = Producer({"bootstrap.servers": world.bootstrap, "linger.ms": 5, "log_level": 0})
        self.registry_admin = RegistryAdmin(world.registry_url)
        config = topic.pop("config", {})
        table = {"identifier": f"shop.{name}", **topic.pop("table", {})}
        choices = {name: topic.pop(name) for name in _OF_PIPELINE if name in topic}
        if "tombstones" in topic:
            choices["write"] = Append(on_tombstone=topic.pop("tombstones"))
        if "limits" in topic:
            choices["engine"] = Spark(limits=topic.pop("limits"))
        self.create(partitions, config)
        self.pipeline = Pipeline(
            topic=topic_of(name, **{"value_format": "avro", **topic}),
            table=Table(table.pop("identifier"), **table),
            **choices,
        )

    # ── Kafka's side ────────────────────────────────────────────────────────────────────────────
    def create(self, partitions: int = 2, config: Mapping[str, str] | None = None) -> None:
        """Create the topic, waiting until a topic of this name that is being deleted has gone."""
        self._broker.create(self.topic, partitions=partitions, config=config)

    def delete(self) -> None:
        """Delete the topic."""
        self._broker.delete(self.topic)

    def add_partitions(self, total: int) -> None:
        """Give the topic more partitions; the producer is a new one, which knows them."""
        self._broker.add_partitions(self.topic, total)
        self.new_producer(total)

    def new_producer(self, total: int) -> None:
        """Make a producer that knows the topic as it is now, with so many partitions."""
        deadline = time.monotonic() + 20
        while True:
            self._producer = Producer({"bootstrap.servers": self.world.bootstrap, "linger.ms": 5, "log_level": 0})
            if len(self._producer.list_topics(self.topic, timeout=10).topics[self.topic].partitions) == total:
                return
            assert time.monotonic() < deadline, "the new partitions do not appear"

    def delete_records(self, before: int, *, partition: int = 0) -> None:
        """Have Kafka delete the records before an offset, as retention does."""
        self._broker.trim(self.topic, partition, before)

    def new_topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Delete the topic and create it again. The producer and the journal begin again, too."""
        self.delete()
        self.create(partitions, config)
        self.new_producer(partitions)
        self.journal.clear()

    def register(self, schema: Mapping[str, Any] = ORDER) -> int:
        """Register a version of the topic's value schema; its id."""
        return self.registry_admin.register(f"{self.topic}-value", json.dumps(schema))

    def produce(self, values: Sequence[bytes | None], *, partition: int | None = None, **record: Any) -> list[Place]:
        """Produce values, add them to the journal, and return the offset of each."""
        places: list[Place] = []

        def written(value: bytes | None) -> Callable[[Any, Message], None]:
            def note(error: Any, message: Message) -> None:
                assert error is None, error
                place = (message.partition(), message.offset())
                self.journal[place] = value
                places.append(place)

            return note

        for number, value in enumerate(values):
            where = {} if partition is None else {"partition": partition}
            key = record.get("key", str(number).encode())
            self._producer.produce(self.topic, value, on_delivery=written(value), **{**record, "key": key, **where})
            self._producer.poll(0)
        self._producer.flush()
        return places

    def orders(self, count: int, schema_id: int, *, first: int = 0, schema: Mapping[str, Any] = ORDER) -> list[bytes]:
        """Return framed orders, numbered from `first`."""
        return [
            frame(
                schema_id, avro(schema, {"order_id": first + i, "user": f"u{i % 7}", "amount": i / 4, **_more(schema)})
            )
            for i in range(count)
        ]

    # ── Frazil's side ───────────────────────────────────────────────────────────────────────────
    @property
    def environment(self) -> Environment:
        """The lake of the session with the broker and registry of the world."""
        return Environment(
            name="test",
            kafka=KafkaSettings(bootstrap=self.world.bootstrap),
            registry=RegistrySettings(url=self.world.registry_url),
            catalog=self.lake.catalog,
            object_store=self.lake.object_store,
        )

    def registry(self, url: str = "", **options: Any) -> Registry:
        """Return a client of the world's registry, or of the one with this URL."""
        return Registry.of(RegistrySettings(url=url or self.world.registry_url), Secrets({}), **options)

    def job(self, run: str = "", **overrides: Any) -> JobContext:
        """Return a job on the shared session."""
        kafka = overrides.pop("kafka", None) or Kafka(self.environment.kafka, Secrets({}))
        return job(Iceberg(self.spark, self.lake.catalog.name), run=run, kafka=kafka, **overrides)

    def ingestion(
        self, pipeline: Pipeline | None = None, registry: Registry | None = None, **overrides: Any
    ) -> Ingestion:
        """Return one run of the pipeline, with the shop's registry or another one."""
        job, chosen = self.job(**overrides), pipeline or self.pipeline
        report = Reporter(self.events.append, chosen.name, self.topic, job.run, job.clock)
        writers = writer_schemas(
            chosen.topic, registry or self.registry(), envelope=envelope(chosen.envelope), route=chosen.shape.route
        )
        return Ingestion(chosen, job, writers, report)

    def drain(self, pipeline: Pipeline | None = None, **overrides: Any) -> Total:
        """Land all existing records."""
        return self.ingestion(pipeline, **overrides).drain()

    def die(self, step: str) -> None:
        """Have a driver die at a step, as if it were killed."""
        with pytest.raises(Crash):
            self.drain(failpoint=crash_at(step))

    def ended(self, pipeline: Pipeline | None = None, **overrides: Any) -> Outcome:
        """Land all existing records as a command does, and return how that ended; a stop is noted in the table."""
        return self.drained(pipeline or self.pipeline, **overrides)[(pipeline or self.pipeline).name]

    def drained(self, *pipelines: Pipeline, **overrides: Any) -> Mapping[str, Outcome]:
        """Do the same with pipelines of one run."""
        return runner.drain(pipelines, self.job(**overrides), self.registry(), self.events.append, probe=False)

    def process(
        self,
        folder: Path,
        *,
        failpoints: str = "",
        script: Path = INGEST,
        settings: Mapping[str, str] = MappingProxyType({}),
        mode: Sequence[str] = ("--once",),
        declared: bytes | None = None,
    ) -> subprocess.Popen[str]:
        """Run the entry point once, in a process of its own. `settings` are further settings of Spark.

        `declared` is the document of pipelines; the default is the one that this release writes.
        """
        document_file, environment_file = folder / "document.json", folder / "environment.json"
        document_file.write_bytes(declared or canonical(document([self.pipeline])))
        environment_file.write_bytes(canonical(environment_document(self.environment)))
        arguments = ["--document", document_file, "--environment", environment_file, *mode, "--master", "local[2]"]
        for key, value in {**SETTINGS, **settings}.items():
            arguments += ["--setting", f"{key}={value}"]
        return subprocess.Popen(
            [sys.executable, str(script), *map(str, arguments)],
            env={
                **os.environ,
                **class_path.variables(class_path.driver_jars(aws=needs_s3(self.lake)), os.environ),
                "FRAZIL_FAILPOINTS": failpoints,
            },
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def accept(self, event: Accepted, pipeline: Pipeline | None = None, **overrides: Any) -> Acceptance:
        """Apply an operator's decision."""
        return accept(pipeline or self.pipeline, event, "as the test says", self.job(**overrides))

    # ── Other engines and people ────────────────────────────────────────────────────────────────
    @property
    def path(self) -> str:
        """The table as Spark names it, with its catalog."""
        return f"{self.lake.catalog.name}.{self.pipeline.table.identifier}"

    def sql(self, statement: str) -> DataFrame:
        """Run a statement in Spark, as another engine does. `{}` is the table."""
        return self.spark.sql(statement.format(self.path))

    def rewrite(self) -> None:
        """Rewrite all data files without their deleted rows, as another engine does."""
        options = "map('rewrite-all', 'true', 'delete-file-threshold', '1')"
        self.sql(f"CALL {self.lake.catalog.name}.system.rewrite_data_files(table => '{{}}', options => {options})")

    def roll_back(self, snapshots: int = 1) -> None:
        """Set the table's head back by so many snapshots."""
        snapshot = self.table.currentSnapshot()
        for _ in range(snapshots):
            snapshot = self.table.snapshot(snapshot.parentId())
        self.table.manageSnapshots().rollbackTo(snapshot.snapshotId()).commit()

    # ── Upkeep ──────────────────────────────────────────────────────────────────────────────────
    @property
    def target(self) -> Target:
        """The table as maintenance sees it."""
        return Target(self.pipeline, is_dead_letter_table=False)

    def upkeep(self, **overrides: Any) -> MaintenanceRun:
        """Return a maintenance run that waits for no reader."""
        return MaintenanceRun(self.job(**overrides), Policy(grace_seconds=0))

    def compact(self) -> Done:
        """Compact the table."""
        return compact(self.upkeep(), self.target, Lease())

    # ── What must be so ─────────────────────────────────────────────────────────────────────────
    @property
    def table(self) -> Java:
        """The table, loaded by the driver's own library."""
        return self.job().iceberg.load(self.pipeline.table.identifier)

    @property
    def stored(self) -> Any:
        """The table, loaded by PyIceberg."""
        return oracle.table(self.lake, self.pipeline.table.identifier)

    def entry(self) -> Entry:
        """Return the newest entry of the ledger."""
        found = entry(self.table, self.pipeline.name)
        assert found is not None
        return found

    def account(self) -> KeyAccount:
        """Return the account of the keys of the newest entry."""
        keys = self.entry().keys
        assert keys is not None
        return keys

    def counts(self) -> dict[str, Any]:
        """Return what the newest commit counts."""
        found: dict[str, Any] = json.loads(self.stored.current_snapshot().summary["frazil.counts"])
        return found

    def landed(self) -> list[dict[str, Any]]:
        """Return the table's rows."""
        return oracle.rows(self.lake, self.pipeline.table.identifier)

    def dead(self) -> list[dict[str, Any]]:
        """Return the dead letters."""
        return oracle.rows(self.lake, self.pipeline.table.dead_letters)

    def assert_each_record_once(self) -> None:
        """Check that every record of the journal is in one of table and dead-letter table, once, and no other record is."""
        landed = oracle.places(self.lake, self.pipeline.table.identifier)
        dead = oracle.places(self.lake, self.pipeline.table.dead_letters)
        assert sorted([*landed, *dead]) == sorted(self.journal), f"landed {sorted(landed)}, dead letters {sorted(dead)}"

    def verified(self, pipeline: Pipeline | None = None, *, deep: bool = False) -> Verification:
        """Verify the table."""
        return verify(pipeline or self.pipeline, Lake(self.lake, Secrets({}).read), deep=deep)

    def assert_proven(self, pipeline: Pipeline | None = None, *, deep: bool | None = None) -> None:
        """Check that the verification of this depth proves the table, or that both do."""
        for depth in (False, True) if deep is None else (deep,):
            found = self.verified(pipeline, deep=depth)
            assert found.outcome == "proven", (depth, [str(finding) for finding in found.findings])

    def seen(self, event: str) -> list[Mapping[str, Any]]:
        """Return the events with a name so far."""
        return [e for e in self.events if e["event"] == event]


ShopOf = Callable[..., Shop]
"""Makes the test's shop, with what it declares."""


def _more(schema: Mapping[str, Any]) -> dict[str, Any]:
    known = {f["name"] for f in ORDER["fields"]}
    return {f["name"]: 1 for f in schema["fields"] if f["name"] not in known and "default" not in f}
