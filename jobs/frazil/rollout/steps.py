"""Decide: what is wanted, remembered and running -> what to do next. Pure.

Three rules hold whatever happens between two decisions: no run is started while another of the job has not ended; a
generation is remembered as proven only after it has proven itself; what has failed is not tried again until someone
raises its generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from uuid import UUID, uuid5

from frazil.clients.emr import Run, RunState
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.job_run_request import TAG_DESIRED
from frazil.rollout.state import RolloutState

TRIES = 3
"""How many runs of a generation may end before it is given up; of a proven one, within an hour."""
_TRIES_WITHIN = timedelta(hours=1)
_NAMESPACE = UUID("5a3a3ad5-8f0e-4a0c-8a52-0d6f5d2f7c44")


class Proof(StrEnum):
    """What the tables say of a run.

    `committed`: it has committed, and its other tables hold all that their topics have. `caught_up`: it has not committed,
    and its tables hold all that their topics have. `nothing_yet`: a topic has records that no commit has landed; if that
    lasts, it is evidence of a failure. `partly`: some pipelines have committed, of the others nothing can be known here.
    `unknown`: none has committed, and of some nothing can be known here.
    """

    COMMITTED = "committed"
    CAUGHT_UP = "caught up"
    NOTHING_YET = "nothing yet"
    PARTLY = "partly committed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ask a run to end, with so many seconds of grace."""

    run: Run
    grace_seconds: int
    why: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start a run of a generation. The same token is the same run, however often it is asked for."""

    desired: Desired
    token: str


@dataclass(frozen=True, slots=True)
class Prove:
    """Remember that a generation has proven itself."""

    desired: Desired
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Remember that a generation did not, and go back to the one before."""

    desired: Desired
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do but look again later."""

    why: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave a run as it is: it has not proven itself, and nothing shows that it fails."""

    run: Run
    why: str


@dataclass(frozen=True, slots=True)
class Halt:
    """Nothing that could be done would help: a person must look."""

    why: str


Step = Cancel | Start | Prove | GiveUp | Wait | Leave | Halt


def target_of(desired: Desired, state: RolloutState) -> Desired | None:
    """The generation that is to run: what is wanted, or the proven one if that was given up; None for nothing."""
    if desired.is_stopped:
        return None
    target = state.proven if state.has_given_up(desired) else desired
    return None if target is None or target.is_stopped else target


def judged(desired: Desired, state: RolloutState, runs: Sequence[Run]) -> Run | None:
    """The run whose proof a decision needs: the newest of the generation that is to run and has not proven itself."""
    target = target_of(desired, state)
    if target is None or state.has_proven(target):
        return None
    return max(_of(target, runs), key=lambda run: (run.created_at, run.id), default=None)


def decide(desired: Desired, state: RolloutState, runs: Sequence[Run], proof: Proof, now: datetime) -> tuple[Step, ...]:
    """The next steps, in order; none when all is as it should be.

    `runs` are all runs of the job on all applications it may have runs on, `proof` is of the run that `judged` names.
    """
    target = target_of(desired, state)
    active = [run for run in runs if not run.state.is_terminal]
    kept = _kept(target, active)
    others = [run for run in active if run is not kept]
    if others:
        return tuple(_ended(desired, target, others))
    if desired.is_stopped or (state.has_given_up(desired) and state.proven is not None and state.proven.is_stopped):
        return ()
    if target is None or state.has_given_up(target):
        return (Halt(f"generation {desired.generation} was given up, and none was proven before it"),)
    if kept is not None:
        return _running(target, state, kept, proof, now)
    return _not_running(target, state, _of(target, runs), proof, now)


def _kept(target: Desired | None, active: Iterable[Run]) -> Run | None:
    """The one run that may go on: the oldest of the generation that is to run, unless it is being cancelled."""
    mine = [run for run in active if run.state is not RunState.CANCELLING and _is_of(target, run)]
    return min(mine, key=lambda run: (run.created_at, run.id), default=None)


def _ended(desired: Desired, target: Desired | None, others: Iterable[Run]) -> Iterable[Step]:
    for run in others:
        if run.state is RunState.CANCELLING:
            yield Wait(f"run {run.id} is being cancelled")
        elif target is None:
            yield Cancel(run, desired.grace_seconds, "nothing of the job is to run")
        else:
            is_twin = _is_of(target, run)
            why = "another run of the same generation is there" if is_twin else "it is of another generation"
            yield Cancel(run, desired.grace_seconds, why)


def _running(target: Desired, state: RolloutState, run: Run, proof: Proof, now: datetime) -> tuple[Step, ...]:
    if state.has_proven(target):
        return ()
    age = now - run.created_at
    is_running, is_following = run.state is RunState.RUNNING, target.mode is Mode.FOLLOW
    is_late = age >= timedelta(seconds=target.proof_seconds)
    if proof is Proof.COMMITTED and is_running:
        return (Prove(target, f"run {run.id} has committed"),)
    is_calm = is_running and age >= timedelta(seconds=target.calm_seconds)
    if proof is Proof.CAUGHT_UP and is_calm and is_following:
        return (Prove(target, f"run {run.id} runs, and there is nothing to read"),)
    if proof is Proof.PARTLY and is_running and is_late and is_following:
        return (Prove(target, f"run {run.id} has committed, and nothing shows that a pipeline fails"),)
    has_committed = proof in (Proof.COMMITTED, Proof.PARTLY)
    if is_late and (proof is Proof.NOTHING_YET or not (is_running or has_committed)):
        return (GiveUp(target, f"run {run.id} has committed nothing in {target.proof_seconds} s, and is {run.state}"),)
    if is_late and is_running and is_following:
        why = f"run {run.id} has committed nothing in {target.proof_seconds} s, and Kafka cannot be asked if it should have"
        return (Leave(run, why),)
    return (Wait(f"run {run.id} is {run.state}, and has to prove itself ({proof})"),)


def _not_running(
    target: Desired, state: RolloutState, ended: Sequence[Run], proof: Proof, now: datetime
) -> tuple[Step, ...]:
    last = max(ended, key=lambda run: (run.created_at, run.id), default=None)
    is_proven = state.has_proven(target)
    if target.mode is Mode.DRAIN:
        if is_proven:
            return ()  # the schedule starts the next ones
        if last is not None and last.state is RunState.SUCCESS and proof is not Proof.NOTHING_YET:
            return (Prove(target, f"run {last.id} ended well, {proof}"),)
    if is_proven:
        recent = [run for run in ended if run.updated_at > now - _TRIES_WITHIN and run.state is not RunState.CANCELLED]
        if len(recent) >= TRIES:
            what = f"{len(recent)} runs of the proven generation {target.generation} ended within an hour"
            return (Halt(f"{what}; {_said(last)}"),)
    else:
        failed = [run for run in ended if _has_failed(run, target, proof)]
        if len(failed) >= TRIES:
            return (GiveUp(target, f"{len(failed)} runs ended before they had proven anything; {_said(last)}"),)
    return (Start(target, token(target, last, now)),)


def _has_failed(run: Run, target: Desired, proof: Proof) -> bool:
    """Whether the end of a run speaks against its generation.

    A run that lasted as long as its proof may take does only if its tables are known to lack records: without a way to ask
    Kafka, a run with nothing to read may go on for weeks before something ends it.
    """
    if run.state is RunState.CANCELLED:
        return False
    lasted = run.updated_at - run.created_at
    return proof is Proof.NOTHING_YET or lasted < timedelta(seconds=target.proof_seconds)


def token(target: Desired, last: Run | None, now: datetime) -> str:
    """The client token of the run that comes after `last`: whoever decides the same asks for the same run.

    Without a last run it is of the day: the generation may have had runs that are not listed any more, whose tokens are used up.
    """
    after = last.id if last is not None else f"{now.astimezone(UTC):%Y-%m-%d}"
    return str(uuid5(_NAMESPACE, f"{target.job} {target.digest} {after}"))


def _said(last: Run | None) -> str:
    if last is None:
        return ""
    return f"the last, {last.id}, is {last.state}" + (f": {last.details}" if last.details else "")


def _of(target: Desired, runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if _is_of(target, run)]


def _is_of(target: Desired | None, run: Run) -> bool:
    return target is not None and run.tags.get(TAG_DESIRED) == target.digest
