"""The end of a move to another application: the former one stops, unless a job needs it or a run is left on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from frazil.errors import RolloutFailed
from frazil.rollout.desired import desired_key, parse_desired
from frazil.rollout.group_jobs import ingest_jobs
from frazil.rollout.state import Store, stored_state

_AT_REST = (None, "CREATED", "STOPPED")


class Applications(Protocol):
    """The calls to EMR Serverless that concern an application as such."""

    def active(self, application: str) -> Sequence[str]:
        """Return the ids of its runs that have not ended, whoever started them."""
        ...

    def application_state(self, application: str) -> str | None:
        """Return its state; None if it does not exist."""
        ...

    def stop_application(self, application: str) -> None:
        """Ask it to stop."""
        ...


def need_of(store: Store, application: str) -> str:
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
    application: str,
    store: Store,
    emr: Applications,
    *,
    clock: Callable[[], float],
    wait: Callable[[float], None],
    on_wait: Callable[[str], None],
    look_seconds: float,
    patience_seconds: float,
) -> bool:
    """Wait until no run is left on an application, then stop it. Return whether it still exists.

    Repeatable at any time. `on_wait` is called with each reason to wait. Raises `RolloutFailed` if a job needs the application,
    or if runs are left after `patience_seconds`.
    """
    until = clock() + patience_seconds
    while True:
        if need := need_of(store, application):
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
        if clock() >= until:
            raise RolloutFailed(why, where=f"application {application}", do="Wait or cancel them, then repeat")
        on_wait(why)
        wait(look_seconds)
