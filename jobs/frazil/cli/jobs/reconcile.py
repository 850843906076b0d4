"""`frazil jobs reconcile`, `stop` and `start`: bring the runs of jobs to their desired state."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli.console import note, out, say, show_json
from frazil.cli.jobs import aws
from frazil.cli.options import (
    AsJson,
    EnvironmentChoice,
    EnvironmentName,
    EnvironmentOption,
    JobName,
    argument,
    command_secrets,
    environment_name,
    flag,
)
from frazil.clients.secrets import Secrets
from frazil.errors import FrazilError, RolloutFailed
from frazil.exit_codes import Exit
from frazil.project import environments

if TYPE_CHECKING:
    from frazil.declaration import Environment
    from frazil.rollout.reconcile import Reconciler
    from frazil.rollout.steps import Cancel, Step


LOOK_SECONDS, LOCAL_LOOK_SECONDS = 10.0, 1.0
"""Seconds between two checks while runs start; local runs start in seconds and use no quota."""

Minutes = Annotated[int, flag("--minutes", "Minutes that it may take.", min=1, max=100_000)]


def reconcile(
    env: EnvironmentName = None,
    option: EnvironmentOption = None,
    job: JobName = None,
    check: Annotated[bool, flag("--check", "Print the next steps, and do nothing.")] = False,
    watch: Annotated[bool, flag("--watch", "Wait for the deployed reconciler, and start nothing.")] = False,
    minutes: Minutes = 120,
    as_json: AsJson = False,
) -> None:
    """Bring job runs to the deployed state.

    For example: frazil jobs reconcile prod --check

    Ends the old run, then starts the new one.
    An unhealthy generation is rolled back to the one before.

    Exit codes: 0 the desired generation runs; 1 rolled back, or an operator must decide; 2; 3 a service is
    unavailable, or another reconciler runs; 4 with --check: runs differ from the desired state
    """
    if check and watch:
        raise typer.BadParameter("give one of --check and --watch")
    place, secrets = environments.environment(environment_name(env, option)), command_secrets()
    if not check:
        reconcile_all(place, secrets, job, minutes=minutes, as_json=as_json, watches=watch)
        return
    at_work = reconciler(place, secrets)
    jobs, removed = _jobs(place, secrets, job)
    drifts: dict[str, tuple[Step, ...]] = {each: at_work.drift(each) for each in jobs}
    _print_drift({**drifts, **_left_runs(at_work, removed)}, as_json=as_json)


def reconcile_all(
    place: Environment, secrets: Secrets, job: str | None, *, minutes: int, as_json: bool, watches: bool
) -> None:
    """End the runs of removed jobs, then bring about the desired state of the others: of all jobs, or of the named one."""
    at_work = reconciler(place, secrets)
    jobs, removed = _jobs(place, secrets, job)
    for each in removed:
        _end_left_runs(at_work, each, place.name, minutes=minutes, watches=watches)
    bring_about(at_work, jobs, minutes=minutes, as_json=as_json, watches=watches)


def _jobs(place: Environment, secrets: Secrets, job: str | None) -> tuple[list[str], list[str]]:
    """Return the jobs, or the named one, and those of them without desired state, whose runs may be left."""
    from frazil.rollout.removed_jobs import removed_jobs

    store = aws.artifact_store(place, secrets)
    removed = [each for each in removed_jobs(store) if job in (None, each)]
    return [each for each in aws.jobs_of(store, job) if each not in removed], removed


def _left_runs(at_work: Reconciler, jobs: Sequence[str]) -> dict[str, tuple[Cancel, ...]]:
    """Return what has to be done for each removed job that has runs."""
    from frazil.rollout.removed_jobs import GRACE_SECONDS, left_runs
    from frazil.rollout.steps import Cancel

    found = {job: left_runs(at_work, job) for job in jobs}
    return {
        job: tuple(Cancel(run, GRACE_SECONDS, "its job is removed") for run in runs)
        for job, runs in found.items()
        if runs
    }


def _end_left_runs(at_work: Reconciler, job: str, environment: str, *, minutes: int, watches: bool) -> None:
    """End the runs of a removed job. With `watches`, raise `RolloutFailed` if there is one: no deployed reconciler ends it."""
    from frazil.rollout.removed_jobs import end_left_runs, left_runs

    if watches:
        if runs := left_runs(at_work, job):
            what = f"the job is removed, and its runs {', '.join(run.id for run in runs)} have not ended"
            do = f"Run frazil jobs reconcile {environment} --job {job}, as a role that may cancel runs"
            raise RolloutFailed(what, where=f"job {job}", do=do)
    elif end_left_runs(at_work, job, holder=_holder(), patience_seconds=minutes * 60, on_wait=note):
        say(f"{job}: it is removed, and its runs have ended")


def _holder() -> str:
    """Return a new name of this process in leases."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def reconciler(place: Environment, secrets: Secrets) -> Reconciler:
    """Return the reconciler of an environment. Raises `InvalidInput` in one that was not deployed."""
    from frazil.rollout.readiness import ProofReadiness
    from frazil.rollout.reconcile import Reconciler

    store = aws.artifact_store(place, secrets)
    return Reconciler(
        store=store,
        bucket=store.bucket,
        emr=aws.emr(place, secrets),
        readiness=ProofReadiness(store),
        clock=time.time,
        wait=time.sleep,
        look_seconds=LOCAL_LOOK_SECONDS if aws.is_local(place) else LOOK_SECONDS,
        trusted=place.trusted_keys or (),
    )


def bring_about(
    at_work: Reconciler, jobs: Sequence[str], *, minutes: int, as_json: bool, watches: bool = False
) -> None:
    """Reconcile jobs one after another, print each step, and end with 1 if the desired state of one does not run.

    With `watches`, another reconciler takes the steps.
    The error of a job does not keep the others from being reconciled. The last error is raised at the end.
    """
    ended: list[tuple[dict[str, Any], bool]] = []
    errors: list[FrazilError] = []
    for job in jobs:
        try:
            ended.append(_reconciled(at_work, job, minutes=minutes, is_printed=not as_json, watches=watches))
        except FrazilError as error:
            if errors:
                note(f"error: {errors[-1]}")
            errors.append(error)
    if errors:
        raise errors[-1]
    if as_json:
        _show([members for members, _ in ended])
    if not all(is_wanted for _, is_wanted in ended):
        raise typer.Exit(Exit.DECISION_REQUIRED)


def _reconciled(
    at_work: Reconciler, job: str, *, minutes: int, is_printed: bool, watches: bool
) -> tuple[dict[str, Any], bool]:
    """Reconcile one job. Return the result as JSON, and whether the desired generation runs."""
    done: list[Step] = []

    def print_step(step: Step) -> None:
        if not done or sentence(done[-1]) != sentence(step):
            note(sentence(step))
            done.append(step)

    printing = replace(at_work, on_step=print_step)
    if watches:
        runs = printing.watch(job, patience_seconds=minutes * 60)
    else:
        runs = printing.reconcile(job, holder=_holder(), patience_seconds=minutes * 60)
    wanted = at_work.desired(job)
    is_wanted = wanted.is_stopped if runs is None else runs == wanted
    stopped = list(runs.stopped if runs else wanted.stopped)
    if is_printed:
        without = f" without {', '.join(stopped)}" if stopped else ""
        what = f"generation {runs.generation} runs{without}" if runs else "nothing runs, as is wanted"
        say(f"{job}: {what}" + ("" if is_wanted else f"; {wanted.generation} was given up"))
    members = {
        "job": job,
        "wanted": wanted.generation,
        "runs": runs.generation if runs else None,
        "stopped": stopped,
        "steps": [document(step) for step in done],
    }
    return members, is_wanted


def _show(results: Sequence[dict[str, Any]]) -> None:
    """Print the result of one job, or those of several as one object."""
    show_json(results[0] if len(results) == 1 else {"jobs": list(results)})


def _print_drift(drifts: Mapping[str, tuple[Step, ...]], *, as_json: bool) -> None:
    if as_json:
        results = [
            {"drift": bool(steps), "steps": [document(step) for step in steps]}
            | ({"job": job} if len(drifts) > 1 else {})
            for job, steps in drifts.items()
        ]
        _show(results)
    else:
        for job, steps in drifts.items():
            before = f"{job}: " if len(drifts) > 1 else ""
            for step in steps:
                say(f"{before}{sentence(step)}")
        if not any(drifts.values()):
            out().print("nothing to do")
    if any(drifts.values()):
        raise typer.Exit(Exit.CHANGES)


_STEPS = {
    "Cancel": "cancel run",
    "Start": "start generation",
    "Prove": "proven generation",
    "GiveUp": "give up generation",
    "Forget": "forget application",
}
"""The steps in words; others have the name of their class."""


def sentence(step: Step) -> str:
    """Return a step for people: `cancel run 00f1: it is of another generation`."""
    members = document(step)
    what = " ".join(str(members[key]) for key in ("step", "run", "generation", "application") if key in members)
    return f"{what}: {members['why']}" if members.get("why") else what


def document(step: Step) -> dict[str, Any]:
    """Return a step as JSON."""
    kind = type(step).__name__
    members: dict[str, Any] = {"step": _STEPS.get(kind, kind.lower())}
    for field in fields(step):
        value = getattr(step, field.name)
        match field.name:
            case "run":
                members["run"] = value.id
            case "desired":
                members["generation"] = value.generation
            case _:
                members[field.name] = value.isoformat() if isinstance(value, datetime) else value
    return members


Names = Annotated[list[str], argument("PIPELINE...", "Pipelines of the job, by name.")]


def stop(names: Names, env: EnvironmentChoice = "local", minutes: Minutes = 120, as_json: AsJson = False) -> None:
    """Stop pipelines of a job.

    For example: frazil jobs stop orders --env prod

    A deployment does not start them; `frazil jobs start` does.
    A run without these pipelines replaces the job's run.
    Records stay in their topics, subject to retention.

    Exit codes: same as `frazil jobs reconcile`
    """
    _change(names, env, minutes, is_stopped=True, as_json=as_json)


def start(names: Names, env: EnvironmentChoice = "local", minutes: Minutes = 120, as_json: AsJson = False) -> None:
    """Start stopped pipelines at the offsets of their tables.

    For example: frazil jobs start orders --env prod

    Exit codes: same as `frazil jobs reconcile`
    """
    _change(names, env, minutes, is_stopped=False, as_json=as_json)


def _change(names: list[str], env: str, minutes: int, *, is_stopped: bool, as_json: bool) -> None:
    from frazil.rollout.group_jobs import job_of
    from frazil.rollout.stopped_pipelines import change_stop

    place = environments.environment(env)
    secrets = command_secrets()
    at_work, store = reconciler(place, secrets), aws.artifact_store(place, secrets)
    job = job_of(store, names)
    change_stop(store, at_work.desired(job), *names, is_stopped=is_stopped)
    bring_about(at_work, [job], minutes=minutes, as_json=as_json)
