"""EMR Serverless applications, as the service has them: born `CREATED`, started by their first run, stopped when idle.

moto 5.2.5 has them born `STARTED`, refuses the labels of EMR's Spark releases, drops most of their settings and their tags,
and stops one under its runs.
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

from frazil.local.aws.job_run import JobRun, Surroundings, admit

MOST_RUNS = 15
"""How many runs an application has at once, if it does not say; the others wait
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
"""Settings that moto drops, by the names that it answers them from."""


class Conflict(JsonRESTError):
    """The resource is in a state in which this cannot be done."""

    code = 409

    def __init__(self, message: str) -> None:
        super().__init__("ConflictException", message)


class Runs:
    """All runs of all applications, in the order in which they were asked for."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self._of: dict[str, list[JobRun]] = {}
        self._idle_since: dict[str, float] = {}

    def of(self, application: Application) -> list[JobRun]:
        """The runs of an application, each as it is by now."""
        runs = self._of.setdefault(application.id, [])
        admit(runs, (getattr(application, "scheduler_configuration", None) or {}).get("maxConcurrentRuns", MOST_RUNS))
        return runs

    def all(self) -> list[JobRun]:
        """Every run."""
        return [run for runs in self._of.values() for run in runs]

    def go_on(self) -> None:
        """Let every run go on, and applications stop that have been idle for as long as they say."""
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
    """All applications, of all accounts and regions."""
    for regions in list(emrserverless_backends.values()):
        for backend in list(regions.values()):
            yield from list(backend.applications.values())


class Applications(EMRServerlessResponse):
    """What is answered about applications, and about the tags of everything."""

    runs: Runs

    def create_application(self) -> ActionResult:
        """The same token is the same application."""
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
        setattr(made, _KEPT["architecture"], "X86_64")  # unless another is asked for
        made.created_at = made.updated_at = self.runs.around.today()  # moto cuts it to midnight
        self._keep(made)
        return _named(made)

    def update_application(self) -> ActionResult:
        """Only what is not started can be changed."""
        label = self._get_param("releaseLabel")
        if label is not None and not _LABEL.fullmatch(str(label)):
            raise ValidationException(f"release label '{label}' does not exist")
        result = super().update_application()
        self._keep(self.application)
        return result

    def start_application(self) -> ActionResult:
        """Start it; one that is deleted stays so."""
        if self.application.state == "TERMINATED":
            raise ValidationException(f"Application {self.application.id} is terminated")
        return super().start_application()

    def stop_application(self) -> ActionResult:
        """AWS refuses while runs are active; its error's very code could not be looked at."""
        if any(not run.state.is_terminal for run in self.runs.of(self.application)):
            raise Conflict(f"Application {self.application.id} has active job runs")
        return super().stop_application()

    def list_tags_for_resource(self) -> ActionResult:
        """The tags of an application or a run."""
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
        """The application that is asked about."""
        return self.emrserverless_backend.get_application(self._get_param("applicationId"))

    def arn_of(self, run: JobRun) -> str:
        """A run's ARN."""
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
    """A parameter as plain dictionaries and lists; moto's own forget how their keys were written."""
    original: Callable[[], Any] | None = getattr(value, "original_dict", None)
    if original is not None:
        value = original()
    if isinstance(value, Mapping):
        return {key: plain(held) for key, held in value.items()}
    return [plain(held) for held in value] if isinstance(value, list) else value


def _named(application: Application) -> ActionResult:
    return ActionResult({"applicationId": application.id, "name": application.name, "arn": application.arn})
