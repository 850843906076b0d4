"""The frequency and the workers of job runs, as schedules and desired states declare them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.from_json import from_json
from frazil.rollout.desired import MAINTAIN, Worker, Workers
from frazil.rollout.function_settings import EXECUTION
from policies.resources import Json, Resource, embedded, policy

_CONF = re.compile(r"--conf (spark\.[^\s=]+)=(\S+)")
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_MINUTES = {"minute": 1, "hour": 60, "day": 1440}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The runs of a job. `every_minutes` is None for a continuous run."""

    job: str
    every_minutes: int | None
    workers: Workers
    application: str = ""
    """The id of the application on which they start; empty or a placeholder if it is not known yet."""

    @property
    def is_maintenance(self) -> bool:
        """True for runs of a maintenance job."""
        return self.job.partition("-")[0] == MAINTAIN


_UNREADABLE = (InvalidDeclaration, KeyError, TypeError, ValueError)


def runs(resources: Iterable[Resource]) -> tuple[list[Run], list[str]]:
    """Return the declared runs, and the names of schedules and desired states that could not be parsed."""
    listed = list(resources)
    desired = {str(each.get("job", "")): each for each in embedded(listed) if "workers" in each}
    found: list[Run] = []
    unread: list[str] = []
    for each in listed:
        if each.type == "aws_scheduler_schedule" and each.values.get("state", "ENABLED") == "ENABLED":
            request = next((policy(target.get("input")) for target in each.blocks("target")), None) or {}
            if set(request) == {"job"}:
                continue  # a pass of the reconciler, which starts nothing by itself
            try:
                found.append(_scheduled(each, request, desired))
            except _UNREADABLE:
                unread.append(each.address)
    for job, document in desired.items():
        if document.get("mode", "follow") == "follow" and not document.get("is_stopped"):
            try:
                found.append(_desired(document, None))
            except _UNREADABLE:
                unread.append(f"desired state of {job}")
    return sorted(found, key=lambda run: run.job), sorted(unread)


def _scheduled(schedule: Resource, request: Json, desired: Mapping[str, Json]) -> Run:
    """Return the runs that a schedule starts itself, or lets the reconciler start with the workers of the desired state."""
    rate = _RATE.fullmatch(schedule.text("schedule_expression"))
    if rate is None:
        raise ValueError(schedule.text("schedule_expression"))
    minutes = int(rate[1]) * _MINUTES[rate[2]]
    if set(request) == {"job", EXECUTION}:
        return _desired(desired[request["job"]], minutes)
    settings = dict(_CONF.findall(request["JobDriver"]["SparkSubmit"]["SparkSubmitParameters"]))
    return Run(
        job=str((request.get("Tags") or {}).get("frazil:job") or schedule.text("name")),
        every_minutes=minutes,
        workers=Workers(
            driver=_worker(settings, "driver"),
            executor=_worker(settings, "executor"),
            least=int(settings["spark.dynamicAllocation.minExecutors"]),
            most=int(settings["spark.dynamicAllocation.maxExecutors"]),
        ),
        application=str(request.get("ApplicationId") or ""),
    )


def _desired(document: Json, every_minutes: int | None) -> Run:
    return Run(
        job=str(document.get("job", "")),
        every_minutes=every_minutes,
        workers=from_json(Workers, document["workers"], "workers"),
        application=str(document.get("application", "")),
    )


def _worker(settings: Mapping[str, str], who: str) -> Worker:
    memory_mb = sum(_megabytes(settings[f"spark.{who}.{part}"]) for part in ("memory", "memoryOverhead"))
    disk = settings.get(f"spark.emr-serverless.{who}.disk", "20G")
    return Worker(
        cores=int(settings[f"spark.{who}.cores"]), memory_gb=memory_mb // 1024, disk_gb=int(disk.rstrip("gG"))
    )


def _megabytes(text: str) -> int:
    return int(text[:-1]) * (1024 if text[-1].lower() == "g" else 1)
