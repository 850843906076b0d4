"""Jobs that deployment has removed: their desired state is deleted, and a run that follows its topics would never end.

It would go on landing pipelines that have moved to another job, and both would fence each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from frazil.clients.emr import NotAllowed, Run, RunState
from frazil.errors import RolloutFailed
from frazil.rollout.group_jobs import ingest_jobs
from frazil.rollout.job_run_request import TAG_JOB, names_of_runs
from frazil.rollout.state import Lease, Store, kept_key, state_key, stored_state

GRACE_SECONDS = 120
_KEPT = kept_key("").split("/")[1]
"""The folder of documents' copies is beside those of jobs."""


class Runs(Protocol):
    """The calls to EMR Serverless that concern runs which exist."""

    def runs(self, application: str, tags: Mapping[str, str], *, names: str) -> Sequence[Run]:
        """Return the runs of an application that have these tags."""
        ...

    def cancel(self, run: Run, *, grace_seconds: int) -> None:
        """Ask a run to end."""
        ...


class JobStore(Store, Protocol):
    """The operations on the artifact bucket that are needed."""

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the names of the folders directly below a prefix."""
        ...


def removed_jobs(store: JobStore) -> tuple[str, ...]:
    """Return the jobs whose runs have written proofs, and that have no desired state any longer."""
    below = state_key("").partition("/")[0]
    return tuple(job for job in store.folders(f"{below}/") if job not in (*ingest_jobs(store), _KEPT))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedJobs:
    """The runs of removed jobs. `on_wait` is called with each reason to wait."""

    store: JobStore
    emr: Runs
    clock: Callable[[], float]
    wait: Callable[[float], None]
    on_wait: Callable[[str], None]
    look_seconds: float

    def left(self, job: str) -> list[Run]:
        """Return the runs of a removed job that have not ended, on every application that it remembers."""
        state = stored_state(self.store, job)
        applications = dict.fromkeys((*state.applications, *([state.proven.application] if state.proven else [])))
        found: list[Run] = []
        for application in applications:
            try:
                found += self.emr.runs(application, {TAG_JOB: job}, names=names_of_runs(job))
            except NotAllowed:  # no longer declared, so it is deleted
                continue
        return [run for run in found if not run.state.is_terminal]

    def end(self, job: str, *, holder: str, patience_seconds: float) -> bool:
        """End all runs of a removed job, and wait for it. Return whether there was one.

        Raises `RolloutFailed` if this takes longer than `patience_seconds`, and `LockHeld` if a reconciler works on the job.
        """
        until, lease, had_run = (
            self.clock() + patience_seconds,
            Lease(self.store, job, holder=holder, clock=self.clock),
            False,
        )
        if not self.left(job):
            return False
        lease.take()
        try:
            while runs := self.left(job):
                had_run = True
                for run in runs:
                    lease.keep()
                    if run.state is not RunState.CANCELLING:
                        self.emr.cancel(run, grace_seconds=GRACE_SECONDS)
                why = f"runs {', '.join(run.id for run in runs)} of the removed job {job} have to end"
                if self.clock() >= until:
                    raise RolloutFailed(why, where=f"job {job}", do="Run again")
                self.on_wait(why)
                self.wait(self.look_seconds)
            return had_run
        finally:
            lease.give_back()
