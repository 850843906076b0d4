"""The order of batches: one is published while the next is staged, and what follows if either fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event as Signal
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.clients.kafka import Span
from frazil.declaration import Limits, Pipeline, Spark, Table, Topic
from frazil.decode.writers.seen_frames import SeenFrames, UnknownSchemas
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.errors import Fenced, KafkaUnavailable, TooManyRejected
from frazil.ingest import loop as ingestion
from frazil.ingest import one_batch, upkeep
from frazil.ingest.loop import Ingestion
from frazil.ingest.one_batch import StagedBatch
from frazil.ingest.plan.plan import Restage
from frazil.ingest.reporting.events import Event, Reporter
from frazil.ingest.setup import existing_table
from frazil.ingest.spark_errors import TimestampOverflow
from frazil.job.shared_reads import SharedReads
from frazil.job.turns import Turns
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.other_commits import OtherCommit
from frazil.lake.commit.request import CommitRequest, Committed
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts
from frazil.lake.prepared_plan import PreparedPlans
from frazil.schemas.types import Struct
from frazil.schemas.wire_format import prefixed

PIPELINE = Pipeline(
    topic=Topic("orders", value="text"),
    table=Table("shop.orders"),
    engine=Spark(limits=Limits(first_rows=200, max_rows=200)),
)


class Kafka:
    """A topic of one partition."""

    def __init__(self, records: int) -> None:
        self.span = Span(0, records)
        self.grows = 0
        """How many records arrive between two looks."""

    def topic(self, name: str) -> Any:
        return SimpleNamespace(topic_id="T1")

    def offsets(self, topic: str, isolation: Any) -> dict[int, Any]:
        self.span = Span(0, self.span.stable + self.grows)
        return {0: self.span}


class Evolution:
    """Schemas that a batch met, after so many stagings, and that were not decoded before."""

    is_known, types = True, (Struct(()), None)

    def __init__(self, steps: list[str], stage: Callable[[Any], Any], news_at: int = 0) -> None:
        self._steps, self._stage, self._news_at, self._stagings = steps, stage, news_at, 0

    needs_rows = False

    def made_of(self) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        return (), ()

    def read_table_again(self) -> None:
        pass

    def recall(self, schema_ids: Any) -> None:
        assert schema_ids == ()

    def forget(self) -> bool:
        return False

    def staging(self) -> Any:
        self._steps.append("evolve")
        return SimpleNamespace(table=Struct(()), needs_rows=lambda _: self.needs_rows, plans=PreparedPlans())

    def stage(self, planned: Any) -> Any:
        self._stagings += 1
        if self._stagings == self._news_at:
            raise UnknownSchemas(SeenFrames(waiting=(prefixed(7, b""),)), SeenFrames())
        return self._stage(planned)


class Loop:
    """An ingestion whose stages are these; `steps` is what happened, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, records: int, news_at: int = 0, rejected: int = 0) -> None:
        self.steps: list[str] = []
        self.held, self.events, self.committed = 0, list[Any](), list[tuple[int, int]]()
        self.fails: dict[int, list[BaseException]] = {}
        """By the batch's first offset: what its commits end in, one after another."""
        self.accepted, self._rejected, self._until = "", rejected, Offsets("orders", "T1", {0: records})
        self.is_never_readable = False
        self.summary: dict[str, str] = {}
        """Of the newest commit."""
        self.foreign: OtherCommit | None = None
        """What each commit meets."""
        job: Any = SimpleNamespace(
            turns=Turns(),
            kafka=Kafka(records), reads=SharedReads(), iceberg=None, clock=lambda: 0.0, now_ms=lambda: 0, wait=None, failpoint=lambda step: None, run="me", version="1",
            stopping=lambda: False, redact=lambda text: text,
        )  # fmt: skip
        self.driver_holds = 1_000
        """How many records of a batch."""
        self.overflows: set[int] = set()
        """Of which first offsets Spark cannot read the batch, unless the driver has read something."""
        monkeypatch.setattr(ingestion, "stage_batch", lambda *given: loop._evolution.stage(self._readable(*given[-2:])))
        monkeypatch.setattr(ingestion, "beyond_spark", self._read_by_driver)
        monkeypatch.setattr(ingestion, "decide_and_finish", self._commit)
        monkeypatch.setattr(ingestion, "resume", self._resume)
        monkeypatch.setattr(ingestion, "check_not_behind", lambda *_: None)
        monkeypatch.setattr(existing_table, "follow", lambda *_: None)
        monkeypatch.setattr(one_batch.tables, "columns", lambda *_: Struct(()))
        monkeypatch.setattr(upkeep.metadata_expiry, "trim", lambda *_, **__: SimpleNamespace(snapshots=0, gave_up=None))
        report = Reporter(self.events.append, "orders", "orders", "me", lambda: 0.0)
        self.ingestion = Ingestion(PIPELINE, job, writer_schemas(PIPELINE.topic, None), report)
        loop: Any = self.ingestion
        loop._evolution = Evolution(self.steps, self._stage, news_at)
        loop._planner._log = SimpleNamespace(check=lambda *_: None, forget=lambda: None)

    def _resume(self, *_: Any) -> Entry:
        self.steps.append("resume")
        summary = {ledger.window_of(self.accepted): str(self._until)} if self.accepted else self.summary
        return Entry(1, None, None, Offsets("orders", "T1", {0: self.held}), None, None, "me", summary)

    def _read_by_driver(self, _: Any, __: Any, ranges: Any) -> list[int]:
        self.steps.append(f"driver reads {ranges[0].start}")
        if len(ranges[0]) > self.driver_holds:
            raise MemoryError("too many for the driver")
        return sorted(self.overflows)

    def _readable(self, planned: Any, by_driver: Any) -> Any:
        """The plan, if Spark and the driver together can read it."""
        start = planned.start.at[0]
        if (start in self.overflows and start not in by_driver) or self.is_never_readable:
            raise TimestampOverflow("long overflow")
        return planned

    def _stage(self, planned: Any) -> Any:
        start, end = planned.start.at[0], planned.end.at[0]
        self.steps.append(f"stage {start}")
        counts = Counts(
            read=end - start, written=end - start - self._rejected, rejected={"wrong_magic": self._rejected}
        )
        batch = CommitRequest(
            pipeline="orders",
            run="me",
            version="1",
            start=planned.start,
            end=planned.end,
            committed=planned.committed,
            topic_id="T1",
            counts=counts,
        )
        main: Any = SimpleNamespace(files=(), rows=0)
        return StagedBatch(planned, main, None, batch, changes=None, bytes_read=1, began=0.0, seconds=1.0)

    def _commit(self, job: Any, main: Any, side_tables: Any, batch: Any, changes: Any, met: Any) -> Any:
        start, end = batch.start.at[0], batch.end.at[0]
        if self.foreign:
            met(self.foreign)
        if self.fails.get(start):
            raise self.fails[start].pop(0)
        self.steps.append(f"commit {start}")
        self.committed.append((start, end))
        kept = end < self._until.at[0] and {**self.summary, ledger.window_of(self.accepted): str(self._until)}
        windows = {name: text for name, text in (kept or {}).items() if name in ledger.WINDOWS}
        self.held, self.accepted, self.summary = end, "", {**batch.summary("T1"), **windows}
        return Committed(1, found=False)

    def seen(self, event: Event) -> list[Any]:
        return [one for one in self.events if one["event"] == event]


def test_the_schema_changes_only_after_the_batch_before_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=600, news_at=2)
    loop.ingestion.drain()
    assert [event["message"] for event in loop.seen(Event.SCHEMA_LOOKED_UP)] == [
        "1 retry: new schema id 7 was looked up"
    ]
    first, second = (i for i, step in enumerate(loop.steps) if step == "evolve")
    assert loop.steps.index("commit 0") < second
    assert "commit 200" in loop.steps[second:]
    assert first < loop.steps.index("stage 0")


def test_a_batch_that_needs_another_handling_is_staged_again_and_so_are_later_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, handled = Loop(monkeypatch, records=500), list[tuple[int, bool]]()
    stage = loop._stage

    def stages(planned: Any) -> Any:
        start = planned.start.at[0]
        handled.append((start, planned.handling.fills))
        if start == 200 and not planned.handling.fills:
            return Restage("changes leave values out", replace(planned.handling, fills=True))
        return stage(planned)

    monkeypatch.setattr(loop.ingestion._evolution, "_stage", stages)
    assert loop.ingestion.drain().batches == 3
    assert handled == [(0, False), (200, False), (200, True), (400, True)]
    (event,) = loop.seen(Event.BATCH_RETRIED)
    assert (event["message"], event["attempt"]) == ("pipeline orders: changes leave values out", 0)


@pytest.mark.parametrize("needs_rows", [True, False])
def test_a_batch_that_depends_on_the_rows_is_staged_when_the_one_before_is_committed(
    monkeypatch: pytest.MonkeyPatch, needs_rows: bool
) -> None:
    loop, staged, waits = Loop(monkeypatch, records=500), Signal(), Signal()
    commit, stage, settle = loop._commit, loop._stage, loop.ingestion._settle

    def stages(planned: Any) -> Any:
        found = stage(planned)
        if planned.start.at[0] == 200:
            staged.set()
        return found

    def settles() -> None:
        if loop.ingestion._publishing is not None:
            waits.set()
        settle()

    def commits(job: Any, main: Any, side_tables: Any, batch: Any, changes: Any, met: Any) -> Any:
        if batch.start.at[0] == 0:  # as late as it can be: the next batch is staged meanwhile, or waits
            assert (waits if needs_rows else staged).wait(60)
        return commit(job, main, side_tables, batch, changes, met)

    loop.ingestion._evolution._stage = stages  # type: ignore[attr-defined]
    loop.ingestion._evolution.needs_rows = needs_rows  # type: ignore[attr-defined]
    monkeypatch.setattr(ingestion, "decide_and_finish", commits)
    monkeypatch.setattr(loop.ingestion, "_settle", settles)
    loop.ingestion.drain()
    first = [step for step in loop.steps if step in ("commit 0", "stage 200")]
    assert first == (["commit 0", "stage 200"] if needs_rows else ["stage 200", "commit 0"])


def test_a_batch_whose_frames_are_forgotten_for_one_another_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingestion, "MOST", 150)  # the frames that are remembered
    loop = Loop(monkeypatch, records=400)
    stage = loop._stage

    def forgetful(planned: Any) -> Any:
        if planned.rows > 150:
            raise UnknownSchemas(SeenFrames(unknown=(prefixed(7, b""),)), SeenFrames())
        return stage(planned)

    loop.ingestion._evolution._stage = forgetful  # type: ignore[attr-defined]
    loop.ingestion.drain()
    assert loop.committed[0] == (0, 150)
    assert loop.held == 400


@pytest.mark.parametrize("start", [0, 200, 400], ids=["first", "middle", "last"])
@pytest.mark.parametrize("error", [StageAgain("files are gone"), Fenced("an own late commit", winner="me")], ids=repr)
def test_a_batch_that_asks_for_it_is_staged_again(
    monkeypatch: pytest.MonkeyPatch, start: int, error: BaseException
) -> None:
    loop = Loop(monkeypatch, records=600)
    loop.fails[start] = [error]
    loop.ingestion.drain()
    assert loop.committed == [(0, 200), (200, 400), (400, 600)]
    assert loop.steps.count(f"stage {start}") == 2
    assert len(loop.seen(Event.BATCH_RETRIED)) == 1


def test_a_commit_of_another_engine_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=400)
    loop.foreign = OtherCommit(
        snapshot_id=7, operation="append", is_frazils=False, engine="spark 4.1.1", application="a"
    )
    loop.fails[0] = [StageAgain("rows were changed")]  # the batch meets the commit again
    loop.ingestion.drain()
    (reported,) = loop.seen(Event.FOREIGN_COMMIT)
    assert (reported["snapshot"], reported["operation"], reported["engine"], reported["application"]) == (
        7,
        "append",
        "spark 4.1.1",
        "a",
    )
    assert reported["message"].endswith("append by spark 4.1.1, application a (snapshot 7)")


def test_a_batch_that_spark_cannot_read_is_staged_again_with_what_the_driver_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = Loop(monkeypatch, records=600)
    loop.overflows = {200}
    loop.ingestion.drain()
    assert loop.committed == [(0, 200), (200, 400), (400, 600)]
    assert loop.steps.count("driver reads 200") == 1
    assert not [step for step in loop.steps if step in ("driver reads 0", "driver reads 400")]
    assert not loop.seen(Event.BATCH_RETRIED)


def test_the_driver_reads_again_with_the_other_reasons_to_stage_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=400, news_at=1)
    loop.overflows = {0}
    loop.ingestion.drain()
    assert loop.steps.count("driver reads 0") == 2
    assert loop.committed == [(0, 200), (200, 400)]


def test_a_batch_of_more_records_than_the_driver_reads_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=400)
    loop.overflows = {0}
    loop.driver_holds = 50
    loop.ingestion.drain()
    assert loop.steps.count("driver reads 0") == 3
    assert loop.committed[0] == (0, 50)
    assert loop.committed[-1][1] == 400


def test_an_overflow_that_the_driver_does_not_mend_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=400)
    loop.is_never_readable = True
    with pytest.raises(TimestampOverflow):
        loop.ingestion.drain()
    assert loop.steps.count("driver reads 0") == 1
    assert loop.committed == []


def test_a_late_commit_that_did_arrive_is_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=400)
    loop.fails[0] = [Fenced("an own late commit", winner="me")]
    resume = loop._resume

    def arrived(*arguments: Any) -> Entry:
        if loop.steps.count("resume") == 1:
            loop.held = 200
        return resume(*arguments)

    monkeypatch.setattr(ingestion, "resume", arrived)
    loop.ingestion.drain()
    assert loop.committed == [(200, 400)]


def test_the_error_of_a_batch_comes_before_that_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=600)
    loop.fails[200] = [KafkaUnavailable("of the second batch")]
    stage = loop._stage

    def failing(planned: Any) -> Any:
        if planned.start.at[0] == 400:
            raise KafkaUnavailable("of the third batch")
        return stage(planned)

    loop.ingestion._evolution._stage = failing  # type: ignore[attr-defined]
    with pytest.raises(KafkaUnavailable, match="of the second batch"):
        loop.ingestion.drain()
    assert loop.committed == [(0, 200)]


def test_what_is_accepted_lands_though_more_records_arrive_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=170, rejected=150)
    loop.accepted, loop.ingestion.job.kafka.grows = ledger.REJECTED_SHARE, 5  # type: ignore[attr-defined]
    loop.ingestion.poll()
    assert loop.committed[0][1] in range(170, 200)


def test_what_is_accepted_stays_so_when_a_batch_is_staged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=600, rejected=150)
    loop.accepted, loop.fails[200] = ledger.REJECTED_SHARE, [StageAgain("files are gone")]
    assert loop.ingestion.drain().batches == 3


def test_what_is_accepted_stays_so_for_the_next_driver_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=600, rejected=150)
    loop.accepted, loop.fails[200] = ledger.REJECTED_SHARE, [KafkaUnavailable("the driver ends")]
    with pytest.raises(KafkaUnavailable):
        loop.ingestion.drain()
    assert loop.committed == [(0, 200)]
    later = Loop(monkeypatch, records=800, rejected=150)
    later.held, later.summary = loop.held, loop.summary
    with pytest.raises(TooManyRejected, match=r'"0":600.* to .*"0":800'):
        later.ingestion.drain()
    assert later.committed == [(200, 400), (400, 600)]


def test_what_is_accepted_stays_so_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, records=600, rejected=150)
    loop.accepted, loop.fails[200] = ledger.REJECTED_SHARE, [KafkaUnavailable("an outage")]
    with pytest.raises(KafkaUnavailable):
        loop.ingestion.poll()
    loop.ingestion.forget()
    loop.ingestion.poll()
    assert loop.committed == [(0, 200), (200, 400), (400, 600)]
