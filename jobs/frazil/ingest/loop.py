"""The sequence of the batches of one pipeline; `one_batch` has the steps of each.

While batch n is published, batch n+1 is staged; n+1 is handed to publish only after n is committed. If n fails, n+1 is dropped:
`StageAgain` stages n again, some times at most, and any other error ends the run. The driver reads what Spark cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from frazil.clients.kafka import Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline, Spark
from frazil.decode.writers.seen_frames import MOST, UnknownSchemas
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.errors import CatalogUnavailable, CountsDisagree, DecisionRequired, Fenced, ServiceUnavailable, SparkFailed
from frazil.ingest.batch.read import beyond_spark
from frazil.ingest.batch.rejected_share import check_share
from frazil.ingest.batch.staging import Staging
from frazil.ingest.held_batches import HeldBatches
from frazil.ingest.one_batch import BatchTooLarge, StagedBatch, spark_jobs, stage_batch
from frazil.ingest.plan.overtaken import check_not_behind
from frazil.ingest.plan.plan import Pace, Restage, ended, up_to
from frazil.ingest.plan.planner import Planner
from frazil.ingest.progress import Progress
from frazil.ingest.reporting.events import Event, Reporter, Total
from frazil.ingest.schema.evolution import Evolution
from frazil.ingest.setup import existing_table
from frazil.ingest.setup.table_setup import after_replays, resume
from frazil.ingest.spark_errors import Cancelled, LoginRefused, TimestampOverflow
from frazil.ingest.upkeep import Upkeep
from frazil.job.context import JobContext
from frazil.job.offset_looks import Seen
from frazil.lake.commit.dead_letters.decide import decide_and_finish
from frazil.lake.commit.fence import ReplayedMeanwhile, StageAgain
from frazil.lake.commit.request import Committed
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.prepared_plan import is_small
from frazil.lake.spark_session import infer_no_constraints

ATTEMPTS = 3
"""So often one batch is staged before the run gives up."""
RETRIED = (UnknownSchemas, StageAgain, Fenced, CountsDisagree, BatchTooLarge, LoginRefused)
"""The failures after which a batch is retried."""
REPLAYS = 20
"""So many replays of dead letters may come before one batch."""
FORGET_COMMITS = 100
"""After so many commits, many seen versions are forgotten (one that still occurs is seen once more), and batches may grow again."""


class Ingestion:
    """One pipeline, landed by one driver."""

    def __init__(self, pipeline: Pipeline, job: JobContext, writers: WriterSchemas, report: Reporter) -> None:
        self.pipeline, self.job, self.report = pipeline, job, report
        assert isinstance(pipeline.engine, Spark)
        self.pace = Pace(pipeline.engine.limits, pipeline.engine.limits.first_rows)
        self._evolution = Evolution(pipeline, job, writers, report)
        self.progress = Progress(pipeline, report, job.clock)
        self._committed: Offsets | None = None
        self._settled: int | None = None
        self._staging: Staging | None = None
        self._commits = 0
        self._publishing: tuple[Future[tuple[StagedBatch, Committed, float]], Future[None]] | None = None
        self._upkeep = Upkeep(pipeline, job, report)
        self._attempts = 0
        self._fresh_until = 0.0
        self._driver_reads = False
        self._planner = Planner(pipeline, job, report)
        self._held = HeldBatches(pipeline, job.clock)
        self._idle_since: tuple[Seen, float] | None = None
        self._found_nothing = False
        self._has_waited = False

    @property
    def total(self) -> Total:
        """The totals of what was landed so far."""
        return self.progress.total

    # ── The sequence of batches ─────────────────────────────────────────────────────────────────
    def drain(self, until: Mapping[int, int] | int | None = None) -> Total:
        """Land everything up to the stable offsets seen now; return the totals. Being fenced is a normal end.

        With `until`, land the records before these offsets, of no other partition, or before the first one of this time or a later
        one, milliseconds since 1970.
        """
        self._planner.since = self.job.clock()
        spans = dict(self._spans())
        if isinstance(until, int):
            until = self.job.kafka.offsets_at(self.pipeline.topic.name, until, self.pipeline.isolation)
        if until is not None:
            spans = dict(ended(spans, {partition: until.get(partition, 0) for partition in spans}))
        try:
            if not self._ready():
                self.progress.idle(self._waiting)
                return self.total
            self._land(lambda: up_to(spans, self._spans(), self._committed), least=1, holds=False)
            self.total.stopped = self.job.stopping()
            self._upkeep.at_end()
        except Fenced as fenced:
            if not fenced.is_by_another_than(self.job.run):
                raise
            self.total.fenced = True
            self.report(Event.FENCED, message=fenced.what)
        return self.total

    def poll(self) -> bool:
        """Land what the topic has now, for a run that continues; return whether it had anything. Raises `Fenced`.

        While more than half a batch is waiting it continues; the little that came in meanwhile is the next poll's.
        """
        if self._committed is None and not self._ready():
            self.progress.idle(self._waiting)
            return False
        seen = self._look() if self._found_nothing else None
        if self._is_idle_at(seen) and not self._held.is_due:
            self.progress.idle()
            return False
        before, self._idle_since, self._found_nothing = self.total.batches, None, False
        self._land(self._spans, least=max(self.pace.rows // 2, 1))
        if self._found_nothing and seen is not None:
            self._idle_since = seen, self.job.clock()
        return self.total.batches > before

    def _look(self) -> Seen | None:
        """Return what the topic has, by a look at all topics of the run; None if the run does not look, or does not know."""
        if self.job.looks is None or self.job.stopping():
            return None
        return self.job.looks.of(self.pipeline.topic.name, self.pipeline.isolation)

    def _is_idle_at(self, seen: Seen | None) -> bool:
        """Return whether the last plan found nothing at these offsets, and is young enough."""
        if seen is None or self._idle_since is None or self._idle_since[0] != seen:
            return False
        return self.job.clock() - self._idle_since[1] < self._planner.look_seconds

    def forget(self) -> None:
        """Begin from the table's state at the next poll: after an error nothing remembered counts."""
        self._committed, self._idle_since, self._found_nothing = None, None, False
        self._held.forget()
        self._planner.forget()

    def _land(self, spans: Callable[[], Mapping[int, Span]], *, least: int, holds: bool = True) -> None:
        """Land batch after batch until nothing is waiting; after the first, until less than `least` records are.

        With `holds`, batches without records for this table may wait for a later one. Else they wait for the last one at most.
        """
        landed, again = 0, False
        assert self._committed is not None
        committed, self._attempts, self._driver_reads = self._held.end or self._committed, 0, False
        with ThreadPoolExecutor(1, thread_name_prefix=f"publish-{self.pipeline.name}") as publisher:
            while True:
                try:
                    try:
                        staged = self._stage_next(committed, spans, least if landed else 1)
                        if isinstance(staged, StagedBatch):
                            made, accepted = staged.request, self._planner.accepted
                            counted = made.counts, made.start, made.end
                            check_share(self.pipeline, *counted, accepted, is_fenced=staged.is_fenced)
                    except DecisionRequired:
                        check_not_behind(self.pipeline, self._held.planned_on or committed, self.job)
                        raise
                    finally:
                        self._settle()  # the error of batch n comes before one of batch n+1, which is dropped
                    if isinstance(staged, Restage):
                        self._planner.handling = staged.handling
                        message = f"pipeline {self.pipeline.name}: {staged.why}"
                        self.report(Event.BATCH_RETRIED, message=message, attempt=self._attempts)
                        committed = self._held.end or self._committed
                        continue
                    planned_on = self._held.planned_on
                    if staged is not None:
                        batch = self._held.with_next(staged)
                    else:
                        is_last = not holds or self.job.stopping()
                        batch = self._held.take() if is_last or self._held.is_due else None
                    if batch is not None and planned_on is not None and not (again or self._is_at(planned_on)):
                        self._held.forget()  # another driver has landed them, and may have ended: none was this table's
                        self._resume()
                        committed, again = self._committed, True
                        continue
                    if batch is not None:
                        self._begin(publisher, batch)
                    elif staged is not None:
                        self.progress.held(staged)
                    if (newest := batch or staged) is None:
                        return
                    committed, landed = newest.request.end, landed + 1
                except Cancelled:
                    return
                except TimestampOverflow:
                    if self._driver_reads:
                        raise
                    committed, self._driver_reads = self._held.end or self._committed, True
                except RETRIED as problem:
                    self._held.forget()
                    if isinstance(problem, Fenced) and problem.is_by_another_than(self.job.run):
                        raise
                    self._attempts += 1
                    self._again(problem, self._attempts)
                    committed = self._committed
                except ServiceUnavailable as error:
                    planned_on, held = self._held.planned_on, self._held.take()
                    is_there = planned_on is not None and not isinstance(error, CatalogUnavailable)
                    if held is not None and is_there and self._is_at(planned_on):
                        self._begin(publisher, held)  # else a table of rare records comes no further by many outages
                        self._settle()
                    raise

    def _begin(self, publisher: ThreadPoolExecutor, batch: StagedBatch) -> None:
        """Have a batch published while the next one is staged."""
        self._staging = self._staging or self._evolution.staging()
        publishing = publisher.submit(self._publish, batch, self._staging)
        self._publishing = publishing, publisher.submit(self._upkeep.after, publishing)

    def _is_at(self, offsets: Offsets | None) -> bool:
        """Return whether the table has just these offsets; it has none if it was dropped."""
        name = self.pipeline.table.identifier
        newest = entry(self.job.iceberg.load(name), self.pipeline.name) if self.job.iceberg.exists(name) else None
        return newest is not None and newest.end is not None and newest.end.same_as(offsets)

    def _stage_next(
        self, after: Offsets, spans: Callable[[], Mapping[int, Span]], least: int
    ) -> StagedBatch | Restage | None:
        """Stage the batch after `after`; None if fewer than `least` records are waiting, or the run is to end."""
        with self.job.turns.turn(self._fresh_until) as end_turn:
            return None if self.job.stopping() else self._stage_in_turn(after, spans, least, end_turn)

    def _stage_in_turn(
        self, after: Offsets, spans: Callable[[], Mapping[int, Span]], least: int, end_turn: Callable[[], None]
    ) -> StagedBatch | Restage | None:
        planned = self._planner.next(after, spans, self.pace.rows)
        if not is_small(planned.rows):
            end_turn()
        self.job.failpoint("plan.done")
        if planned.is_empty or planned.lag < least:
            if planned.is_empty:
                self._settle()
                offsets = self._planner.idle(planned)
                self._committed = self._committed if self._held.end is not None else offsets
                self._found_nothing = True
                self.progress.idle()
            return None
        if self._staging is None or self._staging.needs_rows(planned):
            self._settle()  # the schema changes only between two commits, or the first of them would fail
        if self._staging is None:
            self._staging = self._evolution.staging()
        self._planner.begin(planned)
        by_driver: Sequence[Record] = ()
        if self._driver_reads:
            with spark_jobs(self.pipeline, self.job, self._staging, planned.rows):
                by_driver = beyond_spark(self.pipeline, self.job.kafka, planned.ranges)
        staged = stage_batch(self.pipeline, self.job, self._staging, self._evolution, planned, by_driver)
        if isinstance(staged, Restage):
            return staged
        self._driver_reads = False  # until Spark cannot read a batch again
        self.pace = self.pace.after(planned.rows, staged.bytes_read, staged.seconds)
        return staged

    def _publish(self, staged: StagedBatch, staging: Staging) -> tuple[StagedBatch, Committed, float]:
        """Return the batch, its commit, and the seconds that it took."""
        began = self.job.clock()
        try:
            with spark_jobs(self.pipeline, self.job, staging, staged.plan.rows):
                published = self._decide(staged)
        except CatalogUnavailable as error:
            if staged.changes is None or not self.job.stopping():
                raise
            raise Cancelled(error.what) from None  # the search for keys is a Spark job
        self._commits += 1
        return staged, published, self.job.clock() - began

    def _decide(self, staged: StagedBatch) -> Committed:
        """Commit a batch, also if replays of dead letters came since it was planned: they change neither offsets nor records."""
        for _ in range(REPLAYS):
            try:
                return decide_and_finish(
                    self.job,
                    staged.main,
                    [staged.dead_letters] if staged.dead_letters else [],
                    replace(staged.request, settled=self._settled),
                    staged.changes,
                    self.progress.foreign,
                )
            except ReplayedMeanwhile:
                self._settled = after_replays(self.pipeline, self.job, self._settled)
        raise StageAgain(
            "dead letters were replayed each time that a batch was to be committed",
            where=f"pipeline {self.pipeline.name}",
        )

    def _settle(self) -> None:
        """Wait until the batch that is being published, if one is, is committed, and upkeep is done. Raises its error once."""
        publishing, self._publishing = self._publishing, None
        if publishing is None:
            return
        staged, published, seconds = publishing[0].result()
        self._attempts = 0
        self._committed = staged.request.end
        if self._commits % FORGET_COMMITS == 0:
            self.pace = self.pace.lifted()
            if self._evolution.forget():
                self._staging = None
        self._fresh_until = self.job.clock()
        self.progress.committed(staged, published, seconds)
        publishing[1].result()

    def _waiting(self) -> Mapping[str, Any]:
        """Return what waits for a schema."""
        facts = self._evolution.waiting(self._spans())
        self.total.waiting = ". ".join(facts[key] for key in ("message", "hint") if key in facts)
        return facts

    # ── What a batch needs ──────────────────────────────────────────────────────────────────────
    def _ready(self) -> bool:
        """Make the table and its ledger ready; False while the topic has no schema."""
        if not self._has_waited:
            self.report(Event.PIPELINE_STARTED, version=self.job.version)
        if self.pipeline.is_change_data:
            infer_no_constraints(self.job.spark)
        if not self._evolution.is_known:  # later versions are asked for when a record names them
            self._evolution.refresh()
        waited, self._has_waited = self._has_waited, not self._evolution.is_known
        if self._has_waited:
            return False
        if waited:
            self.report(Event.PIPELINE_STARTED, version=self.job.version)
        self._resume()
        existing_table.follow(self.pipeline, self.job, self.report)
        return True

    def _resume(self) -> None:
        """Read from the table where to continue, and its columns."""
        self._evolution.read_table_again()
        last = resume(self.pipeline, self.job, self.report, *self._evolution.types, *self._evolution.made_of())
        self._committed, self._settled = last.end, last.snapshot_id
        self._planner.resume(last)
        self._evolution.recall(last.schema_ids)
        self._staging = self._evolution.staging()

    def _again(self, problem: Exception, attempts: int) -> None:
        """Prepare the next try of a batch after `attempts` that failed. Raises if it would not help."""
        if isinstance(problem, UnknownSchemas):  # expected with each new schema
            self.report(Event.SCHEMA_LOOKED_UP, message=f"1 retry: {problem.looked_up}")
            # The frame cache is bounded, so a large batch can evict its own entries; a small one cannot.
            most_rows = MOST if attempts >= ATTEMPTS else problem.most_rows
            if most_rows is not None:
                self.pace = self.pace.at_most(most_rows)
            self._staging = self._evolution.staging()
            return
        may_halve = isinstance(problem, BatchTooLarge) and problem.rows > 1
        if not may_halve and attempts >= (2 if isinstance(problem, CountsDisagree) else ATTEMPTS):
            if isinstance(problem, BatchTooLarge):
                where = f"pipeline {self.pipeline.name}"
                raise SparkFailed(str(problem), where=where, do="Give tasks more memory") from None
            raise problem
        self.report(Event.BATCH_RETRIED, message=str(problem), attempt=attempts)
        if self._staging is not None:
            self._staging.plans.forget()
        match problem:
            case BatchTooLarge() if problem.rows > 1:
                self.pace = self.pace.halved(problem.rows)
            case LoginRefused() if attempts == 1:
                self.job.kafka.read_secrets_again()
            case StageAgain() | Fenced():
                self._resume()

    def _spans(self) -> Mapping[int, Span]:
        return self.job.kafka.offsets(self.pipeline.topic.name, self.pipeline.isolation)
