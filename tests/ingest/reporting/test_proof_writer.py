"""A run writes its own proof, and no failure of a write ends the run."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from frazil.errors import ObjectStoreUnavailable
from frazil.ingest.reporting.events import Event
from frazil.ingest.reporting.proof_writer import Landed, proving
from frazil.rollout.run_proof import Driver, Reached, RunName, parse_proof
from tests.support.rollout_world import desired

RUN = f"{desired(3).run_prefix}{'0f' * 16}"


@dataclass
class Bucket:
    """Refuses `refused` writes, then takes each; `arrived` is set after each."""

    refused: int = 0
    error: type[Exception] | None = None
    written: list[bytes] = field(default_factory=list)
    key: str = ""
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def put(self, key: str, data: bytes) -> str:
        self.key = key
        if self.refused:
            self.refused -= 1
            self.arrived.release()
            if self.error is not None:
                raise self.error("odd")
            raise ObjectStoreUnavailable("S3 refused (AccessDenied)", where=f"s3://b/{key}")
        self.written.append(data)
        self.arrived.release()
        return "1"

    def wait(self) -> None:
        assert self.arrived.acquire(timeout=20)

    @property
    def pipelines(self) -> dict[str, str]:
        return {name: str(reached) for name, reached in parse_proof(self.written[-1]).pipelines.items()}


def event(kind: Event, pipeline: str = "orders", **facts: Any) -> dict[str, Any]:
    return {"event": kind.value, "pipeline": pipeline, "time": 1.0, **facts}


IDLE, WAITING = event(Event.IDLE, lag=0), event(Event.IDLE, lag=4)
COMMITTED = event(Event.BATCH_COMMITTED, read=1)
OUTAGE = event(Event.SERVICE_UNAVAILABLE)


@pytest.mark.parametrize(
    ("events", "reached"),
    [
        ([], Reached.NOTHING),
        ([event(Event.PIPELINE_STARTED)], Reached.NOTHING),
        ([IDLE], Reached.CAUGHT_UP),
        ([WAITING], Reached.NOTHING),
        ([IDLE, WAITING], Reached.NOTHING),
        ([COMMITTED], Reached.COMMITTED),
        ([COMMITTED, OUTAGE], Reached.COMMITTED),
        ([COMMITTED, event(Event.PIPELINE_FAILED)], Reached.COMMITTED),
        ([OUTAGE], Reached.UNAVAILABLE),
        ([IDLE, OUTAGE], Reached.UNAVAILABLE),
        ([OUTAGE, IDLE], Reached.CAUGHT_UP),
        ([IDLE, event(Event.PIPELINE_RETRIED)], Reached.NOTHING),
        ([IDLE, event(Event.DECISION_REQUIRED)], Reached.NOTHING),
        ([IDLE, event(Event.BATCH_RETRIED)], Reached.NOTHING),
        ([IDLE, event(Event.SCHEMA_EVOLVED)], Reached.CAUGHT_UP),
        ([event(Event.IDLE, "users", lag=0)], Reached.NOTHING),
    ],
)
def test_what_events_say_of_a_pipeline(events: list[Mapping[str, Any]], reached: Reached) -> None:
    landed = Landed(["orders", "users"])
    for one in events:
        landed.note(one)
    assert landed.all()["orders"] is reached


def test_only_a_change_is_written() -> None:
    landed = Landed(["orders"])
    changes = [landed.note(one) for one in (IDLE, IDLE, COMMITTED, COMMITTED, IDLE)]
    assert changes == [True, False, True, False, False]


def test_the_first_report_of_a_pipeline_is_written_because_it_has_its_turn() -> None:
    landed, started = Landed(["orders", "users"]), event(Event.PIPELINE_STARTED)
    assert [landed.note(one) for one in (started, started, event(Event.PIPELINE_STARTED, "flights"))] == [
        True,
        False,
        False,
    ]
    assert set(landed.reported()) == {"orders"}


def ran(bucket: Bucket | None, run: str = RUN, retry_seconds: float = 3600.0, **more: Any) -> Iterator[Any]:
    said: list[Mapping[str, Any]] = []
    with proving(
        said.append, ["orders", "users"], run=run, store=bucket, clock=lambda: 7.0, retry_seconds=retry_seconds, **more
    ) as sink:
        yield sink, said


def test_a_run_writes_its_proof_at_the_start_and_at_the_end() -> None:
    bucket = Bucket()
    for sink, said in ran(bucket):
        bucket.wait()
        assert bucket.pipelines == {"orders": "nothing", "users": "nothing"}
        sink(COMMITTED)
        sink(event(Event.IDLE, "users", lag=0))
        assert said == [COMMITTED, event(Event.IDLE, "users", lag=0)]
    assert bucket.pipelines == {"orders": "committed", "users": "caught_up"}
    proof = parse_proof(bucket.written[-1])
    assert (proof.run, proof.generation, proof.digest, proof.at_ms) == (RUN, 3, desired(3).digest[:8], 7000)
    name = RunName.of(RUN)
    assert name is not None
    assert bucket.key == name.proof_key


def test_a_proof_says_when_each_pipeline_has_reported() -> None:
    bucket = Bucket()
    for sink, _ in ran(bucket):
        sink({**COMMITTED, "time": 5.0})
        sink({**COMMITTED, "time": 6.5})
        sink({"event": Event.PROOF_UNWRITTEN.value, "time": 7.0})
    proof = parse_proof(bucket.written[-1])
    assert (proof.began_ms, dict(proof.reported)) == (7000, {"orders": 6500})


def test_many_batches_are_one_write() -> None:
    bucket = Bucket()
    for sink, _ in ran(bucket):
        bucket.wait()
        for _ in range(100):
            sink(COMMITTED)
    assert len(bucket.written) == 2


def test_a_proof_without_changes_is_written_again_and_has_what_the_driver_found() -> None:
    """It shows that the driver lives, and a rule of the bucket does not delete it."""
    bucket, driver = Bucket(), Driver(runtime={"python": "3.11.9"}, missing={"tables": "not found"})
    for _ in ran(bucket, again_seconds=0.01, driver=driver):
        for _ in range(3):
            bucket.wait()
    assert parse_proof(bucket.written[-1]).driver == driver


def test_an_unexpected_error_ends_no_thread_unseen() -> None:
    """Without proofs, the reconciler would roll the release back."""
    bucket = Bucket(refused=1, error=RuntimeError)
    for _, said in ran(bucket, retry_seconds=0.0):
        for _ in range(2):
            bucket.wait()
        assert [(one["event"], one["message"]) for one in said] == [("proof_unwritten", "RuntimeError: odd")]
    assert bucket.written


def test_a_write_that_fails_is_reported_and_tried_again() -> None:
    bucket = Bucket(refused=2)
    for sink, said in ran(bucket, retry_seconds=0.0):
        for _ in range(3):
            bucket.wait()
        assert [one["event"] for one in said] == ["proof_unwritten"] * 2
        assert "AccessDenied" in said[0]["message"]
        sink(COMMITTED)
    assert bucket.pipelines["orders"] == "committed"


def test_a_bucket_that_takes_nothing_ends_no_run_and_keeps_none_from_ending() -> None:
    bucket = Bucket(refused=10)
    for sink, _ in ran(bucket):  # an hour between two attempts
        bucket.wait()
        sink(COMMITTED)
    assert bucket.written == []


@pytest.mark.parametrize(("run", "bucket"), [("0f" * 16, Bucket()), (RUN, None)])
def test_a_run_by_hand_or_without_a_bucket_writes_none(run: str, bucket: Bucket | None) -> None:
    for sink, said in ran(bucket, run):
        sink(COMMITTED)
        assert said == [COMMITTED]
    assert bucket is None or bucket.written == []
