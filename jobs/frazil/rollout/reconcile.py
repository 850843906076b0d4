"""Reconcile: move what runs to what is wanted. A thin loop: look, decide, do, until nothing is left to do.

Everything is looked at anew each time round, and each call is made with the lease freshly held. A crash between any two
calls leaves nothing behind that the next reconciler does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from frazil.clients.emr import Run
from frazil.errors import InvalidInput, NothingRuns
from frazil.release.manifest import Release, parse_manifest
from frazil.rollout.desired import Desired, desired_key, parse_desired
from frazil.rollout.document_copies import keep_documents
from frazil.rollout.job_run_request import TAG_JOB, run_settings
from frazil.rollout.state import Lease, Memory, Store, remembered
from frazil.rollout.steps import Cancel, GiveUp, Halt, Leave, Proof, Prove, Start, Step, Wait, decide, judged, target_of
from frazil.rollout.stopped_pipelines import with_stops

LOOK_SECONDS = 10.0
"""Between two looks while there is nothing to do but wait."""


class Runs(Protocol):
    """What is needed of EMR Serverless."""

    def runs(self, application: str, tags: Mapping[str, str], *, name_prefix: str) -> Sequence[Run]:
        """The runs of an application that have these tags."""
        ...

    def start(self, request: Mapping[str, Any], *, token: str) -> str:
        """Start a run and return its id."""
        ...

    def cancel(self, run: Run, *, grace_seconds: int) -> None:
        """Ask a run to end."""
        ...


class Proofs(Protocol):
    """What is needed of the tables."""

    def of(self, desired: Desired) -> Proof:
        """What the tables say of the drivers of a generation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """What all reconciling shares. `bucket` names the artifact bucket that `store` is; `tell` hears of every step."""

    store: Store
    bucket: str
    emr: Runs
    proofs: Proofs
    clock: Callable[[], float]
    wait: Callable[[float], None]
    tell: Callable[[Step], None] = lambda step: None
    look_seconds: float = LOOK_SECONDS

    def drift(self, job: str) -> tuple[Step, ...]:
        """What there is to do, without doing it; nothing when what runs is what is wanted."""
        desired, memory = self.desired(job), remembered(self.store, job)
        return tuple(step for step in self._decided(desired, memory) if not isinstance(step, Leave))

    def reconcile(self, job: str, *, holder: str, patience_seconds: float) -> Desired | None:
        """Do it, and return the generation that runs then; None if the job is stopped.

        Raises `NothingRuns` if none can be had or if it takes longer than `patience_seconds`, `LeaseHeld` if another
        reconciler is at work, and what its services raise. Returning another generation than the wanted one means that
        it was given up, and the one before runs again.
        """
        lease = Lease(self.store, job, holder=holder, clock=self.clock)
        began = self.clock()
        lease.take()
        try:
            while steps := self._decided(desired := self.desired(job), lease.memory):
                self._do(steps, lease, desired)
                if all(isinstance(step, Leave) for step in steps):
                    break
                if self.clock() - began > patience_seconds:
                    raise NothingRuns(
                        f"it took longer than {patience_seconds:.0f} s", where=f"job {job}", do="Run again"
                    )
            return target_of(desired, self._with_stops(lease.memory, desired))
        finally:
            lease.give_back()

    def desired(self, job: str) -> Desired:
        """What is wanted, without what an operator has stopped. Raises `InvalidInput` if nobody has written it."""
        held = self.store.read(desired_key(job))
        if held is None:
            raise InvalidInput(
                "nobody has said what should run",
                where=f"s3://{self.bucket}/{desired_key(job)}",
                do="Deploy the ingestion stack, which writes it",
            )
        desired = parse_desired(held.data)
        if desired.job != job:
            raise InvalidInput(f"it is of job {desired.job}", where=f"s3://{self.bucket}/{desired_key(job)}")
        return with_stops(desired, self.store)

    def _with_stops(self, memory: Memory, desired: Desired) -> Memory:
        """What is remembered, with the operator's stops on the generation that runs if the wanted one was given up."""
        if memory.proven is None or not memory.has_given_up(desired):
            return memory
        return replace(memory, proven=with_stops(memory.proven, self.store))

    def _decided(self, desired: Desired, memory: Memory) -> tuple[Step, ...]:
        memory = self._with_stops(memory, desired)
        runs = self._runs(desired, memory)
        run = judged(desired, memory, runs)
        target = target_of(desired, memory)
        proof = self.proofs.of(target) if run is not None and target is not None else Proof.NOTHING_YET
        return decide(desired, memory, runs, proof, datetime.fromtimestamp(self.clock(), UTC))

    def _runs(self, desired: Desired, memory: Memory) -> list[Run]:
        applications = dict.fromkeys((*memory.applications, desired.application))
        tags, name = {TAG_JOB: desired.job}, f"frazil-{desired.job}-"
        return [run for a in applications for run in self.emr.runs(a, tags, name_prefix=name)]

    def _do(self, steps: Sequence[Step], lease: Lease, desired: Desired) -> None:
        for step in steps:
            self.tell(step)
            match step:
                case Cancel():
                    lease.keep()
                    self.emr.cancel(step.run, grace_seconds=step.grace_seconds)
                case Start():
                    keep_documents(step.desired, self.store)
                    request = run_settings(step.desired, self._release(step.desired), bucket=self.bucket)
                    lease.keep(partial(Memory.with_application, application=step.desired.application))
                    self.emr.start(request, token=step.token)
                case Prove():
                    lease.keep(partial(Memory.with_proven, desired=step.desired))
                case GiveUp():
                    lease.keep(partial(Memory.with_given_up, desired=step.desired))
                case Halt():
                    raise NothingRuns(
                        step.why, where=f"job {desired.job}", do="Look at its logs, mend it, and raise the generation"
                    )
                case Wait() | Leave():
                    lease.keep()
        if any(isinstance(step, Wait | Cancel | Start) for step in steps):  # which take effect in a while
            self.wait(self.look_seconds)

    def _release(self, desired: Desired) -> Release:
        held = self.store.read(desired.release)
        if held is None:
            raise InvalidInput(
                "the release is not there", where=f"s3://{self.bucket}/{desired.release}", do="Upload it, then deploy"
            )
        return parse_manifest(held.data)
