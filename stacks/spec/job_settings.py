"""How the jobs of a deployment run: values only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from frazil.declaration.checks.constraints import between
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import validate
from frazil.rollout.desired import Mode, Worker, Workers
from infra.capacity import Capacity


class AlarmsOf(StrEnum):
    """What has alarms. `group`: seven for all pipelines of a group. `pipeline`: six for each pipeline.

    If one pipeline alone reports nothing, its own alarm is raised, or that of the reconciler, which counts such pipelines.
    """

    GROUP = "group"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """How the two jobs of a group run: their workers and their schedules."""

    ingest: Annotated[Workers, "The ingest job's workers."]
    maintain: Annotated[Workers, "The maintenance job's workers."]
    mode: Annotated[Mode, "How the ingest job runs."] = Mode.DRAIN
    ingest_minutes: Annotated[int, "With drain: minutes between two starts.", between(5, 1440)] = 15
    maintain_hours: Annotated[int, "Hours between two starts of maintenance.", between(1, 168)] = 6
    freshness_minutes: Annotated[int, "How late rows may be before an alarm.", between(5, 10_080)] = 60

    def __post_init__(self) -> None:
        validate(self, lambda: _unfresh(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs(Jobs):
    """How the jobs of pipelines without a group run, those of groups without settings, and the bounds of all together."""

    capacity: Annotated[Capacity, "The bounds of the application, large enough for all jobs at once."]
    idle_minutes: Annotated[int, "Minutes without a run after which the application stops.", between(1, 10_080)] = 15

    def __post_init__(self) -> None:
        validate(self, self._contradictions)

    def _contradictions(self) -> Iterator[Problem]:
        if short := self.capacity.shortage(self.ingest, self.maintain):
            yield Problem("capacity", f"the jobs do not fit: {short}", "Raise it, or lower `most` of the workers")
        yield from _unfresh(self)


def _unfresh(jobs: Jobs) -> Iterator[Problem]:
    if jobs.mode is Mode.DRAIN and jobs.freshness_minutes < 2 * jobs.ingest_minutes:
        what = f"with a drain every {jobs.ingest_minutes} minutes, rows are sometimes older"
        yield Problem("freshness_minutes", what, "Write at least twice `ingest_minutes`")


_SMALL = Worker(cores=1, memory_gb=4)
_MEDIUM = Worker(cores=4, memory_gb=16)

SMALL = Runs(
    ingest=Workers(driver=_SMALL, executor=_SMALL, least=1, most=2),
    maintain=Workers(driver=_SMALL, executor=_SMALL, least=1, most=2),
    capacity=Capacity(cores=8, memory_gb=32, disk_gb=200),
)

LARGE = Runs(
    ingest=Workers(driver=_MEDIUM, executor=_MEDIUM, least=1, most=8),
    maintain=Workers(driver=_MEDIUM, executor=_MEDIUM, least=1, most=8),
    capacity=Capacity(cores=80, memory_gb=320, disk_gb=2000),
)
