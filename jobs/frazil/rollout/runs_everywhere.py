"""The runs of a job on every application that may have some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from frazil.clients.emr import NotAllowed, Run
from frazil.rollout.desired import Desired
from frazil.rollout.job_run_request import TAG_JOB, names_of_runs
from frazil.rollout.state import RolloutState


class ListedRuns(Protocol):
    """The call to EMR Serverless that lists runs."""

    def runs(self, application: str, tags: Mapping[str, str], *, names: str) -> Sequence[Run]:
        """Return the runs of an application that have these tags."""
        ...


@dataclass(frozen=True, slots=True)
class RunsEverywhere:
    """The runs of a job, and the applications that the job has left and that are deleted."""

    runs: list[Run]
    deleted: tuple[str, ...]


def runs_everywhere(emr: ListedRuns, desired: Desired, state: RolloutState) -> RunsEverywhere:
    """Return the runs of a job on every application that may have some.

    Rights cover the declared applications. One that the job has left, and that may not be listed, is no longer declared: it is
    deleted, and AWS deletes only applications without runs. Raises `EmrUnavailable`.
    """
    needed = {
        desired.application,
        *([state.proven.application] if state.proven and state.has_given_up(desired) else []),
    }
    found, deleted = list[Run](), list[str]()
    for application in dict.fromkeys((*state.applications, desired.application)):
        try:
            found += emr.runs(application, {TAG_JOB: desired.job}, names=names_of_runs(desired.job))
        except NotAllowed:
            if application in needed:
                raise
            deleted.append(application)
    return RunsEverywhere(found, tuple(deleted))
