"""The frequency and the workers of job runs, as schedules and desired states declare them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.from_json import from_json
from frazil.rollout.desired import Workers
from frazil.rollout.function_settings import EXECUTION
from frazil.rollout.group_jobs import INGEST, MAINTAIN, job_name
from policies.resources import Json, Resource, embedded, policy

_CONF = re.compile(r"--conf (spark\.[^\s=]+)=(\S+)")
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_MINUTES = {"minute": 1, "hour": 60, "day": 1440}


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one worker: vCPUs, GB of memory, GB of disk."""

    cores: int
    memory_gb: Decimal
    disk_gb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The runs of a job. `every_minutes` is None for a continuous run; `least` and `most` count executors."""

    job: str
    every_minutes: int | None
    driver: Size
    executor: Size
    least: int
    most: int
    application: str = ""
    """The id of the application on which they start; empty or a placeholder if it is not known yet."""

    @property
    def is_maintenance(self) -> bool:
        """True for runs of a maintenance job."""
        return self.job.partition("-")[0] == MAINTAIN


def runs(resources: Iterable[Resource]) -> tuple[list[Run], list[str]]:
    """Return the declared runs, and the names of schedules and desired states that could not be parsed."""
    listed = list(resources)
    stored = list(embedded(listed))
    found: list[Run] = []
    not_understood: list[str] = []
    for each in listed:
        if each.type == "aws_scheduler_schedule" and each.values.get("state", "ENABLED") == "ENABLED":
            event = _event(each)
            if event is not None and EXECUTION not in event:
                continue  # a pass of the reconciler, which starts nothing by itself
            run = scheduled(each) if event is None else _drained(each, event, stored)
            if run is None:
                not_understood.append(each.address)
            else:
                found.append(run)
    for document in stored:
        if "workers" in document and document.get("mode", "follow") == "follow" and not document.get("is_stopped"):
            streaming = _desired(document)
            if streaming is None:
                not_understood.append(f"desired state of {document.get('job')}")
            else:
                found.append(streaming)
    return sorted(found, key=lambda run: run.job), sorted(not_understood)


def _event(schedule: Resource) -> Json | None:
    """Return the event that a schedule calls the reconciler with; None if it starts runs itself."""
    event = next((policy(target.get("input")) for target in schedule.blocks("target")), None)
    return event if event is not None and set(event) <= {"job", EXECUTION} and event else None


def _drained(schedule: Resource, event: Json, found: Iterable[Json]) -> Run | None:
    """Return the drains that a schedule calls for, with the workers of the job's desired state."""
    rate = _RATE.fullmatch(schedule.text("schedule_expression"))
    desired = next((each for each in found if each.get("job") == event.get("job") and "workers" in each), None)
    run = _desired(desired) if desired is not None else None
    if rate is None or run is None:
        return None
    return replace(run, every_minutes=int(rate[1]) * _MINUTES[rate[2]])


def _desired(document: Json) -> Run | None:
    """Return the runs of a desired state, as one continuous run."""
    try:
        workers = from_json(Workers, document["workers"], "workers")
    except InvalidDeclaration:
        return None
    return run_of(str(document.get("job", "")), workers, application=str(document.get("application", "")))


def run_of(job: str, workers: Workers, *, every_minutes: int | None = None, application: str = "") -> Run:
    """Return the runs of a job with these workers."""
    driver, executor = (
        Size(each.cores, Decimal(each.memory_gb), each.disk_gb) for each in (workers.driver, workers.executor)
    )
    return Run(
        job=job,
        every_minutes=every_minutes,
        driver=driver,
        executor=executor,
        least=workers.least,
        most=workers.most,
        application=application,
    )


def scheduled(schedule: Resource) -> Run | None:
    """Return the runs that a schedule starts itself; None if they could not be parsed."""
    rate = _RATE.fullmatch(schedule.text("schedule_expression"))
    request = next((policy(target.get("input")) for target in schedule.blocks("target")), None)
    if rate is None or request is None:
        return None
    settings = dict(_CONF.findall(_parameters(request)))
    try:
        return Run(
            job=str((request.get("Tags") or {}).get("frazil:job") or schedule.text("name")),
            every_minutes=int(rate[1]) * _MINUTES[rate[2]],
            driver=_size(settings, "driver"),
            executor=_size(settings, "executor"),
            least=int(settings["spark.dynamicAllocation.minExecutors"]),
            most=int(settings["spark.dynamicAllocation.maxExecutors"]),
            application=str(request.get("ApplicationId") or ""),
        )
    except (KeyError, ValueError):
        return None


def _parameters(request: Json) -> str:
    """Return the `SparkSubmitParameters` of a StartJobRun, in the scheduler's spelling."""
    found: Any = request
    for name in ("JobDriver", "SparkSubmit"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return str(found.get("SparkSubmitParameters") or "") if isinstance(found, Mapping) else ""


def _size(settings: Mapping[str, str], who: str) -> Size:
    memory = sum(_megabytes(settings[f"spark.{who}.{part}"]) for part in ("memory", "memoryOverhead"))
    disk = settings.get(f"spark.emr-serverless.{who}.disk", "20G")
    return Size(int(settings[f"spark.{who}.cores"]), Decimal(memory) / 1024, int(disk.rstrip("gG")))


def _megabytes(text: str) -> int:
    number, unit = int(text[:-1]), text[-1].lower()
    return number * 1024 if unit == "g" else number


@dataclass(frozen=True, slots=True)
class Landed:
    """A pipeline of a document. `target_seconds` are those of a batch; `is_state`: its table is one of current state."""

    name: str
    group: str | None
    target_seconds: int
    is_state: bool = False

    @property
    def job(self) -> str:
        """The ingest job that lands it."""
        return job_name(INGEST, self.group)


def pipelines(found: Iterable[Json]) -> Iterator[Landed]:
    """Yield the pipelines of documents."""
    for document in found:
        listed = document.get("pipelines", ())
        for each in listed if isinstance(listed, list) else ():
            seconds = _part(_part(each, "engine"), "limits").get("target_seconds", 10)
            own = each.get("name") if isinstance(each, Mapping) else None
            name = str(own or _part(each, "topic").get("name", ""))
            group = each.get("group") if isinstance(each, Mapping) else None
            is_known = isinstance(seconds, int) and seconds > 0
            is_state = _part(each, "write").get("type") == "upsert"
            yield Landed(name, str(group) if group else None, seconds if is_known else 10, is_state)


def _part(value: Any, name: str) -> Json:
    """Return a part of an object if it is an object, else an empty one."""
    part = value.get(name) if isinstance(value, Mapping) else None
    return part if isinstance(part, Mapping) else {}
