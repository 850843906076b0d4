"""Wait until the runs of a job use keys that were stored at a certain time.

A run reads the secret when it starts, and again only if a service refuses the keys. So a run that was created afterwards has
the new keys, and its proof shows that services accept them. Older runs end first: a job has one run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from frazil.clients.emr import Run, RunState
from frazil.errors import RolloutFailed
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.readiness import stored_proofs
from frazil.rollout.reconcile import Reconciler
from frazil.rollout.run_proof import Reached, RunProof
from frazil.rollout.state import stored_state
from frazil.rollout.stopped_pipelines import pipeline_names


@dataclass(frozen=True, slots=True)
class Lag:
    """The active runs that have the former keys, and what is missing for a proof of the new ones; empty if nothing is."""

    old: tuple[Run, ...]
    why: str


def lag(
    target: Desired | None, runs: Sequence[Run], proofs: Iterable[RunProof], names: Sequence[str], since: datetime
) -> Lag:
    """Return what is missing until the runs of a job have shown that they use the keys stored at `since`.

    `target` is the generation that should run, if any should. After a rollback, that is not the deployed one.

    A drain shows it by its successful end. Proofs show it if each pipeline has committed or caught up: those of a follower, or of
    drains that end otherwise, as by their timeout. `names` are the pipelines that should run.
    """
    active = [run for run in runs if not run.state.is_terminal]
    old = tuple(run for run in active if run.created_at <= since)
    if old:
        return Lag(old, f"run {old[0].id} has the former keys")
    if target is None or not names:
        return Lag((), "")
    new = [run for run in runs if run.created_at > since]
    if not new:
        return Lag((), "no run has started with the new keys")
    if target.mode is Mode.DRAIN:
        if any(run.state is RunState.SUCCESS for run in new):
            return Lag((), "")
        if not any(run.state.is_terminal for run in new):
            return Lag((), f"run {new[-1].id} is {new[-1].state}")
    began_ms = min(run.created_at for run in new).timestamp() * 1000
    reached: dict[str, Reached] = {}
    for proof in sorted(proofs, key=lambda proof: proof.at_ms):
        if proof.at_ms > began_ms:
            reached |= {
                name: how for name, how in proof.pipelines.items() if reached.get(name) is not Reached.COMMITTED
            }
    missing = [name for name in names if reached.get(name) not in (Reached.COMMITTED, Reached.CAUGHT_UP)]
    return Lag((), f"{', '.join(missing)} has neither committed nor caught up" if missing else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewedKeys:
    """The wait for all runs of a job. `reconciler` replaces the runs; `on_wait` is called with each new reason to wait."""

    reconciler: Reconciler
    holder: str
    on_wait: Callable[[str], None] = lambda why: None

    def wait(self, job: str, since: datetime, *, patience_seconds: float) -> None:
        """Return when all runs of a deployed job use the keys that were stored at `since`.

        A follower is cancelled and started again, a drain is awaited and the next one started. Raises `RolloutFailed` if this
        takes longer than `patience_seconds`, and the errors of the reconciler.
        """
        at_work, said = self.reconciler, ""
        began = at_work.clock()
        while (found := self._lag(job, target := at_work.target(job), since)).why:
            if found.why != said:
                self.on_wait(f"{job}: {found.why}")
                said = found.why
            if at_work.clock() - began > patience_seconds:
                do = "Run frazil deploy rotate-keys again. Until it ends, the former keys exist"
                raise RolloutFailed(found.why, where=f"job {job}", do=do)
            if target is not None and target.mode is Mode.FOLLOW:
                for run in found.old:
                    if run.state is not RunState.CANCELLING:
                        at_work.emr.cancel(run, grace_seconds=target.grace_seconds)
            at_work.one_pass(job, holder=self.holder, execution=f"keys {since.astimezone(UTC).isoformat()}")
            at_work.wait(at_work.look_seconds)

    def _lag(self, job: str, target: Desired | None, since: datetime) -> Lag:
        store, desired = self.reconciler.store, self.reconciler.desired(job)
        names = [name for name in pipeline_names(target, store) if name not in target.stopped] if target else []
        runs = sorted(self.reconciler.runs(desired, stored_state(store, job)), key=lambda run: run.created_at)
        # Proofs are read if they are asked for: a job has one for each of its drains of 90 days.
        return lag(target, runs, stored_proofs(store, job), names, since)
