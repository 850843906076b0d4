"""Wait until the runs of a job use keys that were stored at a certain time.

A run reads the secret when it starts, and again only if a service refuses the keys. So a run that was created afterwards has
the new keys, and its proof shows that services accept them. Older runs end first: a job has one run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from frazil.clients.emr import Run, RunState
from frazil.errors import RolloutFailed
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.readiness import stored_proofs
from frazil.rollout.reconcile import Reconciler, runs_everywhere
from frazil.rollout.run_proof import Reached, RunProof
from frazil.rollout.state import stored_state
from frazil.rollout.stopped_pipelines import pipeline_names


def lag(
    target: Desired | None, runs: Sequence[Run], proofs: Iterable[RunProof], names: Sequence[str], since: datetime
) -> tuple[Sequence[Run], str]:
    """Return the active runs with former keys, and what is missing until runs have shown that they use those stored at `since`.

    Nothing is missing if the text is empty. `target` is the generation that should run, if any should. After a rollback, that
    is not the deployed one. A drain shows it by its successful end. Proofs show it if each pipeline has committed or caught up:
    those of a follower, or of drains that end otherwise, as by their timeout. `names` are the pipelines that should run.
    """
    active = [run for run in runs if not run.state.is_terminal]
    old = [run for run in active if run.created_at <= since]
    if old:
        return old, f"run {old[0].id} has the former keys"
    if target is None or not names:
        return (), ""
    new = [run for run in runs if run.created_at > since]
    if not new:
        return (), "no run has started with the new keys"
    if target.mode is Mode.DRAIN:
        if any(run.state is RunState.SUCCESS for run in new):
            return (), ""
        if not any(run.state.is_terminal for run in new):
            return (), f"run {new[-1].id} is {new[-1].state}"
    began_ms = min(run.created_at for run in new).timestamp() * 1000
    reached: dict[str, Reached] = {}
    for proof in sorted(proofs, key=lambda proof: proof.at_ms):
        if proof.at_ms > began_ms:
            reached |= {
                name: how for name, how in proof.pipelines.items() if reached.get(name) is not Reached.COMMITTED
            }
    missing = [name for name in names if reached.get(name) not in (Reached.COMMITTED, Reached.CAUGHT_UP)]
    return (), f"{', '.join(missing)} has neither committed nor caught up" if missing else ""


def wait_for_keys(
    reconciler: Reconciler,
    job: str,
    since: datetime,
    *,
    holder: str,
    patience_seconds: float,
    on_wait: Callable[[str], None],
) -> None:
    """Return when all runs of a deployed job use the keys that were stored at `since`.

    The reconciler replaces the runs: a follower is cancelled and started again, a drain is awaited and the next one started.
    `on_wait` is called with each new reason to wait. Raises `RolloutFailed` if this takes longer than `patience_seconds`, and
    the errors of the reconciler.
    """
    began, said = reconciler.clock(), ""
    while True:
        target = reconciler.target(job)
        old, why = _lag(reconciler, job, target, since)
        if not why:
            return
        if why != said:
            on_wait(f"{job}: {why}")
            said = why
        if reconciler.clock() - began > patience_seconds:
            do = "Run frazil deploy rotate-keys again. Until it ends, the former keys exist"
            raise RolloutFailed(why, where=f"job {job}", do=do)
        if target is not None and target.mode is Mode.FOLLOW:
            for run in old:
                if run.state is not RunState.CANCELLING:
                    reconciler.emr.cancel(run, grace_seconds=target.grace_seconds)
        reconciler.one_pass(job, holder=holder, execution=f"keys {since.astimezone(UTC).isoformat()}")
        reconciler.wait(reconciler.look_seconds)


def _lag(reconciler: Reconciler, job: str, target: Desired | None, since: datetime) -> tuple[Sequence[Run], str]:
    store, desired = reconciler.store, reconciler.desired(job)
    names = [name for name in pipeline_names(target, store) if name not in target.stopped] if target else []
    runs, _ = runs_everywhere(reconciler.emr, desired, stored_state(store, job))
    runs.sort(key=lambda run: run.created_at)
    # Proofs are read if they are asked for: a job has one for each of its drains of 90 days.
    return lag(target, runs, stored_proofs(store, job), names, since)
