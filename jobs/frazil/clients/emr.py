"""EMR Serverless: the job runs of an application, what is done to them, and the stop of an application.

https://docs.aws.amazon.com/emr-serverless/latest/APIReference/
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any

from frazil.clients.aws_session import aws_client, aws_session, unanswered
from frazil.errors import EmrUnavailable

ENDED = 20
"""The number of ended runs that are listed: enough to see that the last ones failed, and which was the last."""
WINDOWS = tuple(timedelta(days=days) for days in (2, 30, 400))
"""The ages of the runs that are listed: the next window is listed only if there are too few in the one before."""
_LOOKED_AT = 5  # times as many runs are asked for their tags at most
_KEPT = 1_000  # runs that have ended are remembered


class RunState(StrEnum):
    """The states of a job run, by the service's names. The last three are terminal: a run never leaves them."""

    SUBMITTED = "SUBMITTED"
    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    CANCELLING = "CANCELLING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """True if the run has ended."""
        return self in (RunState.SUCCESS, RunState.FAILED, RunState.CANCELLED)


_TERMINAL = tuple(state for state in RunState if state.is_terminal)
_ACTIVE = tuple(state for state in RunState if not state.is_terminal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job run as the service reports it."""

    id: str
    application: str
    name: str
    state: RunState
    details: str
    created_at: datetime
    updated_at: datetime
    tags: Mapping[str, str] = field(default_factory=dict)
    started_at: datetime | None = None
    """The time when it first began to run."""
    queued_for: timedelta = timedelta(0)
    """The time that it waited for room on its application."""
    log_uri: str = ""
    """The address of its logs on S3; empty for a run that writes no logs there."""


def emr_client(*, region: str | None = None, endpoint: str | None = None, keys: tuple[str, str] | None = None) -> Any:
    """Return boto3's client, with short timeouts (5 s to connect, 20 s to answer, 5 attempts).

    AWS's default chain decides what is None. Raises `EmrUnavailable` when the shell's AWS settings cannot be used, like a
    profile that is not there.
    """
    from botocore.exceptions import BotoCoreError

    try:
        session = aws_session(*(keys or ()), region=region)
        return aws_client("emr-serverless", session, endpoint_url=endpoint)
    except BotoCoreError as error:
        do = "Look at AWS_PROFILE and the AWS settings"
        raise EmrUnavailable(f"{error}", where="EMR Serverless", do=do) from None


class Emr:
    """Job runs. Every method raises `EmrUnavailable` when the service refuses or does not answer.

    `clock` is in seconds since 1970: which runs are recent is counted from it.
    """

    def __init__(self, client: Any, *, clock: Callable[[], float] = time.time) -> None:
        self._client, self._clock = client, clock
        self._ended: dict[tuple[str, str], Run] = {}

    def runs(self, application: str, tags: Mapping[str, str], *, names: str, ended: int = ENDED) -> tuple[Run, ...]:
        """Return the runs of an application that have these tags, oldest first; none if there is no such application.

        These are all runs that have not ended, and of those that have the newest `ended`, if they were created within the longest
        of `WINDOWS`. The service lists runs without their tags and asks for them one by one, so only runs whose name
        matches `names`, a regular expression, are looked at, those that have ended once, and not more of them than a few times
        `ended`.
        """

        def is_wanted(run: Run) -> bool:
            return tags.items() <= run.tags.items()

        active = self._listed(application, names, states=_ACTIVE)
        found = {run.id: run for run in (self._run(application, run_id) for run_id in active) if is_wanted(run)}
        recent: list[Run] = []
        for window in WINDOWS:
            began = datetime.fromtimestamp(self._clock(), UTC) - window
            listed = self._listed(application, names, states=_TERMINAL, createdAtAfter=began)
            looked_at = (self._run(application, run_id) for run_id in listed[: _LOOKED_AT * ended])
            recent = list(islice(filter(is_wanted, looked_at), ended))
            if len(recent) == ended:
                break
        found |= {run.id: run for run in recent}
        return tuple(sorted(found.values(), key=lambda run: (run.created_at, run.id)))

    def run(self, application: str, run_id: str) -> Run | None:
        """Return one run, however old; None if the application has no such run."""
        try:
            return self._run(application, run_id)
        except _NotFound:
            return None

    def start(self, request: Mapping[str, Any], *, token: str) -> str:
        """Start a run and return its id. The same token again, with the same request, is the same run."""
        where = f"application {request['applicationId']}"
        return str(self._ask(where, "start_job_run", **request, clientToken=token)["jobRunId"])

    def cancel(self, run: Run, *, grace_seconds: int) -> None:
        """Ask a run to end: SIGTERM, then so many seconds, 15 to 1800. A run that has ended meanwhile is left alone."""
        try:
            request = {"applicationId": run.application, "jobRunId": run.id}
            self._ask(f"run {run.id}", "cancel_job_run", **request, shutdownGracePeriodInSeconds=grace_seconds)
        except EmrUnavailable:
            if not self._run(run.application, run.id).state.is_terminal:
                raise

    def active(self, application: str) -> tuple[str, ...]:
        """Return the ids of all runs of an application that have not ended, whoever started them; none if it does not exist."""
        return tuple(self._listed(application, ".*", states=_ACTIVE))

    def application_state(self, application: str) -> str | None:
        """Return the state of an application, like `STARTED`; None if it does not exist or was deleted."""
        try:
            found = self._ask(f"application {application}", "get_application", applicationId=application)
        except _NotFound:
            return None
        state = str(found["application"]["state"])
        return None if state == "TERMINATED" else state

    def stop_application(self, application: str) -> None:
        """Ask an application to stop. The service refuses while a run of it has not ended. The next run starts it again."""
        self._ask(f"application {application}", "stop_application", applicationId=application)

    def _ask(self, where: str, operation: str, **request: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._client, operation)(**request)
        except ClientError as error:
            details = error.response.get("Error", {})
            code, message = str(details.get("Code", "unknown")), str(details.get("Message", ""))[:300]
            kind = _KINDS.get(code, EmrUnavailable)
            raise kind(f"EMR Serverless refused ({code}): {message}", where=where) from None
        except BotoCoreError as error:
            what, do = unanswered("EMR Serverless", error)
            raise EmrUnavailable(what, where=where, do=do) from None

    def _listed(self, application: str, names: str, *, states: Sequence[RunState], **filters: Any) -> list[str]:
        """Return the ids of the runs in one of these states, the newest first."""
        found, page = [], dict(filters)
        while True:
            try:
                request = {"applicationId": application, "maxResults": 50, "states": [s.value for s in states], **page}
                answer = self._ask(f"application {application}", "list_job_runs", **request)
            except _NotFound:
                return []
            found += [run for run in answer["jobRuns"] if re.fullmatch(names, str(run.get("name") or ""))]
            if not answer.get("nextToken"):
                return [str(run["id"]) for run in sorted(found, key=lambda r: (r["createdAt"], r["id"]), reverse=True)]
            page["nextToken"] = answer["nextToken"]

    def _run(self, application: str, run_id: str) -> Run:
        known = self._ended.get((application, run_id))
        if known is not None:
            return known
        answer = self._ask(f"run {run_id}", "get_job_run", applicationId=application, jobRunId=run_id)["jobRun"]
        monitoring = (answer.get("configurationOverrides") or {}).get("monitoringConfiguration") or {}
        run = Run(
            id=run_id,
            application=application,
            name=answer.get("name") or "",
            state=RunState(answer["state"]),
            details=answer.get("stateDetails") or "",
            created_at=answer["createdAt"],
            updated_at=answer["updatedAt"],
            started_at=answer.get("startedAt"),
            queued_for=timedelta(milliseconds=answer.get("queuedDurationMilliseconds") or 0),
            tags=dict(answer.get("tags") or {}),
            log_uri=(monitoring.get("s3MonitoringConfiguration") or {}).get("logUri") or "",
        )
        if run.state.is_terminal:
            self._ended[application, run_id] = run
            for oldest in list(self._ended)[: len(self._ended) - _KEPT]:
                del self._ended[oldest]
        return run


class _NotFound(EmrUnavailable):
    """There is no such application or run."""


class NotAllowed(EmrUnavailable):
    """The caller's role has no right on the application or run, whether it exists or not."""


_KINDS = {"ResourceNotFoundException": _NotFound, "AccessDeniedException": NotAllowed}
