"""The next steps of a rollout, as a pure function of desired state, stored state and runs.

Three rules always hold: no run is started before all others of the job have ended; a generation is stored as proven only
after it has proven itself; a generation that was given up is not started again until its number is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from frazil.clients.emr import Run, RunState
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.job_run_request import TAG_DESIRED
from frazil.rollout.readiness import TRIES, Readiness
from frazil.rollout.state import RolloutState

_NAMESPACE = UUID("5a3a3ad5-8f0e-4a0c-8a52-0d6f5d2f7c44")


def token(target: Desired, last: Run | None, now: datetime, execution: str | None = None) -> str:
    """Return the client token of the run after `last`, or of the drain that an execution of the schedule asks for.

    Two reconcilers with the same decision request the same run. Without a last run, the token depends on the day: the generation
    may have had runs that are no longer listed, and a token works once.
    """
    after = last.id if last is not None else f"{now.astimezone(UTC):%Y-%m-%d}"
    after = after if execution is None else f"execution {execution}"
    return str(uuid5(_NAMESPACE, f"{target.job} {target.digest} {after}"))


def has_timed_out(run: Run, desired: Desired) -> bool:
    """Return whether the timeout of a drain ended a run: it lasted so long, without the time in which it was queued."""
    lasted = run.updated_at - run.created_at - run.queued_for
    return run.state is RunState.CANCELLED and lasted >= timedelta(minutes=desired.timeout_minutes)


def is_proof(last: Run, desired: Desired, readiness: Readiness) -> bool:
    """Return whether the last drain proves its generation.

    A successful one has completed all its pipelines, unless its proof says that none has committed and one lacks records. If the
    timeout ended it, each pipeline must have committed or caught up.
    """
    if last.state is RunState.SUCCESS:
        return readiness is not Readiness.NOTHING_YET
    return has_timed_out(last, desired) and readiness in (Readiness.COMMITTED, Readiness.CAUGHT_UP)


def lacked_services(last: Run, desired: Desired, readiness: Readiness) -> bool:
    """Return whether the last drain did not succeed, and nothing but unavailable services explains that."""
    is_unsuccessful = last.state is RunState.FAILED or has_timed_out(last, desired)
    return is_unsuccessful and readiness in (Readiness.UNKNOWN, Readiness.PARTLY)


def failures(ended: Iterable[Run], desired: Desired, readiness: Readiness) -> list[Run]:
    """Return the drains that are evidence against their generation, given its readiness.

    A drain that its timeout ended is none if the generation makes progress. One that an operator cancelled is never evidence.
    """
    lands_nothing = readiness is Readiness.NOTHING_YET
    has_hung = lands_nothing or readiness is Readiness.STUCK
    return [
        run
        for run in ended
        if run.state is RunState.FAILED
        or (run.state is RunState.SUCCESS and lands_nothing)
        or (has_timed_out(run, desired) and has_hung)
    ]


_TRIES_WITHIN = timedelta(hours=1)
"""In which `TRIES` runs of a proven generation may end."""
_QUEUED_FOR = timedelta(hours=6)
"""The longest time that a drain may wait for room. EMR Serverless ends a queued run after the same time by default."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a run, with a grace period in seconds."""

    run: Run
    grace_seconds: int
    why: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start a run of a generation. Requests with the same token start one run."""

    desired: Desired
    token: str


@dataclass(frozen=True, slots=True)
class Prove:
    """Store that a generation has proven itself."""

    desired: Desired
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Store that a generation was given up. The newest proven one runs again."""

    desired: Desired
    why: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Store that an application is deleted, so that its runs are no longer listed."""

    application: str
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait, then read the runs again."""

    why: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave a run that has neither proven itself nor shown a failure."""

    run: Run
    why: str


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop: an operator must decide."""

    why: str


Step = Cancel | Start | Prove | GiveUp | Forget | Wait | Leave | Halt


def target_of(desired: Desired, state: RolloutState) -> Desired | None:
    """Return the generation that should run: the desired one, or the proven one if that was given up. None: no generation."""
    target = state.proven if state.has_given_up(desired) else desired
    return None if target is None or state.is_stopped(desired) else target


def judged(desired: Desired, state: RolloutState, runs: Sequence[Run]) -> Run | None:
    """Return the run whose readiness `next_steps` needs: the newest of the target, unless the target has proven itself."""
    target = target_of(desired, state)
    if target is None or state.has_proven(target):
        return None
    return _newest(_of(target, runs))


def next_steps(
    desired: Desired,
    state: RolloutState,
    runs: Sequence[Run],
    readiness: Readiness,
    now: datetime,
    *,
    execution: str | None = None,
) -> tuple[Step, ...]:
    """Return the next steps in order; none if the target runs and has proven itself.

    `runs` are all runs of the job on every application that may have some. `readiness` belongs to the run that `judged` returns.
    `execution` identifies the execution of a schedule that asks for the next drain.
    """
    target = target_of(desired, state)
    active = [run for run in runs if not run.state.is_terminal]
    mine = [run for run in active if run.state is not RunState.CANCELLING and _is_of(target, run)]
    current = min(mine, key=lambda run: (run.created_at, run.id), default=None)  # the one that may continue
    others = [run for run in active if run is not current]
    if others:
        return tuple(_ended(desired, target, others))
    if state.is_stopped(desired):
        return ()
    if target is None or state.has_given_up(target):
        return (Halt(f"generation {desired.generation} was given up, and none was proven before it"),)
    if current is not None:
        return _running(target, state, current, readiness, now)
    if target.mode is Mode.DRAIN:
        return _no_drain(target, state, _of(target, runs), readiness, now, execution)
    return _no_stream(target, state, _of(target, runs), readiness, now)


def _ended(desired: Desired, target: Desired | None, others: Iterable[Run]) -> Iterable[Step]:
    for run in others:
        if run.state is RunState.CANCELLING:
            yield Wait(f"run {run.id} is being cancelled")
        elif target is None:
            yield Cancel(run, desired.grace_seconds, "the job is stopped")
        else:
            is_twin = _is_of(target, run)
            why = "another run of the same generation exists" if is_twin else "it is of another generation"
            yield Cancel(run, desired.grace_seconds, why)


def _running(target: Desired, state: RolloutState, run: Run, readiness: Readiness, now: datetime) -> tuple[Step, ...]:
    if state.has_proven(target):
        return ()
    is_running, is_following = run.state is RunState.RUNNING, target.mode is Mode.FOLLOW
    age = now - ((run.started_at if is_running else None) or run.created_at)
    is_late = age >= timedelta(seconds=target.proof_seconds)
    if run.state is RunState.QUEUED and not is_following and age < _QUEUED_FOR:
        return (Wait(f"run {run.id} is {run.state}: other runs have its room, or the quota"),)
    # A drain proves its generation by its end: until then, one commit says nothing about its other pipelines.
    if readiness is Readiness.COMMITTED and is_running and is_following:
        return (Prove(target, f"run {run.id} has committed"),)
    is_calm = is_running and age >= timedelta(seconds=target.calm_seconds)
    if readiness is Readiness.CAUGHT_UP and is_calm and is_following:
        return (Prove(target, f"run {run.id} runs, and there is nothing to read"),)
    if readiness is Readiness.PARTLY and is_running and is_late and is_following:
        return (Prove(target, f"run {run.id} has committed, and nothing shows that a pipeline fails"),)
    has_committed = readiness in (Readiness.COMMITTED, Readiness.PARTLY, Readiness.BEHIND, Readiness.STUCK)
    if is_late and (readiness is Readiness.NOTHING_YET or not (is_running or has_committed)):
        return (GiveUp(target, f"run {run.id} has committed nothing in {target.proof_seconds} s, and is {run.state}"),)
    if is_late and is_running and is_following:
        why = f"run {run.id} has run for {target.proof_seconds} s, and whether it lacks records is not known ({readiness})"
        return (Leave(run, why),)
    return (Wait(f"run {run.id} is {run.state}, and has to prove itself ({readiness})"),)


def _no_stream(
    target: Desired, state: RolloutState, ended: Sequence[Run], readiness: Readiness, now: datetime
) -> tuple[Step, ...]:
    last = _newest(ended)
    if state.has_proven(target):
        recent = [run for run in ended if run.updated_at > now - _TRIES_WITHIN and run.state is not RunState.CANCELLED]
        if len(recent) >= TRIES:
            what = f"{len(recent)} runs of the proven generation {target.generation} ended within an hour"
            return (Halt(f"{what}; {_said(last)}"),)
        return (Start(target, token(target, last, now)),)
    # A run with nothing to read may last for weeks before something ends it, which is no failure of its generation.
    has_no_records, least = readiness is Readiness.NOTHING_YET, timedelta(seconds=target.proof_seconds)
    early = [run for run in ended if has_no_records or run.updated_at - run.created_at < least]
    return _tried(target, [run for run in early if run.state is not RunState.CANCELLED], last, now)


def _no_drain(
    target: Desired,
    state: RolloutState,
    ended: Sequence[Run],
    readiness: Readiness,
    now: datetime,
    execution: str | None,
) -> tuple[Step, ...]:
    """Return the steps while no drain runs: the schedule starts those of a proven generation, however the last one ended."""
    last = _newest(ended)
    scheduled = () if execution is None else (Start(target, token(target, last, now, execution)),)
    if state.has_proven(target):
        return scheduled
    if last is not None and is_proof(last, target, readiness):
        return (Prove(target, f"run {last.id} is {last.state}, {readiness}"),)
    if last is not None and lacked_services(last, target, readiness):
        return scheduled or (Leave(last, "a service was unavailable; the schedule starts the next run"),)
    return _tried(target, failures(ended, target, readiness), last, now)


def _tried(target: Desired, failed: Sequence[Run], last: Run | None, now: datetime) -> tuple[Step, ...]:
    """Return the next try of an unproven generation, or its end."""
    if len(failed) >= TRIES:
        return (GiveUp(target, f"{len(failed)} runs ended before they had proven anything; {_said(last)}"),)
    return (Start(target, token(target, last, now)),)


def _newest(runs: Iterable[Run]) -> Run | None:
    return max(runs, key=lambda run: (run.created_at, run.id), default=None)


def _said(last: Run | None) -> str:
    if last is None:
        return ""
    return f"the last, {last.id}, is {last.state}" + (f": {last.details}" if last.details else "")


def _of(target: Desired, runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if _is_of(target, run)]


def _is_of(target: Desired | None, run: Run) -> bool:
    return target is not None and run.tags.get(TAG_DESIRED) == target.digest
