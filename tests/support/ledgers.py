"""A pipeline with dead letters and an operator: real tables and commits, an in-memory topic, no decoding."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.options import Isolation
from frazil.errors import InvalidInput
from frazil.ingest.plan import fingerprint
from frazil.ingest.setup import table_setup
from frazil.ingest.setup.table_setup import initialise_ledger, make_tables
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters.decide import finish_open
from frazil.lake.commit.request import CommitRequest
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.last_records import LastRecord, LastRecords
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts
from frazil.lake.stage import Staged
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Acceptance, Accepted
from tests.support import oracle
from tests.support.committed_table import ROW, Stock
from tests.support.fake_kafka import FakeKafka
from tests.support.jobs import Crash, crash_at, job, nothing

FIRST_MS = 1_767_225_600_000  # the timestamp of the record at offset 0; each later one has a millisecond more
LATE_MS = 3_600_000  # what a record that replaced another one has more


class Ledgers(Stock):
    """A `Stock` whose topic is in memory; of each batch of 10 records the last two are dead letters."""

    def __init__(self, *arguments: Any, **table: Any) -> None:
        self._moments = itertools.count(round(time.time() * 1_000_000))
        self.kafka = FakeKafka()
        self.remembers_last = False  # whether commits have the last record, by which a truncated log is noticed
        self._staged_us = 0
        super().__init__(*arguments, **table)
        self.kafka.create(self.pipeline.topic.name)
        self.kafka.topics[self.pipeline.topic.name].topic_id = "T1"

    @property
    def topic_id(self) -> str:
        """The topic's id now."""
        topic = self.kafka.topics.get(self.pipeline.topic.name)
        return topic.topic_id if topic is not None else "T1"

    def offsets(self, at: int) -> Offsets:
        return Offsets(self.pipeline.topic.name, self.topic_id, {0: at})

    @property
    def log(self) -> list[int | None]:
        """The timestamps of the records of partition 0, whose changes are those of the log."""
        return self.kafka.topics[self.pipeline.topic.name].partitions[0].timestamps

    def replace_log(self, *, kept: int, grown: int) -> None:
        """Truncate the log to `kept` records and have it grow to `grown`, with other ones."""
        self.log[kept:] = [FIRST_MS + LATE_MS + offset for offset in range(kept, grown)]

    def staged(self, files: int, rows: int) -> Staged:
        """Stage the next records; the log gets those that it lacks."""
        self._produce_until(self.at + files * rows)
        return super().staged(files, rows)

    def staged_dead(self, first: int, rows: int, **more: Column) -> Staged:
        """Stage dead letters as `ingest/batch/staging.py` does: each batch has its own time of staging."""
        self._produce_until(first + rows)
        self._staged_us = next(self._moments)
        at, run = F.timestamp_micros(F.lit(self._staged_us)), F.lit(self.run)
        known = {"rejected_at": at, "run": run, "timestamp": self.timestamps(first, rows), **more}
        return super().staged_dead(first, rows, **known)

    def timestamps(self, first: int, rows: int) -> Column:
        """Return the timestamps that the records have in the log."""
        times = F.array(*(F.lit(ms) for ms in self.log[first : first + rows]))
        return F.timestamp_millis(F.element_at(times, (F.col("id") - first + 1).cast("int")))

    def _produce_until(self, end: int) -> None:
        self.log.extend(FIRST_MS + offset for offset in range(len(self.log), end))

    def step_clock(self, seconds: int) -> None:
        """Make the driver's clock differ from the catalog's from now on."""
        self._moments = itertools.count(next(self._moments) + seconds * 1_000_000)

    def batch(self, rows: int, counts: Counts | None = None) -> CommitRequest:
        made = replace(super().batch(rows, counts), topic_id=self.topic_id)
        if self.remembers_last:
            record = self.kafka.records(made.end.topic, {0: made.end.at[0] - 1}, Isolation.READ_COMMITTED)[0]
            assert record is not None
            last = LastRecords(self.topic_id, {0: LastRecord(record.offset, fingerprint.of_record(record))})
            made = replace(made, end=replace(made.end, last=last))
        return replace(made, staged_us=self._staged_us) if counts is not None else made

    # ── What an operator and a driver do ────────────────────────────────────────────────────────
    def job(self, run: str = "", failpoint: Callable[[str], None] = nothing) -> JobContext:
        """Return a job of its own."""
        return job(self.iceberg, run=run, failpoint=failpoint, kafka=self.kafka)

    def accept(self, event: Accepted, *, failpoint: Callable[[str], None] = nothing) -> Acceptance:
        """Apply a decision. Later batches start where it says."""
        decided = accept(self.pipeline, event, "as the test says", self.job(failpoint=failpoint))
        self.at, self.settled = decided.after.at[0], self._newest()
        return decided

    def refuses(self, event: Accepted, match: str) -> InvalidInput:
        """Check that a decision is refused, and that neither table changes. Return the error."""
        before = self.head(), self.letters()
        with pytest.raises(InvalidInput, match=match) as refused:
            self.accept(event)
        assert (self.head(), self.letters()) == before
        return refused.value

    def die(self, step: str, event: Accepted | None = None) -> None:
        """Have a driver die at a step of a batch, or an operator's command at one of a decision."""
        act = self.land_with_dead_letters if event is None else partial(self.accept, event)
        with pytest.raises(Crash):
            act(failpoint=crash_at(step))

    def start(self, *, failpoint: Callable[[str], None] = nothing) -> None:
        """Start a run as the driver does, up to its first batch."""
        job = self.job(self.run, failpoint)
        make_tables(job, self.pipeline, ROW)
        self._finish(failpoint)
        held = table_setup.read_ledger(self.iceberg, self.pipeline)
        if held is None:
            initialise_ledger(job, self.pipeline, self.offsets(0))
            held = table_setup.read_ledger(self.iceberg, self.pipeline)
        self._finish(failpoint)
        assert held is not None
        assert held.end is not None
        self.at, self.settled = held.end.at[0], held.snapshot_id

    def goes_on(self, batches: int = 1, *, each_once: bool = False) -> None:
        """Start a run, land batches, and check that verification proves them, or that each record is there once."""
        self.start()
        self.land_with_dead_letters(batches)
        self.assert_each_once() if each_once else self.assert_proven()

    def _newest(self) -> int | None:
        found = entry(self.iceberg.load(self.table), self.pipeline.name)
        return found.snapshot_id if found is not None else None

    def _finish(self, failpoint: Callable[[str], None]) -> None:
        finish_open(self.job("later", failpoint), self.table, self.dead_letters, self.pipeline.name)

    # ── Manual operations ──────────────────────────────────────────────────────────────
    def roll_back(self, commits: int, table: str = "") -> None:
        """Set a table's head back by so many snapshots."""
        loaded = self.iceberg.load(table or self.table)
        snapshot = loaded.currentSnapshot()
        for _ in range(commits):
            snapshot = loaded.snapshot(snapshot.parentId())
        loaded.manageSnapshots().rollbackTo(snapshot.snapshotId()).commit()

    def set_head(self, snapshot_id: int) -> None:
        """Set the table's head to any of its snapshots."""
        self.iceberg.load(self.table).manageSnapshots().setCurrentSnapshot(snapshot_id).commit()

    def remove_tag(self, table: str = "") -> None:
        """Remove the pipeline's tag."""
        self.iceberg.load(table or self.table).manageSnapshots().removeTag(ledger.tag(self.pipeline.name)).commit()

    def drop(self, table: str = "") -> None:
        """Drop a table, and leave its files."""
        self.iceberg.drop(table or self.table, purge=False)

    def metadata_file(self, table: str = "") -> str:
        """Return the table's current metadata file."""
        return str(self.iceberg.load(table or self.table).operations().current().metadataFileLocation())

    def restore(self, metadata_file: str, table: str = "") -> None:
        """Set a table back to an older metadata file, as an operator does after an accident."""
        self.drop(table)
        self.iceberg.catalog.registerTable(self.iceberg.identifier(table or self.table), metadata_file)

    def expire_unnamed(self, table: str, *, forget: bool = True) -> None:
        """Expire all snapshots of a table but those that a branch or a tag names: head and newest entry.

        With `forget`, also delete its older metadata files.
        """
        loaded = self.iceberg.load(table)
        named = {ref.snapshotId() for ref in loaded.refs().values()}
        expire = loaded.expireSnapshots()
        for snapshot in loaded.snapshots():
            if snapshot.snapshotId() not in named:
                expire = expire.expireSnapshotId(snapshot.snapshotId())
        expire.cleanExpiredFiles(True).commit()
        if forget:
            current = Path(urlsplit(self.metadata_file(table)).path)
            for older in set(current.parent.glob("*.metadata.json")) - {current}:
                older.unlink()

    def head(self) -> int:
        """Return the table's current snapshot."""
        return int(self.iceberg.load(self.table).currentSnapshot().snapshotId())

    def recreate_topic(self, *, is_accepted: bool = False) -> None:
        """Delete the topic and create it again. An operator may accept it."""
        self.kafka.create(self.pipeline.topic.name)
        if is_accepted:
            self.accept(Accepted.TOPIC_RECREATED)

    # ── What must be so ─────────────────────────────────────────────────────────────────────────
    def places(self) -> list[int]:
        """Return the offsets of all rows and dead letters."""
        both = [*oracle.places(self.environment, self.table), *oracle.places(self.environment, self.dead_letters)]
        return sorted(offset for _, offset in both)

    def letters(self) -> list[int]:
        """Return the offsets of all dead letters."""
        return sorted(offset for _, offset in oracle.places(self.environment, self.dead_letters))

    def assert_proven(self) -> None:
        """Check that verification of all files finds nothing."""
        found = self.verified(deep=True)
        assert found.outcome == "proven", [str(f) for f in found.findings]

    def assert_each_once(self) -> None:
        """Check that each record before the next batch is in one table once, also by verification."""
        assert self.places() == list(range(self.at))
        self.assert_proven()


def side_entry(stock: Stock) -> ledger.Entry:
    """Return the dead-letter table's newest entry."""
    found = entry(stock.iceberg.load(stock.dead_letters), stock.pipeline.name)
    assert found is not None
    return found
