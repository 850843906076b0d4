"""The states of a job run, with the service's rules. Its `Work` executes an attempt.

QUEUED → SUBMITTED → PENDING → SCHEDULED → RUNNING → SUCCESS | FAILED; any of them → CANCELLING → CANCELLED.
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-states.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from frazil.clients.emr import RunState

STREAMING = "STREAMING"
STREAMING_GRACE_SECONDS = 120
"""The default grace period of a streaming run in seconds; a batch run has none
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/job-cancellation-grace-period.html)."""
FAILED_ATTEMPTS_PER_HOUR = 5
"""The default number of attempts of a streaming run that may fail within an hour
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/jobs-resiliency.html)."""
BATCH_MINUTES = 720
_HOUR = 3600
_STARTING = {RunState.SUBMITTED: RunState.PENDING, RunState.PENDING: RunState.SCHEDULED}


class Work(Protocol):
    """The execution of one attempt."""

    @property
    def is_begun(self) -> bool:
        """Whether the job itself runs, so its start is complete."""
        ...

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the job runs."""
        ...

    @property
    def details(self) -> str:
        """Why it failed, in a few words."""
        ...

    def terminate(self) -> None:
        """Terminate the job."""
        ...

    def kill(self) -> None:
        """Kill the job."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a run."""

    number: int
    state: RunState
    details: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The context of all runs. `clock` returns the service's time in seconds; each step of a start takes `step_seconds`."""

    clock: Callable[[], float]
    today: Callable[[], datetime]
    begin: Callable[[JobRun], Work]
    step_seconds: float


class JobRun:
    """One run. Callers must call `advance` before they read it. Not safe for concurrent threads."""

    def __init__(self, id: str, request: Mapping[str, Any], around: Surroundings) -> None:
        self.id, self.request = id, request
        self.tags: dict[str, str] = dict(request["tags"])
        self.created_at = around.today()
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None
        self.admitted_at: datetime | None = None
        self._around = around
        self._work: Work | None = None
        self._since = around.clock()
        self._began_running: float | None = None
        self._killed_at: float | None = None
        self._failures: list[float] = []
        self._now = Attempt(
            number=1, state=RunState.QUEUED, details="", created_at=self.created_at, updated_at=self.created_at
        )

    @property
    def state(self) -> RunState:
        """The current state."""
        return self._now.state

    @property
    def attempt(self) -> Attempt:
        """The newest attempt."""
        return self._now

    @property
    def is_streaming(self) -> bool:
        """Whether its mode is STREAMING."""
        return bool(self.request["mode"] == STREAMING)

    @property
    def timeout_minutes(self) -> int:
        """The minutes of running after which the run is cancelled; 0 for never."""
        given = self.request["executionTimeoutMinutes"]
        return int(given) if given is not None else 0 if self.is_streaming else BATCH_MINUTES

    @property
    def queued_ms(self) -> int:
        """How long it has been in the queue, in milliseconds."""
        left = self.admitted_at or self.ended_at or self._around.today()
        return round((left - self.created_at).total_seconds() * 1000)

    def admit(self) -> None:
        """Take the run out of the queue."""
        self.admitted_at = self._around.today()
        self._enter(RunState.SUBMITTED)

    def cancel(self, grace_seconds: int | None) -> None:
        """Terminate the run, and kill it once the grace period is over. A second call has no effect."""
        if self.state is RunState.CANCELLING:
            return
        if self.state is not RunState.RUNNING or self._work is None:
            if self._work is not None:
                self._work.kill()
            self._enter(RunState.CANCELLED)
            return
        usual = STREAMING_GRACE_SECONDS if self.is_streaming else 0
        self._killed_at = self._around.clock() + (grace_seconds if grace_seconds is not None else usual)
        self._enter(RunState.CANCELLING)
        self._work.terminate()
        self.advance()

    def advance(self) -> None:
        """Take all transitions that work and time allow."""
        while self._step():
            pass

    def _step(self) -> bool:
        """Take the next transition that is due. Return whether one was."""
        now, work = self._around.clock(), self._work
        is_due = now >= self._since + self._around.step_seconds
        match self.state:
            case RunState.SUBMITTED | RunState.PENDING if is_due:
                since = self._since + self._around.step_seconds
                if self.state is RunState.SUBMITTED:
                    self._work = self._around.begin(self)
                self._enter(_STARTING[self.state], since=since)
            case RunState.SCHEDULED if is_due and work is not None and (work.is_begun or work.exit_code is not None):
                self._began_running = now if self._began_running is None else self._began_running
                self.started_at = self.started_at or self._around.today()
                self._enter(RunState.RUNNING)
            case RunState.RUNNING if work is not None and work.exit_code is not None:
                self._ended(work)
            case RunState.RUNNING if self._is_overdue(now):
                self._now = replace(self._now, details=f"it ran longer than {self.timeout_minutes} minutes")
                self.cancel(None)
            case RunState.CANCELLING if work is not None and work.exit_code is not None:
                self._enter(RunState.CANCELLED)
            case RunState.CANCELLING if work is not None and self._killed_at is not None and now >= self._killed_at:
                self._killed_at = None
                work.kill()
            case _:
                return False
        return True

    def _is_overdue(self, now: float) -> bool:
        began, minutes = self._began_running, self.timeout_minutes
        return began is not None and minutes > 0 and now >= began + minutes * 60

    def _ended(self, work: Work) -> None:
        if work.exit_code == 0:
            self._enter(RunState.SUCCESS)
            return
        now = self._around.clock()
        self._failures = [*(at for at in self._failures if at > now - _HOUR), now]
        self._enter(RunState.FAILED, details=f"Job failed. {work.details}")
        if self._is_tried_again():
            today = self._around.today()
            self._now = Attempt(
                number=self._now.number + 1, state=RunState.SUBMITTED, details="", created_at=today, updated_at=today
            )
            self._since, self._work, self.ended_at = now, None, None

    def _is_tried_again(self) -> bool:
        policy = self.request["retryPolicy"] or {}
        if self.is_streaming:
            return len(self._failures) < int(policy.get("maxFailedAttemptsPerHour") or FAILED_ATTEMPTS_PER_HOUR)
        return self._now.number < int(policy.get("maxAttempts") or 1)

    def _enter(self, state: RunState, *, since: float | None = None, details: str | None = None) -> None:
        today = self._around.today()
        said = self._now.details if details is None else details
        self._now = replace(self._now, state=state, details=said, updated_at=today)
        self._since = self._around.clock() if since is None else since
        if state.is_terminal:
            self.ended_at = today


def admit(runs: Sequence[JobRun], most: int) -> None:
    """Start queued runs in order, as long as fewer than `most` are active."""
    for run in runs:
        run.advance()
    active = [run for run in runs if not run.state.is_terminal]
    free = most - sum(run.state is not RunState.QUEUED for run in active)
    for run in [run for run in active if run.state is RunState.QUEUED][: max(free, 0)]:
        run.admit()
