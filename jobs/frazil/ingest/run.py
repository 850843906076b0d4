"""Run: the order of one batch, top to bottom, and of the batches of one pipeline.

While batch n is published, batch n+1 is staged; n+1 is handed to publish only after n is done, and a failed n drops n+1 and
ends the run with n's own error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from frazil.declaration import Pipeline
from frazil.errors import CountsDisagree, Fenced, SparkFailed
from frazil.ingest import prepare
from frazil.ingest.batch import StagedBatch, Staging, UnknownSchemas
from frazil.ingest.driver import Driver
from frazil.ingest.evolution import Evolution
from frazil.ingest.failures import Cancelled, LoginRefused
from frazil.ingest.plan import Pace, Plan, Span, plan
from frazil.ingest.report import Event, Reporter, Total
from frazil.ingest.writers import Writers
from frazil.lake import trim
from frazil.lake.decide import decide_and_finish, finish_open
from frazil.lake.fence import StageAgain
from frazil.lake.ledger import Offsets
from frazil.lake.publish import Published

ATTEMPTS = 3  # how often one batch is staged anew before the run gives up
IDLE_TOLD_SECONDS = 60.0


class Ingestion:
    """One pipeline, landed by one driver."""

    def __init__(self, pipeline: Pipeline, driver: Driver, writers: Writers, report: Reporter) -> None:
        self.pipeline, self.driver, self.report = pipeline, driver, report
        self.pace = Pace.of(pipeline.limits)
        self._evolution = Evolution(pipeline, driver, writers, report)
        self.total = Total()
        self._held: Offsets | None = None
        self._staging: Staging | None = None
        self._idle_told: float | None = None
        self._commits = 0

    # ── The order of one batch ──────────────────────────────────────────────────────────────────
    def drain(self) -> Total:
        """Land everything up to the stable offsets seen now; returns what was done. Being fenced is a normal end."""
        spans = self._spans()
        try:
            if not self._ready():
                self._idle(lag=0, message="no schema is registered yet")
                return self.total
            self._land(lambda: spans, least=1)
            self._trim()
        except Fenced as fenced:
            self.total.fenced = True
            self.report(Event.FENCED, message=fenced.what)
        return self.total

    def poll(self) -> bool:
        """Land what is there now, for a run that goes on; returns whether there was anything. Raises `Fenced`.

        While more than half a batch is waiting it goes on; the little that came in meanwhile is the next poll's.
        """
        if self._held is None and not self._ready():
            self._idle(lag=0, message="no schema is registered yet")
            return False
        before = self.total.batches
        self._land(self._spans, least=max(self.pace.rows // 2, 1))
        return self.total.batches > before

    def forget(self) -> None:
        """Begin anew at the next poll, from what the table says then: after an error nothing remembered counts."""
        self._held = None

    def _land(self, spans: Callable[[], Mapping[int, Span]], *, least: int) -> None:
        """Land batch after batch until nothing is waiting; after the first, until less than `least` records are."""
        attempts, landed, pending = 0, 0, None
        assert self._held is not None
        held = self._held
        with ThreadPoolExecutor(1, thread_name_prefix=f"publish-{self.pipeline.name}") as publisher:
            while not self.driver.stopping():
                try:
                    planned = self._plan(held, spans())
                    if planned.is_empty or (landed and planned.lag < least):
                        break
                    assert self._staging is not None
                    staged = self._staging.stage(planned)
                    self.pace = self.pace.after(planned.rows, staged.bytes_read, staged.seconds)
                    if pending is not None:
                        self._settle(pending)
                    pending = publisher.submit(self._publish, staged)
                    held, attempts, landed = planned.end, 0, landed + 1
                except Cancelled:
                    break
                except (UnknownSchemas, StageAgain, CountsDisagree, MemoryError, LoginRefused) as problem:
                    attempts += 1
                    if pending is not None:
                        waiting, pending = pending, None
                        self._settle(waiting)
                    self._again(problem, attempts)
                    held = self._held
                except BaseException:
                    if pending is not None:
                        self._settle(pending)  # batch n's own error comes first
                    raise
            if pending is not None:
                self._settle(pending)

    def _plan(self, held: Offsets, spans: Mapping[int, Span]) -> Plan:
        topic_id = self.driver.kafka.topic(self.pipeline.topic.name).topic_id
        planned = plan(self.pipeline.name, held, topic_id, spans, max_rows=self.pace.rows)
        if planned.is_empty:
            self._idle(lag=0)
        elif self._evolution.refresh():
            self._evolve()
        self.driver.reach("plan.done")
        return planned

    def _publish(self, staged: StagedBatch) -> tuple[StagedBatch, Published]:
        published = decide_and_finish(
            self.driver.iceberg,
            staged.main,
            [staged.dead_letters] if staged.dead_letters else [],
            staged.batch,
            clock=self.driver.clock,
            wait=self.driver.wait,
            reach=self.driver.reach,
        )
        self._commits += 1
        if trim.due(self._commits):
            self._trim()
        return staged, published

    def _settle(self, pending: Future[tuple[StagedBatch, Published]]) -> None:
        staged, published = pending.result()
        self._held = staged.batch.end
        counts, now = staged.batch.counts, self.driver.clock()
        self.total.add(counts.read, counts.written, counts.rejected, counts.skipped)
        through = staged.batch.valid_through
        self.report(
            Event.BATCH_COMMITTED,
            snapshot=published.snapshot_id,
            read=counts.read,
            written=counts.written,
            rejected=dict(counts.rejected),
            skipped=dict(counts.skipped),
            bytes=staged.bytes_read,
            duration_seconds=round(now - staged.began, 3),
            stage_seconds=round(staged.seconds, 3),
            freshness_seconds=None if through is None else round(now - through / 1000, 3),
            lag=staged.plan.lag - staged.plan.rows,
        )

    def _trim(self) -> None:
        """Keep the tables' metadata small; upkeep that fails is said, and fails nothing."""
        table = self.pipeline.table
        for identifier in (table.identifier, table.dead_letters):
            trimmed = trim.trim(
                self.driver.iceberg,
                identifier,
                keep=table.keep_snapshots,
                keep_days=table.keep_days,
                now_ms=round(self.driver.clock() * 1000),
            )
            if trimmed.snapshots or trimmed.gave_up:
                self.report(
                    Event.SNAPSHOTS_EXPIRED, table=identifier, snapshots=trimmed.snapshots, gave_up=trimmed.gave_up
                )

    def _idle(self, **facts: Any) -> None:
        """Say that there is nothing to read: at once, then once a minute, as metrics are kept by the minute."""
        now = self.driver.clock()
        if self._idle_told is None or now - self._idle_told >= IDLE_TOLD_SECONDS:
            self._idle_told = now
            self.report(Event.IDLE, freshness_seconds=0.0, **facts)

    # ── What a batch needs ──────────────────────────────────────────────────────────────────────
    def _ready(self) -> bool:
        """Make the table and its ledger ready; False while the topic has no schema."""
        driver, pipeline = self.driver, self.pipeline
        self.report(Event.PIPELINE_STARTED, version=driver.version)
        self._evolution.refresh()
        if not self._evolution.is_known:
            return False
        prepare.make_tables(driver.iceberg, pipeline, *self._evolution.types)
        self._finish_open()
        held = prepare.read_ledger(driver.iceberg, pipeline)
        if held is None:
            self._begin()
            held = prepare.read_ledger(driver.iceberg, pipeline)
        assert held is not None
        # Another driver may have decided since: nobody may commit on top of a decision that is open, for a side table that
        # has reached a later offset counts as finished. What is decided from here on fences us.
        self._finish_open()
        self._held = held.end
        self._evolve()
        return True

    def _finish_open(self) -> None:
        driver, pipeline = self.driver, self.pipeline
        finished = finish_open(
            driver.iceberg,
            pipeline.table.identifier,
            pipeline.table.dead_letters,
            pipeline.name,
            run=driver.run,
            version=driver.version,
            wait=driver.wait,
            reach=driver.reach,
        )
        if finished:
            self.report(Event.DEAD_LETTERS_RECOVERED, dead_letters=finished)

    def _begin(self) -> None:
        driver, topic = self.driver, self.pipeline.topic
        start = prepare.resolve_start(
            topic.start,
            self._spans(),
            lambda ms: driver.kafka.offsets_at(topic.name, ms, topic.isolation),
            topic=topic.name,
        )
        offsets = Offsets(topic.name, driver.kafka.topic(topic.name).topic_id, start)
        driver.reach("begin.resolved")
        with contextlib.suppress(Fenced):  # another driver began; its start counts
            prepare.begin(
                driver.iceberg,
                self.pipeline,
                offsets,
                run=driver.run,
                version=driver.version,
                clock=driver.clock,
                wait=driver.wait,
                reach=driver.reach,
            )

    def _evolve(self) -> None:
        self._staging = self._evolution.staging()

    def _again(self, problem: Exception, attempts: int) -> None:
        self.report(Event.BATCH_RETRIED, message=str(problem), attempt=attempts)
        if isinstance(problem, UnknownSchemas):
            self._evolution.resolve(problem)
            self._evolve()
        elif isinstance(problem, MemoryError) and self.pace.rows > 1:
            self.pace = self.pace.halved()
        elif isinstance(problem, LoginRefused) and attempts == 1:
            self.driver.kafka.read_secrets_again()
        elif attempts >= (2 if isinstance(problem, CountsDisagree) else ATTEMPTS):
            if isinstance(problem, MemoryError):
                raise SparkFailed(
                    str(problem), where=f"pipeline {self.pipeline.name}", do="Give tasks more memory"
                ) from None
            raise problem

    def _spans(self) -> Mapping[int, Span]:
        return self.driver.kafka.offsets(self.pipeline.topic.name, self.pipeline.topic.isolation)
