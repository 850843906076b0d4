"""The reconciler: a loop that reads the runs, computes the next steps and applies them until the desired generation runs.

Each round reads everything again, and renews the lease before each call. After a crash between any two calls, the next
reconciler finds everything that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from frazil.clients.emr import Run
from frazil.errors import InvalidInput, RolloutFailed
from frazil.release.manifest import Release, parse_manifest
from frazil.release.signature import signature_key, verify
from frazil.rollout.desired import Desired, desired_key, parse_desired
from frazil.rollout.document_copies import keep_documents
from frazil.rollout.job_run_request import TAG_JOB, run_settings
from frazil.rollout.state import Lease, RolloutState, Store, stored_state
from frazil.rollout.steps import (
    Cancel,
    GiveUp,
    Halt,
    Leave,
    Prove,
    Readiness,
    Start,
    Step,
    Wait,
    judged,
    next_steps,
    target_of,
)
from frazil.rollout.stopped_pipelines import with_stops

LOOK_SECONDS = 10.0
"""Between two rounds while a run starts or ends."""


class Runs(Protocol):
    """The calls to EMR Serverless that the reconciler makes."""

    def runs(self, application: str, tags: Mapping[str, str], *, name_prefix: str) -> Sequence[Run]:
        """Return the runs of an application that have these tags."""
        ...

    def start(self, request: Mapping[str, Any], *, token: str) -> str:
        """Start a run and return its id."""
        ...

    def cancel(self, run: Run, *, grace_seconds: int) -> None:
        """Ask a run to end."""
        ...


class ReadinessCheck(Protocol):
    """The check of a generation's tables that the reconciler makes."""

    def of(self, desired: Desired) -> Readiness:
        """Return how far the drivers of a generation have come."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """A reconciler of any job. `bucket` is the name of the artifact bucket behind `store`; `on_step` is called with each step.

    `trusted` are the public keys of which one must have signed a release before a run of it starts.
    """

    store: Store
    bucket: str
    emr: Runs
    readiness: ReadinessCheck
    clock: Callable[[], float]
    wait: Callable[[float], None]
    on_step: Callable[[Step], None] = lambda step: None
    look_seconds: float = LOOK_SECONDS
    trusted: Sequence[str] = ()

    def drift(self, job: str) -> tuple[Step, ...]:
        """Return the steps that `reconcile` would take; none if the desired generation runs."""
        desired, state = self.desired(job), stored_state(self.store, job)
        return tuple(step for step in self._decided(desired, state) if not isinstance(step, Leave))

    def reconcile(self, job: str, *, holder: str, patience_seconds: float) -> Desired | None:
        """Take the steps until none is left, and return the generation that then runs; None if the job is stopped.

        Another generation than the desired one means that the desired one was given up and the one before runs again.
        Raises `RolloutFailed` if no generation runs or if it takes longer than `patience_seconds`, `LockHeld` if another
        reconciler holds the job's lease, and the errors of its services.
        """
        lease = Lease(self.store, job, holder=holder, clock=self.clock)
        began = self.clock()
        lease.take()
        try:
            while steps := self._decided(desired := self.desired(job), lease.state):
                self._do(steps, lease, desired)
                if all(isinstance(step, Leave) for step in steps):
                    break
                if self.clock() - began > patience_seconds:
                    raise RolloutFailed(
                        f"it took longer than {patience_seconds:.0f} s", where=f"job {job}", do="Run again"
                    )
            return target_of(desired, self._with_stops(lease.state, desired))
        finally:
            lease.give_back()

    def desired(self, job: str) -> Desired:
        """Return the desired state without the stopped pipelines. Raises `InvalidInput` if the job has no desired state."""
        held = self.store.read(desired_key(job))
        if held is None:
            raise InvalidInput(
                "the desired state does not exist",
                where=f"s3://{self.bucket}/{desired_key(job)}",
                do="Deploy the ingestion stack, which writes it",
            )
        desired = parse_desired(held.data)
        if desired.job != job:
            raise InvalidInput(f"it is of job {desired.job}", where=f"s3://{self.bucket}/{desired_key(job)}")
        return with_stops(desired, self.store)

    def _with_stops(self, state: RolloutState, desired: Desired) -> RolloutState:
        """Return the state, with the operator's stops on the proven generation if the wanted one was given up."""
        if state.proven is None or not state.has_given_up(desired):
            return state
        return replace(state, proven=with_stops(state.proven, self.store))

    def _decided(self, desired: Desired, state: RolloutState) -> tuple[Step, ...]:
        state = self._with_stops(state, desired)
        runs = self._runs(desired, state)
        run = judged(desired, state, runs)
        target = target_of(desired, state)
        readiness = self.readiness.of(target) if run is not None and target is not None else Readiness.NOTHING_YET
        return next_steps(desired, state, runs, readiness, datetime.fromtimestamp(self.clock(), UTC))

    def _runs(self, desired: Desired, state: RolloutState) -> list[Run]:
        applications = dict.fromkeys((*state.applications, desired.application))
        tags, name = {TAG_JOB: desired.job}, f"frazil-{desired.job}-"
        return [run for a in applications for run in self.emr.runs(a, tags, name_prefix=name)]

    def _do(self, steps: Sequence[Step], lease: Lease, desired: Desired) -> None:
        for step in steps:
            self.on_step(step)
            match step:
                case Cancel():
                    lease.keep()
                    self.emr.cancel(step.run, grace_seconds=step.grace_seconds)
                case Start():
                    keep_documents(step.desired, self.store)
                    request = run_settings(step.desired, self._release(step.desired), bucket=self.bucket)
                    lease.keep(partial(RolloutState.with_application, application=step.desired.application))
                    self.emr.start(request, token=step.token)
                case Prove():
                    lease.keep(partial(RolloutState.with_proven, desired=step.desired))
                case GiveUp():
                    lease.keep(partial(RolloutState.with_given_up, desired=step.desired))
                case Halt():
                    raise RolloutFailed(
                        step.why,
                        where=f"job {desired.job}",
                        do="Read its logs, fix the cause, and raise the generation",
                    )
                case Wait() | Leave():
                    lease.keep()
        if any(isinstance(step, Wait | Cancel | Start) for step in steps):  # these need time to take effect
            self.wait(self.look_seconds)

    def _release(self, desired: Desired) -> Release:
        held = self.store.read(desired.release)
        if held is None:
            raise InvalidInput(
                "the release does not exist", where=f"s3://{self.bucket}/{desired.release}", do="Upload it, then deploy"
            )
        release = parse_manifest(held.data)
        verify(release, self.trusted, lambda key: self._signature(release, key))
        return release

    def _signature(self, release: Release, public_key: str) -> bytes | None:
        held = self.store.read(signature_key(release, public_key))
        return None if held is None else held.data
