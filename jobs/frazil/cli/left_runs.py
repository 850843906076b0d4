"""The runs of jobs that deployment has removed, for commands that reconcile."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from frazil.cli import aws
from frazil.cli.console import err, out, plain
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment
from frazil.errors import RolloutFailed

if TYPE_CHECKING:
    from frazil.rollout.removed_jobs import RemovedJobs
    from frazil.rollout.steps import Cancel

LOOK_SECONDS = 5.0


def removed_from(place: Environment, secrets: Secrets, job: str | None) -> tuple[str, ...]:
    """Return the jobs without desired state whose runs may be left: all of them, or the named one."""
    from frazil.rollout.removed_jobs import removed_jobs

    return tuple(each for each in removed_jobs(aws.artifact_store(place, secrets)) if job in (None, each))


def left_runs(place: Environment, secrets: Secrets, jobs: Sequence[str]) -> dict[str, tuple[Cancel, ...]]:
    """Return what has to be done for each removed job that has runs."""
    from frazil.rollout.removed_jobs import GRACE_SECONDS
    from frazil.rollout.steps import Cancel

    found = {job: _removed(place, secrets).left(job) for job in jobs}
    return {
        job: tuple(Cancel(run, GRACE_SECONDS, "its job is removed") for run in runs)
        for job, runs in found.items()
        if runs
    }


def end_left_runs(place: Environment, secrets: Secrets, jobs: Sequence[str], *, minutes: int, watches: bool) -> None:
    """End the runs of removed jobs. With `watches`, raise `RolloutFailed` if there is one: no deployed reconciler ends it."""
    for job in jobs:
        at_work, holder = _removed(place, secrets), f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        if watches:
            if runs := at_work.left(job):
                what = f"the job is removed, and its runs {', '.join(run.id for run in runs)} have not ended"
                do = f"Run frazil jobs reconcile {place.name} --job {job}, as a role that may cancel runs"
                raise RolloutFailed(what, where=f"job {job}", do=do)
        elif at_work.end(job, holder=holder, patience_seconds=minutes * 60):
            out().print(plain(f"{job}: it is removed, and its runs have ended"), markup=False)


def _removed(place: Environment, secrets: Secrets) -> RemovedJobs:
    from frazil.rollout.removed_jobs import RemovedJobs

    return RemovedJobs(
        store=aws.artifact_store(place, secrets),
        emr=aws.emr(place, secrets),
        clock=time.time,
        wait=time.sleep,
        on_wait=lambda why: err().print(plain(why), markup=False, soft_wrap=True),
        look_seconds=LOOK_SECONDS,
    )
