"""EMR Serverless in moto's process, with job runs that execute.

In moto 5.2.5, every run is SUCCESS from the start. It drops token, mode, retry policy and tags, and has no attempts.
https://docs.aws.amazon.com/emr-serverless/latest/APIReference/
"""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult, PaginatedResult
from moto.emrserverless import urls
from moto.emrserverless.exceptions import AccessDeniedException, ResourceNotFoundException, ValidationException

from tests.standin.aws.emr_applications import Applications, Conflict, Runs, plain
from tests.standin.aws.job_run import STREAMING, JobRun, Surroundings
from tests.standin.aws.run_events import deliver, state_change

GRACE_SECONDS = range(15, 1801)
"""The grace periods in seconds that the service accepts, besides 0."""
LOOK_SECONDS = 0.1
_ASKED = (
    "executionRoleArn",
    "jobDriver",
    "configurationOverrides",
    "tags",
    "name",
    "mode",
    "retryPolicy",
)
_PATHS = (
    "applications$",
    "applications/(?P<applicationId>[^/]+)$",
    "applications/(?P<applicationId>[^/]+)/start$",
    "applications/(?P<applicationId>[^/]+)/stop$",
    "applications/(?P<applicationId>[^/]+)/jobruns$",
    "applications/(?P<applicationId>[^/]+)/jobruns/(?P<jobRunId>[^/]+)$",
    "tags/(?P<resourceArn>.+)$",
)

_one_at_a_time = threading.RLock()
"""The server answers each request in a thread of its own, and another thread advances the runs."""


def patch_emr_serverless(around: Surroundings) -> None:
    """Make this process's moto serve EMR Serverless, with runs that advance while the process lives."""
    Applications.runs = Runs(around)
    urls.url_paths = {f"{{0}}/{path}": JobRuns.dispatch for path in _PATHS}
    threading.Thread(target=_go_on, args=(Applications.runs,), daemon=True, name="runs").start()


def _go_on(runs: Runs) -> None:
    while True:
        with _one_at_a_time:
            runs.go_on()
            events = [state_change(application, run) for application, run in runs.changed()]
        for event in events:
            deliver(event)
        threading.Event().wait(LOOK_SECONDS)


class JobRuns(Applications):
    """The operations on job runs."""

    def call_action(self) -> Any:
        """Answer one request at a time."""
        with _one_at_a_time:
            return super().call_action()

    def start_job_run(self) -> ActionResult:
        """Start a run. A repeated token returns the same run, even if it has ended; with another request, it is a conflict."""
        application, request = self.application, self._asked()
        runs = self.runs.of(application)
        for run in runs:
            if run.request["clientToken"] == request["clientToken"]:
                if run.request != request:
                    raise Conflict("clientToken was used before with different parameters")
                return self._started(run)
        if application.state == "TERMINATED":
            raise ValidationException(f"Application {application.id} is terminated. Cannot start job run.")
        if application.state != "STARTED":
            start: Any = application.auto_start_configuration or {}
            if not start.get("enabled", True):
                raise Conflict(f"Application {application.id} is not started")
            application.state = "STARTED"
        made = JobRun(f"00f{uuid.uuid4().hex[:13]}", request, self.runs.around)
        runs.append(made)
        self.runs.of(application)  # starts the run if the application has capacity
        return self._started(made)

    def get_job_run(self) -> ActionResult:
        """Return a run and its newest attempt."""
        run = self._run()
        request = run.request
        seconds = ((run.ended_at or self.runs.around.today()) - run.started_at).total_seconds() if run.started_at else 0
        described = {
            **self._summary(run),
            "jobRunId": run.id,
            "tags": run.tags,
            "retryPolicy": request["retryPolicy"],
            "jobDriver": request["jobDriver"],
            "configurationOverrides": request["configurationOverrides"],
            "networkConfiguration": self.application.network_configuration,
            "executionTimeoutMinutes": run.timeout_minutes,
            "startedAt": run.started_at,
            "endedAt": run.ended_at,
            "queuedDurationMilliseconds": run.queued_ms,
            "totalExecutionDurationSeconds": int(seconds),
        }
        return ActionResult({"jobRun": {name: value for name, value in described.items() if value is not None}})

    def list_job_runs(self) -> ActionResult:
        """Return one page, the newest first."""
        states, after = list(self._get_param("states", []) or []), self._time("createdAtAfter")
        found = [
            self._summary(run)
            for run in reversed(self.runs.of(self.application))
            if (not states or run.state in states) and (after is None or run.created_at > after)
        ]
        return PaginatedResult({"jobRuns": found})

    def cancel_job_run(self) -> ActionResult:
        """Cancel a run that has not ended."""
        run, grace = self._run(), self._get_int_param("shutdownGracePeriodInSeconds")
        if grace and grace not in GRACE_SECONDS:
            raise ValidationException("shutdownGracePeriodInSeconds must be 0 or 15 to 1800")
        if run.state.is_terminal:
            raise ValidationException(f"JobRun {run.id} is in terminal state {run.state}")
        run.cancel(grace)
        return ActionResult({"applicationId": self.application.id, "jobRunId": run.id})

    def _asked(self) -> dict[str, Any]:
        """Return the request of a run. Raises the service's errors."""
        asked = {name: plain(self._get_param(name)) for name in _ASKED}
        asked |= {"applicationId": self.application.id, "clientToken": self._get_param("clientToken")}
        asked |= {"mode": asked["mode"] or "BATCH", "tags": asked["tags"] or {}}
        asked["region"] = self.emrserverless_backend.region_name
        asked["executionTimeoutMinutes"] = minutes = self._get_int_param("executionTimeoutMinutes")
        policy, is_streaming = asked["retryPolicy"] or {}, asked["mode"] == STREAMING
        if not asked["clientToken"]:
            raise ValidationException("clientToken is required")
        if ("maxAttempts" in policy and is_streaming) or ("maxFailedAttemptsPerHour" in policy and not is_streaming):
            raise ValidationException("retryPolicy does not fit mode")
        if minutes == 0 and not is_streaming:
            raise ValidationException("executionTimeoutMinutes must not be 0 for BATCH")
        if minutes and minutes < 5:
            raise ValidationException("RunTimeout must be at least 5 minutes.")
        role = str(asked["executionRoleArn"]).split(":")
        if len(role) < 6 or role[4] != self.emrserverless_backend.account_id:
            raise AccessDeniedException("Cross-account pass role is not allowed.")
        return asked

    def _run(self) -> JobRun:
        wanted = self._get_param("jobRunId")
        for run in self.runs.of(self.application):
            if run.id == wanted:
                return run
        raise ResourceNotFoundException(str(wanted), "JobRun")

    def _started(self, run: JobRun) -> ActionResult:
        return ActionResult(
            {"applicationId": run.request["applicationId"], "jobRunId": run.id, "arn": self.arn_of(run)}
        )

    def _summary(self, run: JobRun) -> dict[str, Any]:
        attempt = run.attempt
        return {
            "applicationId": run.request["applicationId"],
            "id": run.id,
            "name": run.request["name"],
            "mode": run.request["mode"],
            "arn": self.arn_of(run),
            "createdBy": f"arn:aws:iam::{self.emrserverless_backend.account_id}:root",
            "createdAt": run.created_at,
            "updatedAt": attempt.updated_at,
            "executionRole": run.request["executionRoleArn"],
            "state": str(attempt.state),
            "stateDetails": attempt.details,
            "releaseLabel": self.application.release_label,
            "type": self.application.type,
            "attempt": attempt.number,
            "attemptCreatedAt": attempt.created_at,
            "attemptUpdatedAt": attempt.updated_at,
        }

    def _time(self, name: str) -> datetime | None:
        given = self._get_param(name)
        if not isinstance(given, datetime):
            return None
        return given if given.tzinfo else given.replace(tzinfo=UTC)
