"""The steps of one batch, with stages that are values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from frazil.clients.kafka import Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline, Table, Topic
from frazil.decode.writers.seen_frames import SeenFrames, UnknownSchemas
from frazil.errors import KeysMissing, RejectedRecords
from frazil.ingest.batch.record_counts import Read, Rejected
from frazil.ingest.batch.refused_records import Refused
from frazil.ingest.batch.staged_records import StagedRecords, StagedRejected
from frazil.ingest.one_batch import StagedBatch, stage_batch
from frazil.ingest.plan.plan import Handling, Place, Plan, Restage
from frazil.ingest.spark_errors import TimestampOverflow
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.stage import Staged
from frazil.schemas.wire_format import prefixed
from frazil.write.mode import StagedRows

START, END = Offsets("orders", "T1", {0: 0}), Offsets("orders", "T1", {0: 4})
PLAN = Plan(START, START, END, lag=4, spans={0: Span(0, 4, 1)})
LATE = Record(0, 2, None, b"v", 2**62, 0, ())
UNKNOWN = SeenFrames(unknown=(prefixed(7, b""),))


class Stages:
    """Stages of a batch of four records; `rejected` are counted of them."""

    decoding: Any = SimpleNamespace(schema_ids=(3,))

    def __init__(
        self, rejected: Rejected, fails: str = "", *, omits_values: bool = False, thorough: Any = None
    ) -> None:
        self.rejected, self.fails, self.omits_values = rejected, fails, omits_values
        self.thorough = thorough or self.decoding
        self.clears, self.is_emptied = False, False
        self.steps: list[str] = []

    def stage(self, planned: Plan, by_driver: Sequence[Record] = ()) -> StagedRecords:
        self.steps.append(f"rows, {len(by_driver)} by the driver")
        if self.fails:
            raise PySparkException(self.fails)
        files = Staged("shop.orders", "uuid", {}, (), 4 - self.rejected.records, 1, 0.0)
        read = Read(4, 40, {0: 4})
        changes: Any = SimpleNamespace(clears=True, rejected=None, is_on=lambda _: True) if self.clears else None
        rows = StagedRows(
            files=files,
            landed=files.rows,
            terms={"written": files.rows},
            omits_values=self.omits_values,
            changes=changes,
        )
        at = datetime(2024, 1, 1, tzinfo=UTC)
        return StagedRecords(planned, by_driver, self.decoding, self.thorough, rows, read, at)

    def deletes_all(self, planned: Plan) -> bool:
        return self.is_emptied

    def stage_rejected(self, staged: StagedRecords) -> StagedRejected:
        self.steps.append(f"rejected of {staged.lacks_rows}")
        files = Staged("letters", "uuid", {}, (), self.rejected.records, 1, 0.0)
        return StagedRejected(self.rejected, files, refused=(Refused(0, 3, "unknown_schema"),))


class Evolution:
    framed_keys: Any = SimpleNamespace(check=lambda ids: None)

    def __init__(self, *, has_news: bool = False, may_lack_keys: bool = False) -> None:
        self.has_news, self.may_lack_keys = has_news, may_lack_keys

    def explain(self, one: Refused) -> str:
        return "explained"

    def learn(self, values: SeenFrames, keys: SeenFrames) -> None:
        if self.has_news:
            raise UnknownSchemas(values, keys)


def staged(stages: Any, evolution: Any = None, by_driver: Sequence[Record] = (), **choices: Any) -> StagedBatch:
    found = tried(stages, evolution, by_driver, **choices)
    assert isinstance(found, StagedBatch)
    return found


def tried(
    stages: Any, evolution: Any = None, by_driver: Sequence[Record] = (), plan: Plan = PLAN, **choices: Any
) -> StagedBatch | Restage:
    kafka = SimpleNamespace(
        topic=lambda name: SimpleNamespace(topic_id="T1", compacted=False),
        leader_epochs=lambda topic, partitions: dict.fromkeys(partitions, 1),
    )
    job: Any = SimpleNamespace(
        kafka=kafka, run="me", version="1", clock=lambda: 1.0, failpoint=stages.steps.append,
        stopping=lambda: False, redact=lambda text: text,
    )  # fmt: skip
    topic = Topic("orders", value="text")
    pipeline = Pipeline(topic=topic, table=Table("shop.orders"), **choices)
    return stage_batch(pipeline, job, stages, evolution or Evolution(), plan, by_driver)


def test_a_batch_without_rejected_records_has_one_pass() -> None:
    stages = Stages(Rejected())
    batch = staged(stages)
    assert stages.steps == ["rows, 0 by the driver", "stage.done"]
    assert batch.dead_letters is None
    assert (batch.request.counts.read, batch.request.counts.written, batch.request.schema_ids) == (4, 4, (3,))


def test_rejected_records_have_a_pass_of_their_own() -> None:
    stages = Stages(Rejected(kept={"undecodable": 1}, skipped={"tombstone": 1}))
    batch = staged(stages)
    assert stages.steps == ["rows, 0 by the driver", "rejected of 2", "stage.done"]
    assert batch.dead_letters is not None
    assert batch.request.counts.adds_up


def test_records_that_spark_cannot_read_are_the_drivers() -> None:
    stages = Stages(Rejected())
    staged(stages, by_driver=[LATE])
    assert stages.steps == ["rows, 1 by the driver", "stage.done"]


def test_a_timestamp_that_spark_cannot_hold_ends_the_staging_by_its_name() -> None:
    with pytest.raises(TimestampOverflow):
        staged(Stages(Rejected(), fails="java.lang.ArithmeticException: long overflow"))


def test_new_schemas_are_learnt_before_rejected_records_suspend_the_pipeline() -> None:
    found = Rejected(kept={"unknown_schema": 1}, values=UNKNOWN)
    with pytest.raises(UnknownSchemas):
        staged(Stages(found), Evolution(has_news=True), on_error="suspend")
    with pytest.raises(RejectedRecords, match="partition 0 offset 3: unknown_schema"):
        staged(Stages(found), on_error="suspend")


@pytest.mark.parametrize(
    ("counted", "stops"),
    [
        (Rejected(kept={"key_missing": 4}, keyless=4), True),
        (Rejected(kept={"key_missing": 1}, skipped={"key_missing": 3}, keyless=4), True),
        (Rejected(kept={"key_missing": 3, "too_short": 1}, keyless=4), True),
        (Rejected(kept={"key_missing": 3}, keyless=3), False),
        (Rejected(kept={"key_missing": 3, "too_short": 1}, keyless=3), False),
        (Rejected(kept={"too_short": 4}, keyless=4), False),
    ],
)
def test_only_a_first_batch_without_any_key_stops_a_state(counted: Rejected, stops: bool) -> None:
    staged(Stages(counted), on_error="dead_letter")  # not of a state, or not the first batch
    stages, evolution = Stages(counted), Evolution(may_lack_keys=True)
    if stops:
        for on_error in ("dead_letter", "suspend", "skip"):
            with pytest.raises(KeysMissing, match="none of the first 4 records has a key"):
                staged(stages, evolution, on_error=on_error)
    else:
        staged(stages, evolution, on_error="dead_letter")
    assert evolution.may_lack_keys is (counted.records == 4)


def test_changes_that_omit_values_have_the_batch_staged_again() -> None:
    stages = Stages(Rejected(), omits_values=True)
    assert tried(stages) == Restage("changes omit values", Handling(fills=True))
    assert stages.steps == ["rows, 0 by the driver"]


def test_rows_of_thorough_decoders_have_the_batch_staged_again_if_some_are_missing() -> None:
    known = replace(PLAN, handling=Handling(fills=True))
    lost = Stages(Rejected(kept={"undecodable": 1}), thorough=SimpleNamespace())
    lost.stage_rejected = lambda staged: StagedRejected(Rejected())  # type: ignore[method-assign]
    assert tried(lost, plan=known) == Restage("records need a thorough decoder", Handling(thorough=True, fills=True))
    assert staged(Stages(Rejected(kept={"undecodable": 1}), thorough=SimpleNamespace())).dead_letters is not None


def test_a_truncate_has_the_batch_staged_again_until_it_is_staged_for_the_last_one() -> None:
    stages = Stages(Rejected(skipped={"truncated": 1}, last_truncate=2))
    assert isinstance(staged(stages), StagedBatch)  # a truncate deletes nothing
    stages.is_emptied = True
    again = tried(stages)
    assert again == Restage("the source's table was truncated", Handling(truncate=Place("T1", 0, 2)))
    stages.clears, known = True, replace(PLAN, handling=again.handling)
    assert isinstance(tried(stages, plan=known), StagedBatch)
    stages.rejected = replace(stages.rejected, last_truncate=3)
    assert tried(stages, plan=known) == Restage(again.why, Handling(truncate=Place("T1", 0, 3)))
