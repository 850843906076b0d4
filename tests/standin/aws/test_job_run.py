"""The states of a run, by the service's rules, with time and work that are given what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from frazil.clients.emr import RunState
from tests.standin.aws.job_run import JobRun, Surroundings, admit
from tests.support.fake_time import FakeTime

BEFORE = (RunState.SUBMITTED, RunState.PENDING, RunState.SCHEDULED)


@dataclass
class Work:
    is_begun: bool = True
    exit_code: int | None = None
    details: str = "no reason"
    asked: list[str] = field(default_factory=list)
    heeds: bool = True

    def terminate(self) -> None:
        self.asked.append("end")
        self.exit_code = 143 if self.heeds else None

    def kill(self) -> None:
        self.asked.append("killed")
        self.exit_code = -9


class Ground:
    def __init__(self) -> None:
        self.time, self.works = FakeTime(), list[Work]()
        self.next = Work()
        today = datetime(2026, 1, 1, tzinfo=UTC)
        self.around = Surroundings(clock=self.time.clock, today=lambda: today, begin=self._begin, step_seconds=1)

    def _begin(self, run: JobRun) -> Work:
        self.works.append(self.next)
        self.next = Work()
        return self.works[-1]

    def run(self, **asked: Any) -> JobRun:
        usual: dict[str, Any] = {"mode": "BATCH", "tags": {}, "retryPolicy": None, "executionTimeoutMinutes": None}
        run = JobRun("r", {**usual, **asked}, self.around)
        admit([run], 1)
        return run

    def running(self, **asked: Any) -> JobRun:
        run = self.run(**asked)
        self.passes(run, 3)
        assert run.state is RunState.RUNNING
        return run

    def passes(self, run: JobRun, seconds: float) -> RunState:
        self.time.sleep(seconds)
        run.advance()
        return run.state


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_it_goes_through_every_state_before_it_runs(ground: Ground) -> None:
    run = ground.run()
    seen = [run.state, *(ground.passes(run, 1) for _ in range(3))]
    assert seen == [*BEFORE, RunState.RUNNING]


def test_it_does_not_run_before_its_work_has_begun(ground: Ground) -> None:
    ground.next.is_begun = False
    run = ground.run()
    assert ground.passes(run, 100) is RunState.SCHEDULED
    ground.works[0].is_begun = True
    assert ground.passes(run, 0) is RunState.RUNNING


@pytest.mark.parametrize(("code", "state"), [(0, RunState.SUCCESS), (1, RunState.FAILED)])
def test_it_ends_as_its_work_does(ground: Ground, code: int, state: RunState) -> None:
    run = ground.running()
    ground.works[0].exit_code = code
    assert ground.passes(run, 0) is state
    assert run.attempt.details == ("" if code == 0 else "Job failed. no reason")


def test_a_batch_run_is_tried_as_often_as_its_policy_says(ground: Ground) -> None:
    run = ground.running(retryPolicy={"maxAttempts": 2})
    ground.works[0].exit_code = 1
    assert ground.passes(run, 0) is RunState.SUBMITTED
    ground.passes(run, 3)
    ground.works[1].exit_code = 1
    assert ground.passes(run, 0) is RunState.FAILED
    assert [(one.number, one.state) for one in run.attempts] == [(2, RunState.FAILED), (1, RunState.FAILED)]


def test_a_streaming_run_is_tried_again_until_it_has_failed_too_often_within_an_hour(ground: Ground) -> None:
    run = ground.running(mode="STREAMING", retryPolicy={"maxFailedAttemptsPerHour": 2})
    for number, (pause, state) in enumerate(
        [(0, RunState.SUBMITTED), (4000, RunState.SUBMITTED), (60, RunState.FAILED)]
    ):
        ground.passes(run, pause)
        ground.works[number].exit_code = 1
        assert ground.passes(run, 0) is state
        if state is not RunState.FAILED:
            ground.passes(run, 3)
    assert len(run.attempts) == 3


def test_cancelling_asks_and_ends_with_the_work(ground: Ground) -> None:
    run = ground.running()
    run.cancel(600)
    assert (run.state, ground.works[0].asked) == (RunState.CANCELLED, ["end"])


def test_who_does_not_heed_is_killed_at_the_end_of_the_grace(ground: Ground) -> None:
    ground.next.heeds = False
    run = ground.running()
    run.cancel(60)
    assert ground.passes(run, 59) is RunState.CANCELLING
    run.cancel(15)  # asked again
    assert ground.passes(run, 1) is RunState.CANCELLED
    assert ground.works[0].asked == ["end", "killed"]


@pytest.mark.parametrize(("mode", "seconds"), [("BATCH", 0), ("STREAMING", 120)])
def test_without_a_word_about_it_the_grace_is_the_modes(ground: Ground, mode: str, seconds: int) -> None:
    ground.next.heeds = False
    run = ground.running(mode=mode)
    run.cancel(None)
    assert (run.state is RunState.CANCELLED) is (seconds == 0)
    assert ground.passes(run, seconds) is RunState.CANCELLED


@pytest.mark.parametrize("seconds", [0, 1, 2])
def test_what_does_not_run_yet_is_cancelled_at_once(ground: Ground, seconds: int) -> None:
    ground.next.is_begun = False
    run = ground.run()
    ground.passes(run, seconds)
    run.cancel(1800)
    assert run.state is RunState.CANCELLED
    assert all(work.asked == ["killed"] for work in ground.works)


def test_what_runs_too_long_is_cancelled(ground: Ground) -> None:
    run = ground.running(executionTimeoutMinutes=5)
    assert ground.passes(run, 299) is RunState.RUNNING
    assert ground.passes(run, 1) is RunState.CANCELLED
    assert run.attempt.details == "it ran longer than 5 minutes"


def test_a_streaming_run_runs_for_ever_and_a_batch_for_half_a_day(ground: Ground) -> None:
    assert (ground.run(mode="STREAMING").timeout_minutes, ground.run().timeout_minutes) == (0, 720)


def test_those_who_wait_get_a_place_in_their_order(ground: Ground) -> None:
    runs = [JobRun(str(n), ground.run().request, ground.around) for n in range(3)]
    admit(runs, 1)
    assert [run.state for run in runs] == [RunState.SUBMITTED, RunState.QUEUED, RunState.QUEUED]
    runs[0].cancel(None)
    admit(runs, 1)
    assert [run.state for run in runs] == [RunState.CANCELLED, RunState.SUBMITTED, RunState.QUEUED]
    assert [run.admitted_at is None for run in runs] == [False, False, True]
    assert all(run.queued_ms >= 0 for run in runs)
