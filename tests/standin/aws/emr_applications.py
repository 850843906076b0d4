"""EMR Serverless applications with the service's rules: `CREATED` at first, started by their first run, stopped when idle.

In moto 5.2.5 they begin as `STARTED`. It refuses the labels of EMR's Spark releases, drops most settings and tags, and stops
an application while it has runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult, EmptyResult
from moto.emrserverless.exceptions import ResourceNotFoundException, ValidationException
from moto.emrserverless.models import Application, EMRServerlessBackend, emrserverless_backends
from moto.emrserverless.responses import EMRServerlessResponse

from frazil.clients.emr import RunState
from tests.standin.aws.job_run import JobRun, Surroundings, admit

MOST_RUNS = 15
"""The default number of concurrent runs of an application; the others wait
(https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/applications-concurrency-queuing.html)."""
_LABEL = re.compile(r"emr-(spark-)?[0-9]+\.[0-9]+\.[0-9]+")
_LABEL_THAT_MOTO_KNOWS = "emr-7.0.0"
_KEPT = {
    "architecture": "architecture",
    "diskEncryptionConfiguration": "disk_encryption_configuration",
    "imageConfiguration": "image_configuration",
    "interactiveConfiguration": "interactive_configuration",
    "monitoringConfiguration": "monitoring_configuration",
    "releaseLabel": "release_label",
    "runtimeConfiguration": "runtime_configuration",
    "schedulerConfiguration": "scheduler_configuration",
    "workerTypeSpecifications": "worker_type_specifications",
}
"""Settings that moto drops, by the attributes that its answers read."""


class Conflict(JsonRESTError):
    """The resource's state does not allow the operation."""

    code = 409

    def __init__(self, message: str) -> None:
        super().__init__("ConflictException", message)


class Runs:
    """All runs of all applications, in the order of their requests."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self._of: dict[str, list[JobRun]] = {}
        self._idle_since: dict[str, float] = {}
        self._noticed: dict[str, RunState] = {}

    def of(self, application: Application) -> list[JobRun]:
        """Return the runs of an application, each in its current state."""
        runs = self._of.setdefault(application.id, [])
        admit(runs, (getattr(application, "scheduler_configuration", None) or {}).get("maxConcurrentRuns", MOST_RUNS))
        return runs

    def all(self) -> list[JobRun]:
        """Return all runs."""
        return [run for runs in self._of.values() for run in runs]

    def changed(self) -> list[tuple[Application, JobRun]]:
        """Return the runs whose state has changed since the last call. A state that lasts shorter than that is not noticed."""
        changed = []
        for application in every_application():
            for run in self.of(application):
                if self._noticed.get(run.id) is not run.state:
                    self._noticed[run.id] = run.state
                    changed.append((application, run))
        return changed

    def go_on(self) -> None:
        """Advance every run, and stop applications whose idle time is over."""
        for application in every_application():
            is_busy = any(not run.state.is_terminal for run in self.of(application))
            stop: Any = application.auto_stop_configuration or {}
            if is_busy or application.state != "STARTED" or not stop.get("enabled", True):
                self._idle_since.pop(application.id, None)
                continue
            now = self.around.clock()
            since = self._idle_since.setdefault(application.id, now)
            if now >= since + float(stop.get("idleTimeoutMinutes", 15)) * 60:
                application.state = "STOPPED"


def every_application() -> Iterator[Application]:
    """Return all applications of all accounts and regions."""
    for regions in list(emrserverless_backends.values()):
        for backend in list(regions.values()):
            yield from list(backend.applications.values())


class Applications(EMRServerlessResponse):
    """The operations on applications and on tags."""

    runs: Runs

    def create_application(self) -> ActionResult:
        """Create an application. A repeated token returns the same one."""
        backend, token = self.emrserverless_backend, self._get_param("clientToken")
        for held in backend.applications.values():
            if token and held.client_token == token:
                return _named(held)
        label = str(self._get_param("releaseLabel"))
        made = backend.create_application(
            name=self._get_param("name"),
            release_label=_LABEL_THAT_MOTO_KNOWS if _LABEL.fullmatch(label) else label,
            application_type=self._get_param("type"),
            client_token=token,
            initial_capacity=self._get_param("initialCapacity"),
            maximum_capacity=self._get_param("maximumCapacity"),
            tags=plain(self._get_param("tags")),
            auto_start_configuration=self._get_param("autoStartConfiguration"),
            auto_stop_configuration=self._get_param("autoStopConfiguration"),
            network_configuration=self._get_param("networkConfiguration"),
        )
        made.state = "CREATED"
        setattr(made, _KEPT["architecture"], "X86_64")  # the default
        made.created_at = made.updated_at = self.runs.around.today()  # moto cuts it to midnight
        self._keep(made)
        return _named(made)

    def update_application(self) -> ActionResult:
        """Update an application. It can be changed only while it is stopped."""
        label = self._get_param("releaseLabel")
        if label is not None and not _LABEL.fullmatch(str(label)):
            raise ValidationException(f"release label '{label}' does not exist")
        result = super().update_application()
        self._keep(self.application)
        return result

    def start_application(self) -> ActionResult:
        """Start an application. A deleted one stays deleted."""
        if self.application.state == "TERMINATED":
            raise ValidationException(f"Application {self.application.id} is terminated")
        return super().start_application()

    def stop_application(self) -> ActionResult:
        """Stop an application. As on AWS, refused while runs are active. Of the codes that AWS documents, only one fits
        (https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StopApplication.html)."""
        if any(not run.state.is_terminal for run in self.runs.of(self.application)):
            raise ValidationException(f"Application {self.application.id} has active job runs")
        if self.application.state == "TERMINATED":
            raise ValidationException(f"Application {self.application.id} is terminated")
        return super().stop_application()

    def list_tags_for_resource(self) -> ActionResult:
        """Return the tags of an application or a run."""
        return ActionResult({"tags": dict(self._tags())})

    def tag_resource(self) -> ActionResult:
        """Add tags."""
        self._tags().update(plain(self._get_param("tags")))
        return EmptyResult()

    def untag_resource(self) -> ActionResult:
        """Remove tags."""
        for key in self._get_param("tagKeys"):
            self._tags().pop(key, None)
        return EmptyResult()

    @property
    def application(self) -> Application:
        """The application that the request names."""
        return self.emrserverless_backend.get_application(self._get_param("applicationId"))

    def arn_of(self, run: JobRun) -> str:
        """Return a run's ARN."""
        backend: EMRServerlessBackend = self.emrserverless_backend
        place = f"arn:{backend.partition}:emr-serverless:{backend.region_name}:{backend.account_id}"
        return f"{place}:/applications/{run.request['applicationId']}/jobruns/{run.id}"

    def _keep(self, application: Application) -> None:
        for name, attribute in _KEPT.items():
            value = plain(self._get_param(name))
            if value is not None:
                setattr(application, attribute, value)

    def _tags(self) -> dict[str, str]:
        arn = self._get_param("resourceArn")
        for application in self.emrserverless_backend.applications.values():
            if application.arn == arn:
                return application.tags
        for run in self.runs.all():
            if self.arn_of(run) == arn:
                return run.tags
        raise ResourceNotFoundException(str(arn), "Resource")


def plain(value: Any) -> Any:
    """Return a parameter as plain dictionaries and lists; moto's own do not keep the spelling of keys."""
    original: Callable[[], Any] | None = getattr(value, "original_dict", None)
    if original is not None:
        value = original()
    if isinstance(value, Mapping):
        return {key: plain(held) for key, held in value.items()}
    return [plain(held) for held in value] if isinstance(value, list) else value


def _named(application: Application) -> ActionResult:
    return ActionResult({"applicationId": application.id, "name": application.name, "arn": application.arn})
