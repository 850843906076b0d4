"""EMR Serverless in memory, at the level of boto3's client, with the service's rules for job runs and for stopping applications.

A run takes a fake minute for each step of its start and runs for `standin:minutes` of its tags (5), a streaming one without
end; `standin:outcome` is its result. A run that `hangs` does not end by itself. The service cancels what runs longer than its
timeout. `tests/clients/test_emr_service.py` tests its behaviour.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

STARTING = (("SUBMITTED", 60), ("PENDING", 120), ("SCHEDULED", 180))
ENDED = {"SUCCESS", "FAILED", "CANCELLED"}


@dataclass
class FakeRun:
    id: str
    request: dict[str, Any]
    born: float
    admitted: float | None = None
    cancelled: float | None = None
    grace: float = 0.0
    killed: float | None = None
    hangs: bool = False

    @property
    def tags(self) -> dict[str, str]:
        return dict(self.request.get("tags") or {})

    @property
    def is_streaming(self) -> bool:
        return self.request.get("mode") == "STREAMING"

    def ends_at(self) -> tuple[float, str]:
        """Return when the run ends, and how; infinitely late if nothing ends it."""
        assert self.admitted is not None
        minutes = self.tags.get("standin:minutes")
        runs_for = float(minutes or 5) * 60 if minutes or not self.is_streaming or self._outcome() else float("inf")
        ends = [(self.admitted + 180 + (float("inf") if self.hangs else runs_for), self._outcome() or "SUCCESS")]
        if timeout := self.request.get("executionTimeoutMinutes", 0 if self.is_streaming else 720):
            ends.append((self.admitted + 180 + timeout * 60, "CANCELLED"))
        if self.cancelled is not None:
            ends.append((self.cancelled + self.grace, "CANCELLED"))
        if self.killed is not None:
            ends.append((self.killed, "FAILED"))
        return min(ends)

    def _outcome(self) -> str | None:
        return self.tags.get("standin:outcome")

    def state(self, now: float) -> str:
        if self.admitted is None:
            return "QUEUED" if self.cancelled is None else "CANCELLED"
        end, how = self.ends_at()
        if now >= end:
            return how
        if self.cancelled is not None:
            return "CANCELLING"
        return next((name for name, until in STARTING if now < self.admitted + until), "RUNNING")


@dataclass
class FakeEmr:
    """The service. `clock` is in seconds; `started` is called with each new run before it exists."""

    clock: Callable[[], float]
    limit: int = 15
    applications: dict[str, list[FakeRun]] = field(default_factory=dict)
    started: Callable[[dict[str, Any]], None] = lambda request: None
    states: dict[str, str] = field(default_factory=dict)
    """Of applications; what is not said is `CREATED`."""
    full: set[str] = field(default_factory=set)
    """Applications that admit no run."""
    closed: set[str] = field(default_factory=set)
    """Applications on which the caller has no rights."""

    def start_job_run(self, *, clientToken: str, **request: Any) -> dict[str, Any]:
        runs = self._runs(request["applicationId"])
        whole = {"clientToken": clientToken, **copy.deepcopy(request)}
        if not request["executionRoleArn"].startswith("arn:aws"):
            raise refused("ValidationException", "the execution role is no ARN")
        streaming, policy = request.get("mode") == "STREAMING", request.get("retryPolicy") or {}
        if ("maxAttempts" in policy and streaming) or ("maxFailedAttemptsPerHour" in policy and not streaming):
            raise refused("ValidationException", "retryPolicy does not fit mode")
        if not streaming and request.get("executionTimeoutMinutes") == 0:
            raise refused("ValidationException", "executionTimeoutMinutes must not be 0 for BATCH")
        for run in runs:
            if run.request["clientToken"] == clientToken:
                if run.request != whole:
                    raise refused("ConflictException", "clientToken was used before with different parameters")
                return {"applicationId": request["applicationId"], "jobRunId": run.id, "arn": self._arn(run)}
        self.started(request)
        made = FakeRun(f"00f{sum(map(len, self.applications.values())):05d}", whole, self.clock())
        runs.append(made)
        self.states[request["applicationId"]] = "STARTED"
        self._admit(runs)
        return {"applicationId": request["applicationId"], "jobRunId": made.id, "arn": self._arn(made)}

    def cancel_job_run(
        self, *, applicationId: str, jobRunId: str, shutdownGracePeriodInSeconds: int | None = None
    ) -> dict[str, Any]:
        run, grace = self._run(applicationId, jobRunId), shutdownGracePeriodInSeconds
        if grace and not 15 <= grace <= 1800:
            raise refused("ValidationException", "shutdownGracePeriodInSeconds must be 0 or 15 to 1800")
        state = run.state(self.clock())
        if state in ENDED:
            raise refused("ValidationException", f"JobRun {run.id} is in terminal state {state}")
        if run.cancelled is None:
            asked = grace if grace is not None else (120 if run.is_streaming else 0)
            run.cancelled, run.grace = self.clock(), asked if state == "RUNNING" else 0
        return {"applicationId": applicationId, "jobRunId": jobRunId}

    def get_job_run(self, *, applicationId: str, jobRunId: str) -> dict[str, Any]:
        run = self._run(applicationId, jobRunId)
        asked = {name: run.request.get(name) for name in ("jobDriver", "configurationOverrides")}
        began = run.admitted + 180 if run.admitted is not None else None
        queued = (self.clock() if run.admitted is None else run.admitted) - run.born
        asked["queuedDurationMilliseconds"] = round(queued * 1000)
        if began is not None and began <= self.clock() and (run.cancelled is None or run.cancelled > began):
            asked["startedAt"] = datetime.fromtimestamp(began, UTC)
        return {"jobRun": {**self._summary(run), "tags": run.tags, **asked}}

    def list_job_runs(
        self,
        *,
        applicationId: str,
        maxResults: int = 50,
        nextToken: str | None = None,
        states: Sequence[str] = (),
        createdAtAfter: datetime | None = None,
    ) -> dict[str, Any]:
        now, after = self.clock(), createdAtAfter.timestamp() if createdAtAfter else float("-inf")
        matching = (r for r in self._runs(applicationId) if r.born > after and (not states or r.state(now) in states))
        newest_first = list(matching)[::-1]
        begin = int(nextToken or 0)
        page = {"jobRuns": [self._summary(run) for run in newest_first[begin : begin + maxResults]]}
        if begin + maxResults < len(newest_first):
            page["nextToken"] = str(begin + maxResults)  # type: ignore[assignment]
        return page

    def get_application(self, *, applicationId: str) -> dict[str, Any]:
        self._runs(applicationId)
        return {"application": {"applicationId": applicationId, "state": self.states.get(applicationId, "CREATED")}}

    def stop_application(self, *, applicationId: str) -> dict[str, Any]:
        now = self.clock()
        if any(run.state(now) not in ENDED for run in self._runs(applicationId)):
            raise refused("ValidationException", f"Application {applicationId} has active job runs")
        self.states[applicationId] = "STOPPED"
        return {}

    def kill(self, run_id: str) -> None:
        """Kill the run's driver, so that the run fails."""
        for run in (run for runs in self.applications.values() for run in runs if run.id == run_id):
            run.killed = self.clock()

    def active(self) -> list[FakeRun]:
        """Return all runs that have not ended."""
        now = self.clock()
        return [run for runs in self.applications.values() for run in runs if run.state(now) not in ENDED]

    def _runs(self, application: str) -> list[FakeRun]:
        if application in self.closed:  # AWS asks IAM first, so that is the answer for a deleted one, too
            raise refused("AccessDeniedException", "not authorized to perform this action")
        if application not in self.applications:
            raise refused("ResourceNotFoundException", f"Application {application} does not exist")
        self._admit(self.applications[application])
        return self.applications[application]

    def _admit(self, runs: list[FakeRun]) -> None:
        """Start queued runs in order, as far as the application has capacity."""
        now = self.clock()
        busy = sum(run.admitted is not None and run.state(now) not in ENDED for run in runs)
        for run in runs:
            has_room = busy < self.limit and run.request["applicationId"] not in self.full
            if run.admitted is None and run.cancelled is None and has_room:
                run.admitted, busy = now, busy + 1

    def _run(self, application: str, run_id: str) -> FakeRun:
        for run in self._runs(application):
            if run.id == run_id:
                return run
        raise refused("ResourceNotFoundException", f"JobRun {run_id} does not exist")

    def _summary(self, run: FakeRun) -> dict[str, Any]:
        now, state = self.clock(), run.state(self.clock())
        changed = run.ends_at()[0] if state in ENDED and run.admitted is not None else now
        return {
            "applicationId": run.request["applicationId"],
            "id": run.id,
            "name": run.request.get("name"),
            "mode": run.request.get("mode") or "BATCH",
            "state": state,
            "stateDetails": "JobRun failed. standin" if state == "FAILED" else "",
            "createdAt": datetime.fromtimestamp(run.born, UTC),
            "updatedAt": datetime.fromtimestamp(min(changed, now), UTC),
        }

    def _arn(self, run: FakeRun) -> str:
        return f"arn:aws:emr-serverless:us-east-1:123456789012:/applications/{run.request['applicationId']}/jobruns/{run.id}"


def refused(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")
