"""A pipeline's tables as many commits leave them, without Kafka: real files, real commits, quick to make."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from frazil.audit.verification import Verification
from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.dead_letters.rejected_rows import COLUMNS as DEAD_LETTERS
from frazil.declaration import Pipeline, Table, Topic
from frazil.declaration.environment import Environment
from frazil.ingest.setup.table_setup import initialise_ledger, make_tables
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.dead_letters.decide import decide_and_finish
from frazil.lake.commit.request import CommitRequest
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts
from frazil.lake.read.stored_tables import Lake
from frazil.lake.snapshot_retention import History
from frazil.lake.stage import Staged, stage
from frazil.maintain.lease import Lease
from frazil.maintain.target import MaintenanceRun, Policy, Target
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.support import oracle
from tests.support.jobs import job, no_wait

ROW = Struct((Field("order_id", Primitive(Kind.LONG)), Field("day", Primitive(Kind.INT))))
EAGER = Policy(closed_seconds=0, grace_seconds=0)


class Stock:
    """A pipeline and the batches that it landed, all in Kafka partition 0."""

    def __init__(
        self, spark: SparkSession, iceberg: Iceberg, environment: Environment, name: str, **table: Any
    ) -> None:
        self.spark, self.iceberg, self.environment = spark, iceberg, environment
        self.pipeline = Pipeline(topic=Topic(name, value="avro"), table=Table(f"stock.{name}", **table), name=name)
        self.run, self.at = "ingest", 0
        self.settled: int | None = None  # see `CommitRequest`
        begun = job(iceberg, run=self.run)
        make_tables(begun, self.pipeline, ROW)
        initialise_ledger(begun, self.pipeline, self.offsets(0))

    @property
    def table(self) -> str:
        return self.pipeline.table.identifier

    @property
    def dead_letters(self) -> str:
        return self.pipeline.table.dead_letters

    @property
    def main(self) -> Target:
        return Target(self.pipeline, is_dead_letter_table=False)

    @property
    def side(self) -> Target:
        return Target(self.pipeline, is_dead_letter_table=True)

    def offsets(self, at: int) -> Offsets:
        return Offsets(self.pipeline.topic.name, "T1", {0: at})

    # ── What the ingest does ────────────────────────────────────────────────────────────────────
    def land(
        self,
        batches: int,
        *,
        rows: int = 10,
        after: Callable[[int], None] = lambda number: None,
        failpoint: Callable[[str], None] = lambda step: None,
    ) -> None:
        """Land so many batches, each what one task wrote, and one commit; `after` is called with the number of each."""
        staged = self.staged(batches, rows)
        of_task: dict[str, list[Any]] = {}
        for file in staged.files:
            of_task.setdefault(Path(file.location()).name.partition("-")[0], []).append(file)
        for number, task in enumerate(sorted(of_task)):
            files = tuple(of_task[task])
            one = Staged(staged.table, staged.table_uuid, staged.field_ids, files, rows, 1, staged.at)
            commit(job(self.iceberg, run=self.run, failpoint=failpoint), one, self.batch(rows))
            self.at += rows
            after(number + 1)

    def land_with_dead_letters(
        self, batches: int = 1, *, rows: int = 10, dead: int = 2, failpoint: Callable[[str], None] = lambda step: None
    ) -> None:
        """Land batches of each of which the last records are dead letters."""
        for _ in range(batches):
            main, side = self.staged(1, rows - dead), self.staged_dead(self.at + rows - dead, dead)
            self.publish(main, side, failpoint=failpoint)

    def publish(self, main: Staged, side: Staged, *, failpoint: Callable[[str], None] = lambda step: None) -> None:
        """Commit the next records, as staged."""
        counts = Counts(read=main.rows + side.rows, written=main.rows, rejected={"too_short": side.rows})
        decide_and_finish(
            job(self.iceberg, run=self.run, failpoint=failpoint), main, [side], self.batch(counts.read, counts)
        )
        self.at += counts.read

    def staged(self, files: int, rows: int) -> Staged:
        """Stage rows of the next records, in `files` files with `rows` rows each."""
        records = self.spark.range(self.at, self.at + files * rows, 1, files)
        topic, null = F.lit(self.pipeline.topic.name), F.lit(None)
        columns = [
            F.col("id").alias("order_id"),
            (F.col("id") % 1).cast("int").alias("day"),
            topic.alias("_kafka_topic"),
            F.lit(0).alias("_kafka_partition"),
            F.col("id").alias("_kafka_offset"),
            self.timestamps(self.at, files * rows).alias("_kafka_timestamp"),
            null.cast("binary").alias("_kafka_key"),
            null.cast("array<struct<key:string,value:binary>>").alias("_kafka_headers"),
            null.cast("long").alias("_kafka_schema_id"),
            F.lit(datetime(2026, 1, 1, tzinfo=UTC)).cast("timestamp").alias("_ingested_at"),
        ]
        return stage(self.iceberg, self.table, records.select(*columns), unique_id=uuid.uuid4().hex, at=time.time())

    def timestamps(self, first: int, rows: int) -> Column:
        """Return the timestamps of the records from an offset on."""
        return F.lit(datetime(2026, 1, 1, tzinfo=UTC)).cast("timestamp")

    def staged_dead(self, first: int, rows: int, **more: Column) -> Staged:
        """Dead letters, staged; `more` are further columns."""
        known = {
            "reason": F.lit("too_short"),
            "topic": F.lit(self.pipeline.topic.name),
            "partition": F.lit(0),
            "offset": F.col("id"),
            "rejected_at": F.lit(datetime(2026, 1, 1, tzinfo=UTC)).cast("timestamp"),
            **more,
        }
        schema = self.spark.table(f"lake.{self.dead_letters}").schema
        columns = [
            known.get(f.name, F.lit(None)).cast(schema[f.name].dataType).alias(f.name) for f in DEAD_LETTERS.fields
        ]
        letters = self.spark.range(first, first + rows, 1, 1).select(*columns)
        return stage(self.iceberg, self.dead_letters, letters, unique_id=uuid.uuid4().hex, at=time.time())

    def batch(self, rows: int, counts: Counts | None = None) -> CommitRequest:
        """Return the batch of the next records."""
        start, end = self.offsets(self.at), self.offsets(self.at + rows)
        return CommitRequest(
            pipeline=self.pipeline.name,
            run=self.run,
            version="test",
            start=start,
            end=end,
            committed=start,
            settled=self.settled,
            topic_id="T1",
            counts=counts or Counts(read=rows, written=rows),
            valid_through=1_767_225_600_000,
        )

    # ── What upkeep does ────────────────────────────────────────────────────────────────────────
    def maintenance(self, *, policy: Policy = EAGER, dry_run: bool = False, **overrides: Any) -> MaintenanceRun:
        """Return a maintenance run without a grace period and without waiting."""
        after = {"clock": lambda: time.time() + 1}  # what was committed just now is in the past
        return MaintenanceRun(job(self.iceberg, **{**after, **overrides}), replace(policy, dry_run=dry_run))

    @property
    def lease(self) -> Lease:
        """The lease that the table stores."""
        return Lease.of(self.metadata()["properties"])

    # ── What must be so ─────────────────────────────────────────────────────────────────────────
    def metadata(self, table: str = "") -> dict[str, Any]:
        """Read a table's metadata file."""
        return self.iceberg.metadata(self.iceberg.load(table or self.table))

    def history(self, table: str = "") -> History:
        """Return a table's snapshots."""
        return History.of(self.metadata(table))

    def summary(self) -> Mapping[str, str]:
        """Return the summary of the pipeline's newest commit."""
        last = entry(self.iceberg.load(self.table), self.pipeline.name)
        assert last is not None
        return last.summary

    def end(self) -> int:
        """Return the next offset that the table holds."""
        last = entry(self.iceberg.load(self.table), self.pipeline.name)
        assert last is not None
        assert last.end is not None
        return last.end.at[0]

    def offsets_landed(self) -> list[int]:
        """Read the offsets of all rows without Spark, sorted."""
        return [offset for _, offset in oracle.places(self.environment, self.table)]

    def live_files(self) -> set[str]:
        """Return the data files of the current snapshot."""
        tasks = oracle.table(self.environment, self.table).scan().plan_files()
        return {urlsplit(task.file.file_path).path for task in tasks}

    def files(self, folder: str, table: str = "") -> set[str]:
        """Return all files under `data` or `metadata` of a table's location."""
        location = Path(urlsplit(self.iceberg.load(table or self.table).location()).path)
        found = (path for path in (location / folder).rglob("*") if path.is_file())
        return {str(path) for path in found if not path.name.endswith(".crc")}

    def verified(self, *, deep: bool = False) -> Verification:
        """Verify the table."""
        return verify(self.pipeline, Lake(self.environment, Secrets(os.environ).read), deep=deep, wait=no_wait)

    def assert_nothing_changed(self) -> None:
        """Check that each record is there once, that the ledger is unchanged, and that verification passes."""
        assert self.offsets_landed() == list(range(self.at))
        assert self.end() == self.at
        proof = self.verified()
        assert proof.outcome == "proven", proof.findings
