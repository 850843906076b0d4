"""The reconciler: a loop that reads the runs, computes the next steps and applies them until the desired generation runs.

Each round reads everything again, and renews the lease before each call. After a crash between any two calls, the next
reconciler finds everything that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from frazil.clients.emr import Emr, NotAllowed, Run
from frazil.clients.object_store import ObjectStore
from frazil.errors import InvalidInput, LockHeld, RolloutFailed
from frazil.release.signature import signature_key, verify
from frazil.rollout.desired import Desired, desired_key, parse_desired
from frazil.rollout.group_jobs import without_moved
from frazil.rollout.job_run_request import TAG_JOB, names_of_runs, run_settings
from frazil.rollout.readiness import ProofReadiness, Readiness, stored_release
from frazil.rollout.state import Lease, RolloutState, keep_documents, stored_state
from frazil.rollout.steps import (
    Cancel,
    Forget,
    GiveUp,
    Halt,
    Leave,
    Prove,
    Start,
    Step,
    Wait,
    judged,
    next_steps,
    target_of,
)
from frazil.rollout.stopped_pipelines import with_stops


def stored(state: RolloutState, step: Step) -> RolloutState:
    """Return the state that is written when a step is taken."""
    match step:
        case Start():
            return state.with_application(step.desired.application)
        case Prove():
            return state.with_proven(step.desired)
        case GiveUp():
            return state.with_given_up(step.desired)
        case Forget():
            return state.without_application(step.application)
        case _:
            return state


def refuse_halt(step: Step, job: str) -> None:
    """Raise `RolloutFailed` if a step is that an operator must decide."""
    if isinstance(step, Halt):
        do = "Read its logs, fix the cause, and raise the generation"
        raise RolloutFailed(step.why, where=f"job {job}", do=do)


def needs_time(steps: Sequence[Step]) -> bool:
    """Return whether steps take effect only after a while, so that there is nothing to decide at once."""
    return any(isinstance(step, Wait | Cancel | Start | Leave) for step in steps)


def runs_everywhere(emr: Emr, desired: Desired, state: RolloutState) -> tuple[list[Run], list[str]]:
    """Return the runs of a job on every application that may have some, and the applications that it left and that are deleted.

    Rights cover the declared applications. One that the job has left, and that may not be listed, is no longer declared: it is
    deleted, and AWS deletes only applications without runs. Raises `EmrUnavailable`.
    """
    needed = {
        desired.application,
        *([state.proven.application] if state.proven and state.has_given_up(desired) else []),
    }
    return runs_on(emr, (*state.applications, desired.application), desired.job, needed=needed)


def runs_on(
    emr: Emr, applications: Iterable[str], job: str, *, needed: Collection[str] = ()
) -> tuple[list[Run], list[str]]:
    """Return the runs of a job on applications, and those of them that are deleted. Raises `EmrUnavailable` for a needed one."""
    found, deleted = list[Run](), list[str]()
    for application in dict.fromkeys(applications):
        try:
            found += emr.runs(application, {TAG_JOB: job}, names=names_of_runs(job))
        except NotAllowed:
            if application in needed:
                raise
            deleted.append(application)
    return found, deleted


LOOK_SECONDS = 10.0
"""Between two rounds while a run starts or ends."""
LEASE_SECONDS, ASK_SECONDS = 30.0, 3.0
"""Seconds that a reconciler waits for a lease that another one holds, and between two requests: a pass takes some seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """The result of a pass. `target` is the generation that should run: None if the job is stopped, another after a rollback."""

    desired: Desired
    target: Desired | None
    steps: tuple[Step, ...]

    @property
    def is_rolled_back(self) -> bool:
        """True if another generation than the desired one should run."""
        return self.target is not None and self.target != self.desired


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """A reconciler of any job. `bucket` is the name of the artifact bucket behind `store`; `on_step` is called with each step.

    `trusted` are the public keys of which one must have signed a release before a run of it starts.
    """

    store: ObjectStore
    bucket: str
    emr: Emr
    readiness: ProofReadiness
    clock: Callable[[], float]
    wait: Callable[[float], None]
    on_step: Callable[[Step], None] = lambda step: None
    look_seconds: float = LOOK_SECONDS
    trusted: Sequence[str] = ()

    def one_pass(self, job: str, *, holder: str, execution: str | None = None) -> Passed:
        """Take the steps that can be taken now, and return them: later events and ticks call for the next passes.

        `execution` identifies the execution of a schedule that asks for the next drain; the same one starts one run. A pass
        without steps writes nothing and takes no lease. Raises what `reconcile` raises, but waits for nothing.
        """
        if not self._decided(self.desired(job), stored_state(self.store, job), execution):
            return self._passed(job, stored_state(self.store, job), ())
        lease, taken = self._leased(job, holder), list[Step]()
        try:
            while steps := self._decided(desired := self.desired(job), lease.state, execution):
                self._do(steps, lease, desired)
                taken += steps
                if needs_time(steps):
                    break
            return self._passed(job, lease.state, tuple(taken))
        finally:
            lease.give_back()

    def _leased(self, job: str, holder: str) -> Lease:
        """Take the lease, waiting for a moment if another reconciler holds it."""
        lease, until = Lease(self.store, job, holder=holder, clock=self.clock), self.clock() + LEASE_SECONDS
        while True:
            try:
                lease.take()
                return lease
            except LockHeld:
                if self.clock() >= until:
                    raise
            self.wait(ASK_SECONDS)

    def _passed(self, job: str, state: RolloutState, steps: tuple[Step, ...]) -> Passed:
        desired = self.desired(job)
        return Passed(desired=desired, target=target_of(desired, self._with_stops(state, desired)), steps=steps)

    def drift(self, job: str) -> tuple[Step, ...]:
        """Return the steps that `reconcile` would take; none if the desired generation runs."""
        return tuple(step for step in self._next(job) if not isinstance(step, Leave))

    def watch(self, job: str, *, patience_seconds: float) -> Desired | None:
        """Wait until another reconciler has taken all steps and no run is left unproven; then return and raise as `reconcile`."""
        began = self.clock()
        while steps := self._next(job):
            for step in steps:
                self.on_step(step)
                refuse_halt(step, job)
            self._wait(
                job, began, patience_seconds, "Read the log of the deployed reconciler, or run frazil jobs reconcile"
            )
        return self.target(job)

    def target(self, job: str) -> Desired | None:
        """Return the generation that should run, without stopped pipelines; None if none should."""
        return self._passed(job, stored_state(self.store, job), ()).target

    def _next(self, job: str) -> tuple[Step, ...]:
        """Return the next steps, without those that change no run."""
        steps = self._decided(self.desired(job), stored_state(self.store, job))
        return tuple(step for step in steps if not isinstance(step, Forget))

    def _wait(self, job: str, began: float, patience_seconds: float, do: str = "Run again") -> None:
        self.wait(self.look_seconds)
        if self.clock() - began > patience_seconds:
            raise RolloutFailed(f"it took longer than {patience_seconds:.0f} s", where=f"job {job}", do=do)

    def reconcile(self, job: str, *, holder: str, patience_seconds: float) -> Desired | None:
        """Take the steps until none is left, and return the generation that then runs; None if the job is stopped.

        Another generation than the desired one means that the desired one was given up and the one before runs again.
        Raises `RolloutFailed` if no generation runs or if it takes longer than `patience_seconds`, `LockHeld` if another
        reconciler holds the job's lease, and the errors of its services.
        """
        began, lease = self.clock(), self._leased(job, holder)
        try:
            while steps := self._decided(desired := self.desired(job), lease.state):
                self._do(steps, lease, desired)
                if all(isinstance(step, Leave) for step in steps):
                    break
                if needs_time(steps):
                    self._wait(job, began, patience_seconds)
            return target_of(desired, self._with_stops(lease.state, desired))
        finally:
            lease.give_back()

    def desired(self, job: str) -> Desired:
        """Return the desired state without the stopped pipelines. Raises `InvalidInput` if the job has no desired state."""
        held, where = self.store.read(desired_key(job)), f"s3://{self.bucket}/{desired_key(job)}"
        if held is None:
            do = "Deploy the ingestion stack, which writes it"
            raise InvalidInput("the desired state does not exist", where=where, do=do)
        desired = parse_desired(held.data)
        if desired.job != job:
            raise InvalidInput(f"it is of job {desired.job}", where=where)
        return with_stops(desired, self.store)

    def _with_stops(self, state: RolloutState, desired: Desired) -> RolloutState:
        """Return the state. If the wanted generation was given up, the proven one lacks stopped and moved pipelines."""
        if state.proven is None or not state.has_given_up(desired):
            return state
        return replace(state, proven=without_moved(with_stops(state.proven, self.store), desired, self.store))

    def _decided(self, desired: Desired, state: RolloutState, execution: str | None = None) -> tuple[Step, ...]:
        state = self._with_stops(state, desired)
        runs, deleted = runs_everywhere(self.emr, desired, state)
        run = judged(desired, state, runs)
        target = target_of(desired, state)
        readiness = self.readiness.of(target) if run is not None and target is not None else Readiness.NOTHING_YET
        now = datetime.fromtimestamp(self.clock(), UTC)
        steps = next_steps(desired, state, runs, readiness, now, execution=execution)
        return steps or tuple(Forget(each, "it is no longer declared") for each in deleted)

    def _do(self, steps: Sequence[Step], lease: Lease, desired: Desired) -> None:
        state = self._with_stops(lease.state, desired)
        target = target_of(desired, state)
        if target is not None and any(isinstance(step, Cancel) for step in steps):
            self.request(target)  # what cannot start ends no run
        for step in steps:
            self.on_step(step)
            match step:
                case Cancel():
                    lease.keep()
                    self.emr.cancel(step.run, grace_seconds=step.grace_seconds)
                case Start():
                    request = self.request(step.desired, is_proven=state.has_proven(step.desired))
                    lease.keep(partial(stored, step=step))
                    self.emr.start(request, token=step.token)
                case Halt():
                    refuse_halt(step, desired.job)
                case Prove() | GiveUp() | Forget() | Wait() | Leave():
                    lease.keep(partial(stored, step=step))

    def request(self, wanted: Desired, *, is_proven: bool = True) -> dict[str, Any]:
        """Return the request of a generation's run. Raises `FrazilError` if its documents or its release are not complete."""
        keep_documents(wanted, self.store)
        release = stored_release(self.store, wanted)

        def signature(public_key: str) -> bytes | None:
            held = self.store.read(signature_key(release, public_key))
            return None if held is None else held.data

        verify(release, self.trusted, signature)
        return run_settings(wanted, release, bucket=self.bucket, is_proven=is_proven)
