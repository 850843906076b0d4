"""The runs of a deployment's jobs, and their monitoring: values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated

from frazil.declaration.checks.constraints import between, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import FrozenMap
from frazil.rollout.desired import Mode, Worker, Workers
from infra.capacity import Capacity

IDLE_MINUTES = 15


class AlarmsOf(StrEnum):
    """The owner of alarms. `group`: nine for all pipelines of a group. `pipeline`: eight for each pipeline.

    If one pipeline alone reports nothing, its own alarm is raised, or that of the reconciler, which counts such pipelines.
    """

    GROUP = "group"
    PIPELINE = "pipeline"


@declared
class Monitoring:
    """The alarms, who gets them, and how long logs are kept."""

    alarms: Annotated[AlarmsOf, "Whether a group's pipelines have alarms together, or each its own."] = AlarmsOf.GROUP
    emails: Annotated[
        tuple[Annotated[str, matching("[^@ ]+@[^@ ]+", "an address", "Like a@b.c")], ...],
        "The addresses that alarms are sent to.",
    ] = ()
    log_days: Annotated[int, "Days until logs are deleted.", between(1, 3653)] = 30


@declared
class Jobs:
    """The workers and the schedules of the two jobs of a group."""

    ingest: Annotated[Workers, "The ingest job's workers."]
    maintain: Annotated[Workers, "The maintenance job's workers."]
    mode: Annotated[Mode, "How the ingest job runs."] = Mode.DRAIN
    ingest_minutes: Annotated[int, "With drain: minutes between two starts.", between(5, 1440)] = 15
    maintain_hours: Annotated[int, "Hours between two starts of maintenance.", between(1, 168)] = 6
    freshness_minutes: Annotated[int, "How late rows may be before an alarm.", between(5, 10_080)] = 60

    def _contradictions(self) -> Iterator[Problem]:
        if self.mode is Mode.DRAIN and self.freshness_minutes < 2 * self.ingest_minutes:
            what = f"with a drain every {self.ingest_minutes} minutes, rows are sometimes older"
            yield Problem("freshness_minutes", what, "Write at least twice `ingest_minutes`")


@declared
class Runs(Jobs):
    """The settings of jobs of pipelines without a group and of groups without settings, and the bounds of all together."""

    capacity: Annotated[Capacity, "The bounds of the application, large enough for all jobs at once."]
    idle_minutes: Annotated[int, "Minutes without a run after which the application stops.", between(1, 10_080)] = (
        IDLE_MINUTES
    )
    groups: Annotated[Mapping[str, Jobs], "Groups whose jobs run otherwise, by name."] = FrozenMap()
    generation: Annotated[
        int,
        "The version of the desired state: raise it with each change of release, pipelines or runs.",
        between(1, 10**9),
    ] = 1

    def of(self, group: str | None) -> Jobs:
        """Return how the jobs of a group run; `None` is that of the pipelines without one."""
        return self if group is None else self.groups.get(group, self)

    def _contradictions(self) -> Iterator[Problem]:
        if short := self.capacity.shortage(self.ingest, self.maintain):
            yield Problem("capacity", f"the jobs do not fit: {short}", "Raise it, or lower `most` of the workers")
        yield from Jobs._contradictions(self)


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
