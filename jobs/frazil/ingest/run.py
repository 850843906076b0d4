"""Run: the order of one batch, top to bottom, and of the batches of one pipeline.

While batch n is published, batch n+1 is staged; n+1 is handed to publish only after n is done, and a failed n drops n+1 and
ends the run with n's own error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from frazil.clients.kafka import Kafka
from frazil.dead_letters.rows import dead_letters
from frazil.declaration import Pipeline
from frazil.declaration.formats import ErrorMode, MetadataColumns, SchemaEvolution
from frazil.errors import CountsDisagree, Fenced, RejectedRecords
from frazil.ingest import account, prepare
from frazil.ingest.decode import REASON, SCHEMA_ID, Decoding, columns_of, decode, rejected, rows
from frazil.ingest.plan import Pace, Plan, Span, plan
from frazil.ingest.read import read
from frazil.ingest.report import Event, Reporter, Total
from frazil.ingest.route import metadata, route
from frazil.ingest.writers import Writers
from frazil.lake import tables
from frazil.lake.decide import decide_and_finish, finish_open
from frazil.lake.evolve import evolve
from frazil.lake.jvm import Iceberg
from frazil.lake.ledger import Counts, Offsets
from frazil.lake.publish import Batch, Published, StageAgain
from frazil.lake.stage import Staged, stage
from frazil.schemas.landing import Landing, landing
from frazil.schemas.merge import merge
from frazil.schemas.types import Struct

ATTEMPTS = 3  # how often one batch is staged anew before the run gives up


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What all pipelines of one driver share. `reach` marks steps for tests; `stopping` says that the run is to end."""

    spark: SparkSession
    iceberg: Iceberg
    kafka: Kafka
    run: str
    version: str
    clock: Callable[[], float]
    wait: Callable[[float], None]
    ticket: Callable[[], str]
    reach: Callable[[str], None] = lambda step: None
    stopping: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """What staging one plan gave."""

    plan: Plan
    main: Staged
    dead_letters: Staged | None
    batch: Batch
    bytes_read: int
    began: float
    seconds: float


class UnknownSchemas(Exception):
    """A batch met schema ids that are not known yet."""

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = ids
        super().__init__(ids)


class Ingestion:
    """One pipeline, landed by one driver."""

    def __init__(self, pipeline: Pipeline, driver: Driver, writers: Writers, report: Reporter) -> None:
        self.pipeline, self.driver, self.writers, self.report = pipeline, driver, writers, report
        limits = pipeline.limits
        self.pace = Pace(limits.target_seconds, limits.max_rows, limits.max_bytes, limits.first_rows)
        self.total = Total()
        self._held: Offsets | None = None
        self._decoding: Decoding | None = None
        self._columns: tuple[str, ...] = ()

    # ── The order of one batch ──────────────────────────────────────────────────────────────────
    def drain(self) -> Total:
        """Land everything up to the stable offsets seen now; returns what was done. Being fenced is a normal end."""
        spans = self._spans()
        try:
            if not self._ready():
                self.report(Event.IDLE, why="no schema is registered yet", lag=0)
                return self.total
            self._land(lambda: spans)
        except Fenced as fenced:
            self.total.fenced = True
            self.report(Event.FENCED, why=fenced.what)
        return self.total

    def poll(self) -> bool:
        """Land what is there now, for a run that goes on; returns whether there was anything. Raises `Fenced`."""
        if self._held is None and not self._ready():
            return False
        before = self.total.batches
        self._land(self._spans)
        return self.total.batches > before

    def _land(self, spans: Callable[[], Mapping[int, Span]]) -> None:
        attempts, pending = 0, None
        assert self._held is not None
        held = self._held
        with ThreadPoolExecutor(1, thread_name_prefix=f"publish-{self.pipeline.name}") as publisher:
            while not self.driver.stopping():
                try:
                    planned = self._plan(held, spans())
                    if planned.is_empty:
                        break
                    staged = self._stage(planned)
                    if pending is not None:
                        self._settle(pending)
                    pending = publisher.submit(self._publish, staged)
                    held, attempts = planned.end, 0
                except (UnknownSchemas, StageAgain, CountsDisagree, MemoryError) as problem:
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
            self.report(Event.IDLE, lag=planned.lag)
        elif self.writers.refresh():
            self._evolve()
        self.driver.reach("plan.done")
        return planned

    def _stage(self, planned: Plan) -> StagedBatch:
        began = self.driver.clock()
        records, decoding = self._read(planned), self._decoding
        assert decoding is not None
        observed = Observation()
        decoded = decode(account.observe_records(records, observed), decoding)
        at = datetime.fromtimestamp(began, UTC)
        self.driver.reach("stage.started")
        main = stage(
            self.driver.iceberg,
            self.pipeline.table.identifier,
            route(rows(decoded), columns_of(self._columns), self._metadata(at)),
            ticket=self.driver.ticket(),
            at=began,
            sort=self.pipeline.table.sort_by,
        )
        self.driver.reach("stage.written")
        seen = observed.get
        counts = Counts(read=int(seen["read"] or 0), written=main.rows)
        side = None
        if counts.read != counts.written:
            counts, side = self._stage_rejected(planned, decode(records, decoding), decoding, counts, at)
        if counts.read != planned.rows:
            counts = self._with_gaps(planned, records, counts)
        if not counts.adds_up:
            raise CountsDisagree(
                f"{counts.read} records were read, {counts.written} rows written, {dict(counts.rejected)} rejected "
                f"and {dict(counts.skipped)} skipped: they do not add up, so nothing was published",
                where=f"pipeline {self.pipeline.name}, offsets {planned.start} to {planned.end}",
                do="Run again; if it persists, report it with this message",
            )
        newest = seen["newest"]
        batch = Batch(
            pipeline=self.pipeline.name,
            run=self.driver.run,
            version=self.driver.version,
            start=planned.start,
            end=planned.end,
            held=planned.held,
            topic_id=self.driver.kafka.topic(self.pipeline.topic.name).topic_id,
            counts=counts,
            schema_ids=tuple(sorted(decoding.writers)),
            valid_through=int(newest.timestamp() * 1000) if newest is not None else None,
        )
        seconds = self.driver.clock() - began
        self.pace = self.pace.after(planned.rows, int(seen["bytes"] or 0), seconds)
        self.driver.reach("stage.done")
        return StagedBatch(planned, main, side, batch, int(seen["bytes"] or 0), began, seconds)

    def _stage_rejected(
        self, planned: Plan, decoded: DataFrame, decoding: Decoding, counts: Counts, at: datetime
    ) -> tuple[Counts, Staged]:
        topic = self.pipeline.topic
        observed, skipped = Observation(), account.skips(F.col(REASON), topic.on_error, topic.tombstones)
        lost = account.observe_rejected(rejected(decoded, decoding), observed, skipped, planned.ranges)
        letters = dead_letters(
            lost.where(~skipped),
            reason=REASON,
            schema_id=SCHEMA_ID,
            pipeline=self.pipeline.name,
            run=self.driver.run,
            at=at,
        )
        side = stage(
            self.driver.iceberg,
            self.pipeline.table.dead_letters,
            letters,
            ticket=self.driver.ticket(),
            at=self.driver.clock(),
        )
        self.driver.reach("stage.rejected")
        seen = observed.get
        unknown = tuple(int(i) for i in seen["unknown"] or () if int(i) not in self.writers.refused)
        if unknown:
            raise UnknownSchemas(unknown)
        by_reason = account.by_reason(seen, "rejected")
        if by_reason and topic.on_error is ErrorMode.SUSPEND:
            first = seen["first"]
            raise RejectedRecords(
                f"{sum(by_reason.values())} records cannot be landed ({by_reason}), first partition {first['partition']} "
                f"offset {first['offset']}: {first[REASON]}; error mode suspend lands nothing of such a batch",
                where=f"pipeline {self.pipeline.name}, topic {topic.name}",
                do="Mend the cause, or declare on_error=log to keep such records in the dead-letter table",
            )
        return Counts(
            read=counts.read,
            written=counts.written,
            rejected=by_reason,
            skipped=account.by_reason(seen, "skipped"),
            skipped_at=account.skipped_at(seen, planned.ranges),
        ), side

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
        return staged, published

    def _settle(self, pending: Future[tuple[StagedBatch, Published]]) -> None:
        staged, published = pending.result()
        self._held = staged.batch.end
        counts, now = staged.batch.counts, self.driver.clock()
        self.total.add(counts.read, counts.written, counts.rejected, counts.skipped)
        through = staged.batch.valid_through
        self.report(
            Event.LANDED,
            snapshot=published.snapshot_id,
            read=counts.read,
            written=counts.written,
            rejected=dict(counts.rejected),
            skipped=dict(counts.skipped),
            bytes=staged.bytes_read,
            seconds=round(now - staged.began, 3),
            stage_seconds=round(staged.seconds, 3),
            freshness_seconds=None if through is None else round(now - through / 1000, 3),
            lag=staged.plan.lag - staged.plan.rows,
        )

    # ── What a batch needs ──────────────────────────────────────────────────────────────────────
    def _ready(self) -> bool:
        """Make the table and its ledger ready; False while the topic has no schema."""
        driver, pipeline = self.driver, self.pipeline
        self.report(Event.STARTED, version=driver.version)
        self.writers.refresh()
        if not self.writers.versions:
            return False
        prepare.make_tables(driver.iceberg, pipeline, merge(self.writers.versions).type)
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
            self.report(Event.FINISHED, dead_letters=finished)
        held = prepare.read_ledger(driver.iceberg, pipeline)
        if held is None:
            self._begin()
            held = prepare.read_ledger(driver.iceberg, pipeline)
        assert held is not None
        self._held = held.end
        self._evolve()
        return True

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
        """Bring the table's schema to what the known versions need, and the decoding to the table's schema."""
        table, evolution = self.pipeline.table, self.pipeline.table.schema_evolution
        may_add, may_widen = evolution is not SchemaEvolution.FREEZE, evolution is SchemaEvolution.WIDEN

        def wanted(current: Struct) -> Landing:
            return landing(current, self.writers.versions, may_add=may_add, may_widen=may_widen)

        changes = evolve(
            self.driver.iceberg,
            table.identifier,
            lambda current: wanted(current).changes,
            wait=self.driver.wait,
            reach=self.driver.reach,
        )
        if changes:
            self.report(Event.EVOLVED, changes=[str(c) for c in changes])
        landed = wanted(tables.columns(self.driver.iceberg, table.identifier))
        for schema_id, problem in landed.incompatible.items():
            self.report(Event.INCOMPATIBLE, schema_id=schema_id, why=str(problem))
        self._decoding = self.writers.decoding(landed.target, landed.incompatible, self.pipeline.topic.tombstones)
        self._columns = tuple(f.name for f in landed.target.fields)

    def _again(self, problem: Exception, attempts: int) -> None:
        self.report(Event.AGAIN, why=str(problem), attempt=attempts)
        if isinstance(problem, UnknownSchemas):
            for schema_id in problem.ids:
                self.writers.resolve(schema_id)
            self._evolve()
        elif isinstance(problem, MemoryError):
            self.pace = self.pace.halved()
        elif attempts >= (2 if isinstance(problem, CountsDisagree) else ATTEMPTS):
            raise problem

    def _spans(self) -> Mapping[int, Span]:
        return self.driver.kafka.offsets(self.pipeline.topic.name, self.pipeline.topic.isolation)

    def _read(self, planned: Plan) -> DataFrame:
        topic = self.pipeline.topic
        return read(
            self.driver.spark,
            topic.name,
            planned.ranges,
            options={
                **self.driver.kafka.java_options(),
                **{f"kafka.{key}": value for key, value in topic.kafka_options.items()},
            },
            isolation=topic.isolation.value,
            group=f"frazil-{self.pipeline.name}",
            headers=topic.headers,
        )

    def _metadata(self, at: datetime) -> list[Column]:
        is_struct = self.pipeline.table.metadata_columns is MetadataColumns.STRUCT
        return metadata(schema_id=SCHEMA_ID, struct=is_struct, ingested_at=at)

    def _with_gaps(self, planned: Plan, records: DataFrame, counts: Counts) -> Counts:
        found = account.gaps(records, planned.ranges)
        topic = self.driver.kafka.topic(self.pipeline.topic.name)
        if not topic.compacted and not self.pipeline.topic.transactional:
            raise CountsDisagree(
                f"{planned.rows} offsets hold {counts.read} records, missing {found} by partition, and the topic is "
                "neither compacted nor declared transactional",
                where=f"pipeline {self.pipeline.name}, offsets {planned.start} to {planned.end}",
                do="If producers use transactions, declare Topic(…, transactional=True)",
            )
        return Counts(counts.read, counts.written, counts.rejected, counts.skipped, counts.skipped_at, found)
