"""Jobs that deployment has removed: their desired state is deleted, and a run that follows its topics would never end.

It would go on landing pipelines that have moved to another job, and both would fence each other.
"""

from __future__ import annotations

from collections.abc import Callable

from frazil.clients.emr import Run, RunState
from frazil.clients.object_store import ObjectStore
from frazil.errors import RolloutFailed
from frazil.rollout.desired import desired_key, parse_desired
from frazil.rollout.group_jobs import ingest_jobs
from frazil.rollout.reconcile import Reconciler, runs_on
from frazil.rollout.state import Lease, kept_key, state_key, stored_state

_AT_REST = (None, "CREATED", "STOPPED")


def need_of(store: ObjectStore, application: str) -> str:
    """Return why a job still needs an application; empty if no job does.

    A job needs it while its runs start there, and until a generation on another application has proven itself: before
    that, a rollback returns to it. A run that a paused reconciler starts later is none that the job needs.
    """
    for job in ingest_jobs(store):
        held, state = store.read(desired_key(job)), stored_state(store, job)
        if held is not None and parse_desired(held.data).application == application:
            return f"the runs of job {job} start on it"
        used = state.applications if state.proven is None else (state.proven.application,)
        if application in used:
            return f"job {job} has not proven a generation on another application"
    return ""


def stop_former(
    application: str, reconciler: Reconciler, *, on_wait: Callable[[str], None], patience_seconds: float
) -> bool:
    """Wait until no run is left on an application, then stop it. Return whether it still exists.

    Repeatable at any time. `on_wait` is called with each reason to wait. Raises `RolloutFailed` if a job needs the application,
    or if runs are left after `patience_seconds`.
    """
    emr, until = reconciler.emr, reconciler.clock() + patience_seconds
    while True:
        if need := need_of(reconciler.store, application):
            do = "Reconcile, start stopped pipelines, or deploy a release that lands records; then repeat the command"
            raise RolloutFailed(need, where=f"application {application}", do=do)
        state = emr.application_state(application)
        if state in _AT_REST:
            return state is not None
        runs = emr.active(application)
        why = f"runs {', '.join(runs)} have not ended" if runs else f"it is {state}, and has to stop"
        if not runs and state == "STARTED":
            emr.stop_application(application)
            on_wait("it is asked to stop")
            continue
        if reconciler.clock() >= until:
            raise RolloutFailed(why, where=f"application {application}", do="Wait or cancel them, then repeat")
        on_wait(why)
        reconciler.wait(reconciler.look_seconds)


GRACE_SECONDS = 120
_KEPT = kept_key("").split("/")[1]
"""The folder of documents' copies is next to those of jobs."""


def removed_jobs(store: ObjectStore) -> tuple[str, ...]:
    """Return the jobs whose runs have written proofs, and that have no desired state any longer."""
    below = state_key("").partition("/")[0]
    return tuple(job for job in store.folders(f"{below}/") if job not in (*ingest_jobs(store), _KEPT))


def left_runs(reconciler: Reconciler, job: str) -> list[Run]:
    """Return the runs of a removed job that have not ended, on every application that it remembers."""
    state = stored_state(reconciler.store, job)
    applications = (*state.applications, *([state.proven.application] if state.proven else []))
    found, _ = runs_on(reconciler.emr, applications, job)
    return [run for run in found if not run.state.is_terminal]


def end_left_runs(
    reconciler: Reconciler, job: str, *, holder: str, patience_seconds: float, on_wait: Callable[[str], None]
) -> bool:
    """End all runs of a removed job, and wait for it. Return whether there was one.

    `on_wait` is called with each reason to wait. Raises `RolloutFailed` if this takes longer than `patience_seconds`, and
    `LockHeld` if a reconciler works on the job.
    """
    until, had_run = reconciler.clock() + patience_seconds, False
    if not left_runs(reconciler, job):
        return False
    lease = Lease(reconciler.store, job, holder=holder, clock=reconciler.clock)
    lease.take()
    try:
        while runs := left_runs(reconciler, job):
            had_run = True
            for run in runs:
                lease.keep()
                if run.state is not RunState.CANCELLING:
                    reconciler.emr.cancel(run, grace_seconds=GRACE_SECONDS)
            why = f"runs {', '.join(run.id for run in runs)} of the removed job {job} have to end"
            if reconciler.clock() >= until:
                raise RolloutFailed(why, where=f"job {job}", do="Run again")
            on_wait(why)
            reconciler.wait(reconciler.look_seconds)
        return had_run
    finally:
        lease.give_back()
